"""A small device and a right plugin for it: what the zoo's plugins are made of, each with one thing wrong.

The device runs nothing. It gives each launch a place on a timeline and tells a profiler about it, as a vendor's library would:
device work in ticks of a clock of its own, host calls in the host's time.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any

from devprof import correlation
from devprof.contract import (
    ActivityLogger,
    Capabilities,
    ClockDomain,
    CorrelationAccess,
    GetLinkedActivity,
    SessionConfig,
    TraceStatus,
)
from devprof.model import ActivityBatch, ActivityType, DeviceInfo, GenericTraceActivity, ResourceInfo

KERNEL, COPY, SET = ActivityType.CONCURRENT_KERNEL, ActivityType.GPU_MEMCPY, ActivityType.GPU_MEMSET
CALL = ActivityType.PRIVATEUSE1_RUNTIME
CLOCK = "toy"
N_DEVICES = N_STREAMS = 2
WORK_NS = 1_000


class ToyError(RuntimeError):
    """What the device's calls raise."""


@dataclass(slots=True)
class Done:
    """One call and the pieces of work that it caused."""

    call: GenericTraceActivity
    work: list[GenericTraceActivity] = field(default_factory=list)


class ToyDevice:
    """Two devices with two streams each, and a driver that tells one listener of every call."""

    def __init__(self) -> None:
        self.calls = 0
        self.listener: Callable[[Done], None] | None = None
        self.memory_listener: Any = None
        self.error: str | None = None
        self.lost = 0
        self._losing = 0
        self._fails = False
        self._tails: dict[tuple[int, int], int] = {}
        self._allocated: dict[int, int] = {}
        self._numbers = itertools.count(1)
        self.lock = threading.Lock()

    def ticks(self) -> int:
        return time.perf_counter_ns()

    def launch(self, kind: ActivityType, name: str, n: int = 1, device: int = 0, stream: int = 0, **items: Any) -> None:
        with self.lock:
            self.calls += 1
            if self._fails:
                self._fails, self.error = False, "launch failed"
                raise ToyError(self.error)
            done = self._done(kind, name, n, device, stream, items)
            if self.listener is None:
                return
            if self._losing:
                self._losing -= 1
                self.lost += 1
            else:
                self.listener(done)

    def _done(self, kind: ActivityType, name: str, n: int, device: int, stream: int, items: Mapping[str, Any]) -> Done:
        number, thread = next(self._numbers), threading.get_native_id()
        began_ns, now = time.time_ns(), self.ticks()
        call = GenericTraceActivity(CALL, f"toyLaunch {name}", began_ns, began_ns + 1, id=number, thread_id=thread)
        done = Done(call)
        for _ in range(n):
            start = max(now, self._tails.get((device, stream), 0))
            end = self._tails[device, stream] = start + WORK_NS
            place = {"device": device, "resource": stream, "thread_id": thread}
            done.work.append(GenericTraceActivity(kind, name, start, end, id=number, metadata=items, **place))
        call.end_ns = time.time_ns()
        return done

    def synchronize(self) -> None:
        with self.lock:
            self.calls += 1
        while self.ticks() < max(self._tails.values(), default=0):
            pass
        error, self.error = self.error, None
        if error:
            raise ToyError(error)

    def allocate(self, n_bytes: int) -> int:
        address = 4096 * next(self._numbers)
        self._allocated[address] = n_bytes
        self.report(address, n_bytes)
        return address

    def free(self, address: int) -> None:
        self.report(address, -self._allocated.pop(address))

    def report(self, address: int, delta_bytes: int) -> None:
        if self.memory_listener is not None:
            total = sum(self._allocated.values())
            self.memory_listener.report_memory_usage(address, delta_bytes, total, total, 0)

    def lose(self, n: int) -> None:
        self._losing = n

    def fail(self) -> None:
        self._fails = True


class ToyWorkload:
    """How to make the toy work."""

    devices = N_DEVICES
    streams = N_STREAMS
    exact_names = True

    def __init__(self, device: ToyDevice) -> None:
        self.toy = device
        self.allocate, self.free = device.allocate, device.free
        self.lose, self.fail = device.lose, device.fail
        self.synchronize = device.synchronize

    def launch(self, name: str, n: int, device: int = 0, stream: int = 0) -> None:
        for _ in range(n):
            self.toy.launch(KERNEL, name, device=device, stream=stream, grid=(1, 1, 1), block=(64, 1, 1))

    def graph(self, name: str, n: int) -> None:
        self.toy.launch(KERNEL, name, n)

    def copy(self, n_bytes: int) -> None:
        self.toy.launch(COPY, "copy", bytes=n_bytes)

    def set(self, n_bytes: int) -> None:
        self.toy.launch(SET, "set", bytes=n_bytes)

    def device_calls(self) -> int:
        return self.toy.calls


