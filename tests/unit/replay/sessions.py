"""Sessions of a made-up backend, recorded without a host; and the toy of this folder's tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from typing import Any

from devprof.contract import Capabilities, ClockDomain, SessionConfig, TraceStatus
from devprof.model import ActivityBatch, ActivityType, DeviceInfo, GenericTraceActivity, ResourceInfo
from devprof.replay import Recorder, Recording

KERNEL, CALL = ActivityType.CONCURRENT_KERNEL, ActivityType.PRIVATEUSE1_RUNTIME
CLOCK = "npu"
ZERO_NS = 1_700_000_000_000_000_000


class Clock:
    """A host's clock that a test moves; every look moves it by a microsecond."""

    def __init__(self) -> None:
        self.now = ZERO_NS

    def __call__(self) -> int:
        self.now += 1000
        return self.now


class Session:
    """Two calls in Unix ns and two kernels in ticks, the second with an op that nobody knows."""

    def __init__(self, clock: Clock, memory: Any) -> None:
        self.clock = clock
        self.memory = memory

    def start(self) -> None:
        pass

    def stop(self) -> None:
        pass

    def clock_domain(self) -> ClockDomain:
        return ClockDomain(CLOCK, 1e9)

    def sample_clock(self) -> int:
        return self.clock() - ZERO_NS

    def process_trace(self, logger: Any, linked: Any, start_ns: int, end_ns: int) -> None:
        logger.handle_activities(ActivityBatch.from_activities(self.calls()))
        for kernel in self.kernels():
            logger.handle_activity(kernel)
        logger.handle_dropped(3, "the ring was full")
        logger.handle_dropped(None, "the vendor does not say")
        logger.handle_device_info(DeviceInfo(0, "npu 0", properties={"cores": 4}))

    def calls(self) -> list[GenericTraceActivity]:
        at = ZERO_NS + 50_000
        return [
            GenericTraceActivity(
                CALL, "launch", at + 10_000 * n, at + 10_000 * n + 500, id=n, thread_id=77, linked=40 + n
            )
            for n in (1, 2)
        ]

    def kernels(self) -> list[GenericTraceActivity]:
        start = 60_000
        return [
            GenericTraceActivity(
                KERNEL,
                f"kernel {n}",
                start + 10_000 * n,
                start + 10_000 * n + 5_000,
                id=n,
                resource=3,
                thread_id=77,
                linked=40 + n,
                metadata={"grid": (1, 2, n), "tile": 0.5, "kind": f"type {n}", "fused": n == 1}
                | ({"only": n} if n == 2 else {}),
            )
            for n in (1, 2)
        ]

    def get_resource_infos(self) -> Sequence[ResourceInfo]:
        return [ResourceInfo(3, 0, "queue 3")]

    def get_metadata(self) -> dict[str, object]:
        return {"temperature": float("nan"), "driver": ["1.0", 2, None, True], "nested": {"a": 1.5}}

    def status(self) -> TraceStatus:
        return TraceStatus.WARNING

    def errors(self) -> Sequence[str]:
        return ["a page fault"]


class Profiler:
    """Makes sessions."""

    def __init__(self, clock: Clock, session: type[Session] = Session) -> None:
        self.clock = clock
        self.session = session

    def name(self) -> str:
        return "npu"

    def capabilities(self) -> Capabilities:
        return Capabilities(torch_device="npu", description="a made-up device")

    def available_activities(self) -> Set[ActivityType]:
        return frozenset({KERNEL, CALL})

    def configure(
        self,
        activity_types: Set[ActivityType],
        config: SessionConfig,
        *,
        ts_ms: int | None = None,
        duration_ms: int | None = None,
    ) -> Any:
        return self.session(self.clock, config.memory)


class Nothing:
    """Takes every call and keeps nothing."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *args: None


def drive(profiler: Any, config: SessionConfig, body: Callable[[Any], None] = lambda session: None) -> Any:
    """Take a session through its life."""
    session = profiler.configure(profiler.available_activities(), config)
    session.clock_domain()
    session.sample_clock()
    start_ns = config.now_ns()
    session.start()
    body(session)
    end_ns = config.now_ns() + 200_000
    session.stop()
    session.sample_clock()
    session.process_trace(Nothing(), lambda op_id: True, start_ns, end_ns)
    for hook in ("status", "errors", "get_resource_infos", "get_metadata"):
        getattr(session, hook)()
    return session


def recording_of(
    session: type[Session] = Session, body: Callable[[Any], None] = lambda session: None, **options: Any
) -> Recording:
    """Record one session."""
    clock = Clock()
    profiler = Profiler(clock, session)
    with Recorder(profiler) as recorder:
        drive(profiler, SessionConfig(host="python", now_ns=clock, memory=Nothing()), body)
    return recorder.recording(**options)
