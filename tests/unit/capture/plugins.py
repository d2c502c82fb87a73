"""Plugins for the tests of this room: one that does what a test tells it, and one that does the least."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

from devprof.capture import Outcome, PhaseRunner
from devprof.contract import (
    ActivityLogger,
    Capabilities,
    ClockDomain,
    CorrelationAccess,
    GetLinkedActivity,
    IActivityProfilerSession,
    NativeCorrelation,
    SessionConfig,
    TraceStatus,
)
from devprof.model import ActivityBatch, ActivityType, DeviceInfo, GenericTraceActivity, ResourceInfo
from devprof.registry import PluginInfo, RegisteredProfiler

KINDS = frozenset({ActivityType.CONCURRENT_KERNEL, ActivityType.GPU_MEMCPY, ActivityType.GPU_USER_ANNOTATION})
CONFIG = SessionConfig(host="python", now_ns=lambda: 1_000)
KERNEL = GenericTraceActivity(ActivityType.CONCURRENT_KERNEL, "k", 10, 20)

Deliver = Callable[[ActivityLogger], object]


class PatientRunner(PhaseRunner):
    """Gives up when a hook says that it hangs, and not before: no test depends on how fast a machine is."""

    def __init__(self, **options: Any) -> None:
        super().__init__(timeout_s=60.0, **options)
        self.hung = threading.Event()

    @property
    def timeout_s(self) -> float:
        return 0.0 if self.hung.is_set() else 60.0

    def beside(self) -> PhaseRunner:
        return self

    def run(self, label: str, phase: Callable[[], object]) -> Outcome:
        self.hung.clear()
        return super().run(label, phase)


class Session:
    """Has every hook; answers as told, or misbehaves in the hooks that have a fault."""

    def __init__(self, faults: Mapping[str, Callable[[], Any]], deliver: Deliver, clock: ClockDomain | None) -> None:
        self.calls: list[str] = []
        self.threads: dict[str, str] = {}
        self._faults = faults
        self._deliver = deliver
        self._clock = clock
        self._ticks = 0

    def _does(self, hook: str, answer: Any = None) -> Any:
        self.calls.append(hook)
        self.threads[hook] = threading.current_thread().name
        return self._faults[hook]() if hook in self._faults else answer

    def start(self) -> Any:
        return self._does("start")

    def stop(self) -> Any:
        return self._does("stop")

    def status(self) -> Any:
        return self._does("status", TraceStatus.READY)

    def errors(self) -> Any:
        return self._does("errors", [])

    def process_trace(self, logger: ActivityLogger, linked: GetLinkedActivity, start_ns: int, end_ns: int) -> Any:
        self.logger, self.window = logger, (start_ns, end_ns)
        self._deliver(logger)
        return self._does("process_trace")

    def get_device_infos(self) -> Any:
        return self._does("get_device_infos", [DeviceInfo(0, "demo 0")])

    def get_resource_infos(self) -> Any:
        return self._does("get_resource_infos", (ResourceInfo(7, 0, "stream 7"),))

    def get_device_properties(self) -> Any:
        return self._does("get_device_properties", [{"id": 0}])

    def get_metadata(self) -> Any:
        return self._does("get_metadata", {"driver": "1.0"})

    def get_trace_buffer(self) -> Any:
        return self._does("get_trace_buffer")

    def clock_domain(self) -> Any:
        return self._does("clock_domain", self._clock)

    def sample_clock(self) -> Any:
        self._ticks += 1
        return self._does("sample_clock", self._ticks)

    def native_correlation(self) -> Any:
        return self._does("native_correlation", NativeCorrelation(1, 2))

    def push_correlation_id(self, id: int) -> Any:
        return self._does("push_correlation_id")

    def pop_correlation_id(self) -> Any:
        return self._does("pop_correlation_id")

    def push_user_correlation_id(self, id: int) -> Any:
        return self._does("push_user_correlation_id")

    def pop_user_correlation_id(self) -> Any:
        return self._does("pop_user_correlation_id")

    def toggle_collection_dynamic(self, enabled: bool) -> Any:
        return self._does("toggle_collection_dynamic")


class BareSession:
    """The least that a session is."""

    calls: Sequence[str] = ()

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def process_trace(self, logger: ActivityLogger, linked: GetLinkedActivity, start_ns: int, end_ns: int) -> None:
        logger.handle_activities(ActivityBatch.from_activities([KERNEL]))


class Profiler:
    """Makes one session per capture and keeps them."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.sessions: list[Any] = []
        self.asked: list[Set[ActivityType]] = []
        self._make = make

    def name(self) -> str:
        return "demo"

    def capabilities(self) -> Capabilities:
        return Capabilities()

    def available_activities(self) -> Set[ActivityType]:
        return KINDS

    def configure(
        self,
        activity_types: Set[ActivityType],
        config: SessionConfig,
        *,
        ts_ms: int | None = None,
        duration_ms: int | None = None,
    ) -> IActivityProfilerSession | None:
        self.asked.append(activity_types)
        session: IActivityProfilerSession | None = self._make()
        self.sessions.append(session)
        return session


def one_kernel(logger: ActivityLogger) -> None:
    """Deliver one record."""
    logger.handle_activity(KERNEL)


def plugin(
    name: str = "demo",
    *,
    faults: Mapping[str, Callable[[], Any]] | None = None,
    deliver: Deliver = one_kernel,
    clock: ClockDomain | None = None,
    correlation: CorrelationAccess = CorrelationAccess.READ,
    make: Callable[[], Any] | None = None,
) -> RegisteredProfiler:
    """Return a registered plugin whose sessions are `Session`s, or what `make` gives."""
    profiler = Profiler(make or (lambda: Session(faults or {}, deliver, clock)))
    return RegisteredProfiler(name, profiler, Capabilities(correlation=correlation), KINDS, PluginInfo(name))


def session_of(registered: RegisteredProfiler) -> Any:
    """Return the plugin's latest session."""
    profiler = registered.profiler
    assert isinstance(profiler, Profiler)
    return profiler.sessions[-1]