class ToySession:
    """A right session. A zoo's session overrides one method."""

    def __init__(self, profiler: ToyProfiler, kinds: Set[ActivityType], config: SessionConfig) -> None:
        self.profiler = profiler
        self.device = profiler.device
        self.kinds = frozenset(kinds)
        self.config = config
        self.done: list[Done] = []
        self.said: list[str] = []
        self.stacks: dict[int, list[int]] = {}
        self.recording = False
        self.lost_before = 0

    # -- life

    def start(self) -> None:
        self.recording = True
        self.lost_before = self.device.lost
        self.device.listener = self.on_call
        if self.config.profile_memory:
            self.device.memory_listener = self.config.memory

    def stop(self) -> None:
        if not self.recording:
            return
        self.recording = False
        self.device.listener = self.device.memory_listener = None
        self.wait()

    def wait(self) -> None:
        try:
            self.device.synchronize()
        except ToyError as error:
            self.said.append(str(error))

    def toggle_collection_dynamic(self, enabled: bool) -> None:
        self.device.listener = self.on_call if enabled else None

    # -- records

    def ids(self) -> tuple[int, int]:
        """Return the op id and the user id of a launch on this thread."""
        return correlation.current()

    def on_call(self, done: Done) -> None:
        op, user = self.ids()
        self.done.append(
            Done(
                replace(done.call, linked=op, linked_user=user),
                [replace(one, linked=op, linked_user=user) for one in done.work],
            )
        )

    def host_calls(self) -> list[GenericTraceActivity]:
        return [one.call for one in self.done if CALL in self.kinds]

    def device_work(self) -> list[GenericTraceActivity]:
        return [work for one in self.done for work in one.work if work.activity_type in self.kinds]

    def process_trace(self, logger: ActivityLogger, linked: GetLinkedActivity, start_ns: int, end_ns: int) -> None:
        deliver(logger, self.host_calls(), "unix_ns")
        deliver(logger, self.device_work(), self.clock())
        if lost := self.lost():
            logger.handle_dropped(lost, "the driver's buffer was full")

    def flush_trace(self, logger: ActivityLogger) -> None:
        with self.device.lock:
            deliver(logger, self.host_calls(), "unix_ns")
            deliver(logger, self.device_work(), self.clock())
            self.done = []

    def lost(self) -> int:
        return self.device.lost - self.lost_before

    def clock(self) -> str:
        return CLOCK

    def clock_domain(self) -> ClockDomain | None:
        return ClockDomain(CLOCK, 1e9)

    def sample_clock(self) -> int:
        return self.device.ticks()

    # -- facts

    def status(self) -> TraceStatus:
        return TraceStatus.READY

    def errors(self) -> Sequence[str]:
        return self.said

    def get_device_infos(self) -> Sequence[DeviceInfo]:
        return [DeviceInfo(index, f"toy {index}") for index in range(N_DEVICES)]

    def get_resource_infos(self) -> Sequence[ResourceInfo]:
        return [ResourceInfo(s, d, f"stream {s}") for d in range(N_DEVICES) for s in range(N_STREAMS)]

    def get_device_properties(self) -> Sequence[Mapping[str, object]]:
        return [{"id": index, "name": "toy"} for index in range(N_DEVICES)]

    def get_metadata(self) -> Mapping[str, object]:
        return {"toy driver": "1.0"}

    def get_trace_buffer(self) -> None:
        self.done = []

    # -- pushes

    def ops(self) -> list[int]:
        """Return the stack of op ids of the calling thread, for a plugin that is told of each op.

        Kept by the system's number of the thread: a `threading.local` is a new one at each call from a thread of torch's own.
        """
        return self.stacks.setdefault(threading.get_native_id(), [])

    def push_correlation_id(self, id: int) -> None:
        self.ops().append(id)

    def pop_correlation_id(self) -> None:
        if self.ops():
            self.ops().pop()


class PushedSession(ToySession):
    """A right session of a plugin that keeps its own stack of ops."""

    def ids(self) -> tuple[int, int]:
        stack = self.ops()
        return (stack[-1] if stack else 0), correlation.current_user_id()


def deliver(logger: ActivityLogger, records: Iterable[GenericTraceActivity], clock: str) -> None:
    records = list(records)
    if records:
        logger.handle_activities(ActivityBatch.from_activities(records, clock=clock))


class ToyProfiler:
    """A right profiler. A zoo's profiler overrides one method, or makes another session."""

    session: type[ToySession] = ToySession
    access = CorrelationAccess.READ

    def __init__(self, device: ToyDevice, torch_device: str | None = None) -> None:
        self.device = device
        self.torch_device = torch_device

    def name(self) -> str:
        return "toy"

    def capabilities(self) -> Capabilities:
        return Capabilities(torch_device=self.torch_device, correlation=self.access)

    def available_activities(self) -> Set[ActivityType]:
        return frozenset({KERNEL, COPY, SET, CALL})

    def configure(
        self,
        activity_types: Set[ActivityType],
        config: SessionConfig,
        *,
        ts_ms: int | None = None,
        duration_ms: int | None = None,
    ) -> Any:
        return self.session(self, activity_types, config)


class PushedProfiler(ToyProfiler):
    """A right profiler that is told of each op."""

    session = PushedSession
    access = CorrelationAccess.PYTHON


class ToyStubs:
    """Right stubs."""

    torch_device = "toy"

    def __init__(self, device: ToyDevice) -> None:
        self.device = device

    def record(self) -> Any:
        return self.device.ticks()

    def elapsed(self, start: Any, end: Any) -> float:
        return (end - start) / 1e3  # type: ignore[no-any-return]

    def mark(self, name: str) -> None:
        pass

    def range_push(self, name: str) -> None:
        pass

    def range_pop(self) -> None:
        pass

    def enabled(self) -> bool:
        return True

    def on_each_device(self, visit: Callable[[int], None]) -> None:
        for index in range(N_DEVICES):
            visit(index)

    def synchronize(self) -> None:
        self.device.synchronize()
