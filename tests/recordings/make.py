"""Make the golden recordings beside this file: programs on the simulated device, under a virtual clock.

    python tests/recordings/make.py

Host and device times depend on the program alone, so the same bytes come out of every run; a test compares them.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from openreg_sim.profiler import OpenRegProfiler
from openreg_sim.ring import CopyKind
from openreg_sim.runtime import DropRecords, Runtime, RuntimeConfig, use_runtime
from openreg_sim.runtime.records import ActivityKind

from devprof import correlation
from devprof.contract import SessionConfig
from devprof.replay import HostRanges, Recorder, Recording, save

HERE = Path(__file__).parent
ZERO_NS = 1_700_000_000_000_000_000
THREAD = 1


class Host:
    """A host whose clock moves by a microsecond with every look at it, and that notes its ranges."""

    def __init__(self) -> None:
        self._ticks = itertools.count()
        self._numbers = itertools.count(1)
        self._ranges: list[list[Any]] = []

    def now_ns(self) -> int:
        return ZERO_NS + 1000 * next(self._ticks)

    @contextmanager
    def op(self, name: str, *, is_user: bool = False) -> Iterator[None]:
        number = next(self._numbers)
        noted = [name, number, self.now_ns(), 0, is_user]
        self._ranges.append(noted)
        correlation.push_correlation_id(number)
        if is_user:
            correlation.push_user_correlation_id(number)
        try:
            yield
        finally:
            if is_user:
                correlation.pop_user_correlation_id()
            correlation.pop_correlation_id()
            noted[3] = self.now_ns()

    def ranges(self) -> HostRanges:
        names, ids, starts, ends, users = zip(*self._ranges, strict=True)
        times = (np.array(column, np.int64) for column in (ids, [THREAD] * len(ids), starts, ends))
        return HostRanges(tuple(names), *times, np.array(users, np.bool_))


Program = Callable[[Runtime, Host], None]


def training_step(device: Runtime, host: Host) -> None:
    """A step with a copy on a stream of its own, kernels in nested ops, and kernels outside of every op."""
    copies = device.create_stream(0)
    with host.op("step", is_user=True):
        with host.op("load"):
            device.memcpy(CopyKind.HOST_TO_DEVICE, 1 << 20, stream=copies)
        with host.op("forward", is_user=True):
            with host.op("matmul"):
                device.launch("matmul_kernel", flops=2e9, bytes=12e6)
            with host.op("relu"):
                device.launch("relu_kernel", flops=1e6, bytes=8e6)
        with host.op("backward", is_user=True):
            for name in ("relu", "matmul"):
                with host.op(f"{name} backward"):
                    device.launch(f"{name}_grad_kernel", flops=4e9, bytes=24e6)
    device.launch("cleanup_kernel", flops=1e6)


def lost_records(device: Runtime, host: Host) -> None:
    """Five kernels, of which the device loses every second record, and says so."""
    device.inject(DropRecords(2, ActivityKind.KERNEL))
    for number in range(5):
        with host.op(f"op {number}"):
            device.launch(f"kernel {number}", flops=1e8)


def two_devices(device: Runtime, host: Host) -> None:
    """Kernels on two devices, and memory set on one."""
    with host.op("both", is_user=True):
        for index in (0, 1, 0):
            with host.op(f"on {index}"):
                device.launch(f"kernel_on_{index}", flops=1e9, device=index)
        with host.op("zero"):
            device.memset(1 << 16, device=1)


PROGRAMS: dict[str, Program] = {
    "training_step": training_step,
    "lost_records": lost_records,
    "two_devices": two_devices,
}


def recorded(program: Program) -> Recording:
    """Run a program as a host would, and record what the plugin delivers."""
    host, profiler = Host(), OpenRegProfiler()
    correlation.new_generation()
    with (
        use_runtime(Runtime(RuntimeConfig.virtual_clock())) as device,
        Recorder(profiler, now_ns=host.now_ns) as recorder,
    ):
        config = SessionConfig(host="python", now_ns=host.now_ns)
        session: Any = profiler.configure(profiler.available_activities(), config)
        session.clock_domain()
        for _ in range(2):
            session.sample_clock()
        start_ns = host.now_ns()
        session.start()
        program(device, host)
        end_ns = host.now_ns()
        session.stop()
        session.sample_clock()
        session.process_trace(_Nothing(), lambda op_id: True, start_ns, end_ns)
        for hook in ("status", "errors", "get_device_infos", "get_resource_infos", "get_device_properties"):
            getattr(session, hook)()
        session.get_metadata()
        session.get_trace_buffer()
        recorder.note_host(host.ranges())
        return recorder.recording(keep_texts=True)


class _Nothing:
    """A logger that takes everything and keeps nothing."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *args: None


def main(folder: Path) -> None:
    """Write every recording."""
    for name, program in PROGRAMS.items():
        save(recorded(program), folder / f"{name}.devrec")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
