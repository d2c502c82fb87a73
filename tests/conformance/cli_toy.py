"""The toy for the command, which finds a plugin and its workload by name: both share one device."""

from __future__ import annotations

from dataclasses import replace

from toy import ToyDevice, ToyProfiler, ToySession, ToyWorkload

from devprof.model import GenericTraceActivity

DEVICE = ToyDevice()


def right() -> ToyProfiler:
    return ToyProfiler(DEVICE)


class WithoutThread(ToySession):
    def host_calls(self) -> list[GenericTraceActivity]:
        return [replace(one, thread_id=0) for one in super().host_calls()]


def broken() -> ToyProfiler:
    profiler = ToyProfiler(DEVICE)
    profiler.session = WithoutThread
    return profiler


class Workload(ToyWorkload):
    def __init__(self) -> None:
        super().__init__(DEVICE)
