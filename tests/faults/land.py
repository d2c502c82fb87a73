"""Sessions with one plugin whose chosen hook misbehaves and one that is well, under either host."""

from __future__ import annotations

import itertools
import os
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import devprof
from devprof.contract import (
    ClockDomain,
    CorrelationAccess,
    NativeCorrelation,
    SessionConfig,
    TraceStatus,
)
from devprof.errors import DevprofWarning, SessionError
from devprof.model import ActivityType, DeviceInfo, GenericTraceActivity, ResourceInfo
from devprof.testing import ScriptedProfiler
from tests.faults.matrix import PER_OP, WHILE_RECORDING

__all__ = ["BUDGET_S", "LIMIT", "Faults", "FaultyProfiler", "Seen", "session"]

BUDGET_S = 0.2
"""Time budget of a hook where one hangs, seconds."""

LIMIT = 50
"""Most records per plugin in these sessions."""

_numbers = itertools.count(1)

Work = Callable[..., Any]
"""What a hook does where it does no harm."""
Trouble = Callable[[Work], Any]
"""What it does instead, or around that."""

_RIGHT: dict[str, Any] = {
    "native_correlation": NativeCorrelation(0, 0),
    "clock_domain": ClockDomain("ticks"),
    "sample_clock": 1,
    "status": TraceStatus.READY,
}
"""What hooks return that a scripted session does not have by itself."""


class FaultyProfiler(ScriptedProfiler):
    """A plugin that delivers one kernel; one of its hooks calls `trouble` with what does its work."""

    def __init__(self, hook: str, trouble: Trouble | None) -> None:
        super().__init__(
            label=f"faulty {next(_numbers)}",
            script=lambda start_ns, end_ns: [_kernel("its own", (start_ns + end_ns) // 2)],
            correlation=CorrelationAccess.NATIVE if hook == "native_correlation" else CorrelationAccess.PYTHON,
        )
        self.hook, self.trouble = hook, trouble
        self.called = False

    def configure(self, activity_types: Any, config: SessionConfig, **times: Any) -> Any:
        def work() -> Any:
            return self._faulty(super(FaultyProfiler, self).configure(activity_types, config, **times))

        return self._call("configure", work)

    def _call(self, hook: str, work: Work) -> Any:
        if hook != self.hook:
            return work()
        self.called = True
        return work() if self.trouble is None else self.trouble(work)

    def _faulty(self, session: Any) -> Any:
        hook = self.hook
        if hook == "sample_clock":
            session.clock_domain = lambda: ClockDomain("ticks", 1e9)
            session.sample_clock = lambda: self._call(hook, time.time_ns)
            return session
        usual = getattr(session, hook, lambda *args: _RIGHT[hook])
        if hook == "process_trace":
            session.process_trace = self._process_trace
        elif hook == "flush_trace":
            session.flush_trace = self._flush_trace
        elif hook != "configure":
            setattr(session, hook, lambda *args: self._call(hook, lambda: usual(*args)))
        if hook == "clock_domain":
            # its batches stay on the host's clock
            session.clock_domain = lambda: self._call(hook, lambda: None)
        return session

    def _process_trace(self, logger: Any, get_linked_activity: Any, start_ns: int, end_ns: int) -> Any:
        def work(times: int = 1) -> None:
            for _ in range(times):
                logger.handle_activity(_kernel("its own", (start_ns + end_ns) // 2))

        return self._call("process_trace", work)

    def _flush_trace(self, logger: Any) -> Any:
        def work(times: int = 0) -> None:
            for _ in range(times):
                logger.handle_activity(_kernel("its own", time.time_ns()))

        return self._call("flush_trace", work)


def _kernel(name: str, start_ns: int) -> GenericTraceActivity:
    return GenericTraceActivity(ActivityType.CONCURRENT_KERNEL, name, start_ns, start_ns + 10)


@dataclass
class Seen:
    """What there is to see of one session.

    Attributes:
        verdict: the plugin's, as the account has it, or None.
        own: how many of the plugin's own records are in the trace.
        told: devprof's warnings.
        marked: labels of the plugin's rows.
        names: of the host's own events and of the other plugin's.
        clean: as the report says.
        prof: the profile.
        in_trace: the verdict as the trace has it.
        failures: as the account has them.
    """

    verdict: Any
    own: int
    told: list[str]
    marked: list[str]
    names: list[str]
    clean: bool
    prof: Any
    in_trace: Any = None
    failures: list[str] = field(default_factory=list)


def session(host: str, plugin: FaultyProfiler, neighbour: ScriptedProfiler, holder: list[Any] | None = None) -> Seen:
    """Run one session in which everything is called that a session can call, and look at all of it."""
    activities = ["cpu", plugin.label, neighbour.label]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        prof = devprof.profile(host=host, activities=activities)
        if holder is not None:
            holder[:] = [prof]
        with prof:
            with devprof.record_function("range"), devprof.RecordFunction("op"):
                pass
            prof.toggle_collection_dynamic(False, [plugin.label])
            prof.toggle_collection_dynamic(True, [plugin.label])
            if plugin.hook in WHILE_RECORDING:
                prof.snapshot()
    told = [str(one.message) for one in caught if issubclass(one.category, DevprofWarning)]
    trace, ledger = prof.trace, prof.report.ledgers[plugin.label]
    names = sorted(trace.name_of(event) for event in range(len(trace)))
    return Seen(
        verdict=ledger.set_aside,
        own=names.count("its own"),
        told=told,
        marked=[place.label for place in trace.places if "in " in place.label],
        names=[name for name in names if name != "its own"],
        clean=prof.report.clean,
        prof=prof,
        in_trace=trace.facts["report"]["plugins"][plugin.label]["set_aside"],
        failures=ledger.failures,
    )


_DEVICE, _ROW = DeviceInfo(0, "device"), ResourceInfo(0, 0, "stream")


class _Endless(Sequence[Any]):
    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: Any) -> Any:
        return _DEVICE


def _raise(work: Work) -> Any:
    raise SystemExit("broken plugin")


def _flood(hook: str) -> Trouble:
    floods = {
        "errors": lambda: ["lost"] * 100_001,
        "get_device_infos": _Endless,
        "get_resource_infos": lambda: [_ROW] * 100_001,
        "get_device_properties": lambda: [{"id": 0}] * 100_001,
        "get_metadata": lambda: {str(number): number for number in range(100_001)},
    }
    if hook in ("flush_trace", "process_trace"):
        return lambda work: work(20 * LIMIT)
    return lambda work: floods.get(hook, lambda: [0] * 1_000_000)()


class Faults:
    """The faults of one test, and what they left.

    Attributes:
        released: lets go of a hook that hangs.
        refused: what a hook was told that re-entered.
        children: processes that a hook forked.
        running: the profile that runs.
    """

    def __init__(self, host: str) -> None:
        self.host = host
        self.released = threading.Event()
        self.refused: list[str] = []
        self.children: list[int] = []
        self.running: list[Any] = []

    def of(self, hook: str, fault: str) -> Trouble:
        """Return what the hook does."""
        if fault == "flood":
            return _flood(hook)
        if fault == "hang" and hook in PER_OP:
            return self.slow
        ways: dict[str, Trouble] = {
            "raise": _raise,
            "wrong type": lambda work: object(),
            "hang": self._hang,
            "re-enter": self._re_enter,
            "call torch": self._call_torch,
            "fork": self._fork,
        }
        return ways[fault]

    def _hang(self, work: Work) -> Any:
        self.released.wait(60)

    def slow(self, work: Work) -> Any:
        self.released.wait(2 * BUDGET_S)
        return work()

    def _re_enter(self, work: Work) -> Any:
        calls = [devprof.profile(host=self.host, activities=["cpu"]).start, *(one.stop for one in self.running)]
        for call in calls[:1] if len(self.refused) > 20 else calls:
            try:
                call()
            except SessionError as error:
                self.refused.append(str(error))
        return work()

    def _call_torch(self, work: Work) -> Any:
        import torch

        (torch.ones(3) @ torch.ones(3)).relu()
        return work()

    def _fork(self, work: Work) -> Any:
        if not self.children and (child := os.fork()) != 0:
            self.children.append(child)
        return work()
