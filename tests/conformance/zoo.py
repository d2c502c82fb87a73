"""The zoo: for every check a plugin that breaks just what the check is about.

Each animal is the right toy with one thing wrong. `COMPANIONS` lists, for a defect that cannot but break another promise too,
which other checks catch it.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence, Set
from dataclasses import replace
from typing import Any

from toy import (
    CALL,
    CLOCK,
    KERNEL,
    WORK_NS,
    Done,
    PushedProfiler,
    PushedSession,
    ToyDevice,
    ToyProfiler,
    ToySession,
    ToyStubs,
    ToyWorkload,
)

from devprof import correlation
from devprof.contract import ActivityLogger, Capabilities, ClockDomain, SessionConfig
from devprof.model import (
    ActivityType,
    DeviceInfo,
    Flow,
    GenericTraceActivity,
    ResourceInfo,
    kLinkAsyncCpuGpu,
)
from devprof.testing import plugin_of

__all__ = ["ANIMALS", "COMPANIONS", "Animal", "imported"]

Record = GenericTraceActivity


class Animal:
    """One broken plugin: a profiler, a session, stubs or a device of which one thing is wrong.

    Attributes:
        number: number of the check that catches it.
        defect: what is wrong, in words.
        importable: how a fresh interpreter finds it; empty: not at all.
    """

    def __init__(
        self,
        number: str,
        defect: str,
        *,
        profiler: type[ToyProfiler] = ToyProfiler,
        session: type[ToySession] | None = None,
        device: type[ToyDevice] = ToyDevice,
        stubs: type[ToyStubs] = ToyStubs,
        importable: str = "",
    ) -> None:
        self.number = number
        self.defect = defect
        self.importable = importable
        self._kinds = profiler, session, device, stubs

    def plugin(self, torch_device: str | None = None) -> tuple[Any, ToyWorkload]:
        """Return a fresh plugin, which serves that backend of torch's, and its workload."""
        profiler_kind, session, device_kind, stubs = self._kinds
        device = device_kind()
        profiler = profiler_kind(device, torch_device)
        if session is not None:
            profiler.session = session
        return plugin_of(profiler, stubs=stubs(device)), ToyWorkload(device)


def _session(*bases: type[ToySession], **methods: Callable[..., Any]) -> type[ToySession]:
    return type("BrokenSession", bases or (ToySession,), methods)


# -- 1: registration and lifecycle -------------------------------------------------------------------------------------


class Renamed(ToyProfiler):
    asked = 0

    def name(self) -> str:
        self.asked += 1
        return f"toy {self.asked}"


class OldContract(ToyProfiler):
    def capabilities(self) -> Capabilities:
        return Capabilities(contract_version=(9, 0))


class StartsThread(ToyProfiler):
    def capabilities(self) -> Capabilities:
        threading.Thread(target=time.sleep, args=(5,), name="toy poller", daemon=True).start()
        return super().capabilities()


def imported() -> ToyProfiler:
    """Return the profiler that starts a thread when it is asked what it is; for a fresh interpreter."""
    return StartsThread(ToyDevice())


class AsksDevice(ToyProfiler):
    def available_activities(self) -> Set[ActivityType]:
        self.device.calls += 1
        return super().available_activities()


class ClaimsOps(ToyProfiler):
    def available_activities(self) -> Set[ActivityType]:
        return super().available_activities() | {ActivityType.CPU_OP}


def _no_devices(self: ToySession) -> Any:
    return None


def _listen_at_once(self: ToySession, *args: Any) -> None:
    ToySession.__init__(self, *args)
    self.early = 0  # type: ignore[attr-defined]
    self.device.listener = self.on_call


def _start_counting(self: ToySession) -> None:
    self.early = len(self.done)  # type: ignore[attr-defined]
    ToySession.start(self)


def _last_for_first(self: ToySession) -> list[Record]:
    # meant to leave out what came in the warm-up, and cuts at the wrong end
    work = ToySession.device_work(self)
    return work[: len(work) - self.early]  # type: ignore[attr-defined]


class Exclusive(ToyProfiler):
    taken = False

    def configure(self, activity_types: Set[ActivityType], config: SessionConfig, **planned: Any) -> Any:
        if self.taken:
            return None
        self.taken = True
        return super().configure(activity_types, config, **planned)


def _stop_and_give_back(self: ToySession) -> None:
    ToySession.stop(self)
    self.profiler.taken = False  # type: ignore[attr-defined]


def _stop_must_have_started(self: ToySession) -> None:
    if not self.recording and not self.done:
        raise RuntimeError("stop without start")
    ToySession.stop(self)


def _stop_clears(self: ToySession) -> None:
    if not self.recording:
        self.done = []
    ToySession.stop(self)


class RecordsOn(ToyProfiler):
    """Its driver records between sessions too, into the buffer of the next one."""

    def __init__(self, device: ToyDevice, torch_device: str | None = None) -> None:
        super().__init__(device, torch_device)
        self.between: list[Done] = []


def _start_with_leftovers(self: ToySession) -> None:
    ToySession.start(self)
    between = self.profiler.between  # type: ignore[attr-defined]
    self.done += between
    between.clear()


def _stop_and_record_on(self: ToySession) -> None:
    was = self.recording
    ToySession.stop(self)
    if was:
        self.device.listener = self.profiler.between.append  # type: ignore[attr-defined]


# -- 2: activity selection ---------------------------------------------------------------------------------------------


def _all_work(self: ToySession) -> list[Record]:
    return [work for one in self.done for work in one.work]


def _kernels_need_calls(self: ToySession) -> list[Record]:
    return ToySession.device_work(self) if CALL in self.kinds else []


def _only_with_ops(self: ToySession) -> list[Record]:
    work = ToySession.device_work(self)
    return work if any(one.linked for one in work) else []


def _ignore_toggle(self: ToySession, enabled: bool) -> None:
    pass


# -- 3: correlation ----------------------------------------------------------------------------------------------------


def _outermost(self: ToySession) -> tuple[int, int]:
    stack = self.ops()
    return (stack[0] if stack else 0), correlation.current_user_id()


def _no_user(self: ToySession) -> tuple[int, int]:
    return correlation.current_op_id(), 0


def _one_stack(self: ToySession) -> list[int]:
    return self.stacks.setdefault(0, [])


def _sticky(self: ToySession) -> tuple[int, int]:
    op, user = correlation.current()
    self.last = op or getattr(self, "last", 0)  # type: ignore[attr-defined]
    return self.last, user  # type: ignore[attr-defined]


def _stack_of_the_profiler(self: ToySession) -> list[int]:
    if not hasattr(self.profiler, "stacks"):
        self.profiler.stacks = {}  # type: ignore[attr-defined]
    return self.profiler.stacks.setdefault(threading.get_native_id(), [])  # type: ignore[attr-defined, no-any-return]


def _cut_ids(self: ToySession) -> tuple[int, int]:
    op, user = correlation.current()
    return op & 0x7FFFFFFF, user


def _pop_needs_push(self: ToySession) -> None:
    self.ops().pop()


def _thread_local_stack(self: ToySession) -> list[int]:
    if not hasattr(self, "local"):
        self.local = threading.local()  # type: ignore[attr-defined]
    if not hasattr(self.local, "ops"):  # type: ignore[attr-defined]
        self.local.ops = []  # type: ignore[attr-defined]
    return self.local.ops  # type: ignore[attr-defined, no-any-return]


# -- 4: linking and flows ----------------------------------------------------------------------------------------------


def _twice(self: ToySession) -> list[Record]:
    work = ToySession.device_work(self)
    return work + [replace(one, start_ns=one.start_ns + 1) for one in work]


def _own_numbers(self: ToySession, done: Done) -> None:
    for one in (done.call, *done.work):
        one.linked = 10**6 + one.id
    self.done.append(done)


def _unlinked(self: ToySession, done: Done) -> None:
    self.done.append(done)


def _calls_numbered_apart(self: ToySession) -> list[Record]:
    return [replace(one, id=one.id + 10**6) for one in ToySession.host_calls(self)]


def _nodes_numbered_apart(self: ToySession) -> list[Record]:
    # as `on_call` keeps them: the first piece of work of each launch is right
    later = {id(work): 10**6 * at for one in self.done for at, work in enumerate(one.work)}
    return [replace(one, id=one.id + later[id(one)]) for one in ToySession.device_work(self)]


def _as_driver_calls(self: ToySession) -> list[Record]:
    driver = ActivityType.PRIVATEUSE1_DRIVER
    work = [one for one in ToySession.device_work(self) if one.activity_type is not KERNEL]
    kernels = [one for done in self.done for one in done.work if one.activity_type is KERNEL and driver in self.kinds]
    return work + [replace(one, activity_type=driver) for one in kernels]


class ClaimsDriver(ToyProfiler):
    def available_activities(self) -> Set[ActivityType]:
        return super().available_activities() | {ActivityType.PRIVATEUSE1_DRIVER}


def _calls_without_thread(self: ToySession) -> list[Record]:
    return [replace(one, thread_id=0) for one in ToySession.host_calls(self)]


def _one_arrow_for_all(self: ToySession) -> list[Record]:
    return [replace(one, flow=Flow(5, kLinkAsyncCpuGpu, True)) for one in ToySession.host_calls(self)]


def _numbered_per_stream(self: ToySession, done: Done) -> None:
    place = (done.work[0].device, done.work[0].resource)
    counts: Counter[tuple[int, int]] = vars(self).setdefault("counts", Counter())
    counts[place] += 1
    for one in (done.call, *done.work):
        one.id = counts[place]
    ToySession.on_call(self, done)


# -- 5: timing ---------------------------------------------------------------------------------------------------------


def _shifted(by: Callable[[ToySession, Record], int]) -> Callable[[ToySession], list[Record]]:
    """Return work whose times are off by so many ticks."""

    def work(self: ToySession) -> list[Record]:
        found = []
        for one in ToySession.device_work(self):
            off = by(self, one)
            found.append(replace(one, start_ns=one.start_ns + off, end_ns=one.end_ns + off))
        return found

    return work


def _no_end(self: ToySession) -> list[Record]:
    return [replace(one, end_ns=one.start_ns) for one in ToySession.device_work(self)]


def _from_the_end_of_the_last(self: ToySession) -> list[Record]:
    found: list[Record] = []
    for one in ToySession.device_work(self):
        gap = one.start_ns - found[-1].end_ns if found and found[-1].resource == one.resource else 0
        found.append(replace(one, start_ns=found[-1].end_ns) if 0 < gap < 50_000_000 else one)
    return found


def _long(self: ToySession) -> list[Record]:
    return [replace(one, end_ns=one.end_ns + 200 * WORK_NS) for one in ToySession.device_work(self)]


def _start_noting(self: ToySession) -> None:
    ToySession.start(self)
    self.began = self.device.ticks()  # type: ignore[attr-defined]


def _drift(self: ToySession, one: Record) -> int:
    return max(0, (one.start_ns - self.began - 100_000_000)) // 50  # type: ignore[attr-defined, no-any-return]


def _wrong_rate(self: ToySession) -> ClockDomain:
    return ClockDomain(CLOCK, 0.9e9)


# -- 6: loss -----------------------------------------------------------------------------------------------------------


def _small_ring(self: ToySession, done: Done) -> None:
    if len(self.done) < 500:
        ToySession.on_call(self, done)


def _negative_device(self: ToySession) -> list[Record]:
    calls = ToySession.host_calls(self)
    return calls + [replace(one, device=-1, id=one.id + 10**6) for one in calls[:1]]


def _no_loss(self: ToySession) -> int:
    return 0


def _flush_and_keep(self: ToySession, logger: ActivityLogger) -> None:
    done = list(self.done)
    ToySession.flush_trace(self, logger)
    self.done = done


def _all_losses(self: ToySession) -> int:
    return self.device.lost


# -- 7: texts, metadata, devices, memory -------------------------------------------------------------------------------


def _short_names(self: ToySession) -> list[Record]:
    return [replace(one, activity_name=one.activity_name[:64]) for one in ToySession.device_work(self)]


def _nameless_calls(self: ToySession) -> list[Record]:
    return [replace(one, activity_name="") for one in ToySession.host_calls(self)]


def _bytes_as_text(self: ToySession) -> list[Record]:
    return [replace(one, metadata={**one.metadata, "bytes": "64 B"}) for one in ToySession.device_work(self)]


def _not_json(self: ToySession) -> dict[str, object]:
    return {"temperature": float("nan")}


def _unnamed_streams(self: ToySession) -> Sequence[ResourceInfo]:
    return [ResourceInfo(7, 0, "stream 7")]


def _one_device(self: ToySession) -> list[Record]:
    return [replace(one, device=0, resource=one.resource + 10 * one.device) for one in ToySession.device_work(self)]


def _rows_of_one_device(self: ToySession) -> Sequence[ResourceInfo]:
    return [ResourceInfo(number, 0, f"queue {number}") for number in (0, 1, 10, 11)]


def _just_one(self: ToySession) -> Sequence[DeviceInfo]:
    return [DeviceInfo(0, "toy")]


def _one_stream(self: ToySession) -> list[Record]:
    return [replace(one, resource=0) for one in ToySession.device_work(self)]


class ForgetsSign(ToyDevice):
    def report(self, address: int, delta_bytes: int) -> None:
        super().report(address, abs(delta_bytes))


def _stop_and_keep_reporter(self: ToySession) -> None:
    listener = self.device.memory_listener
    ToySession.stop(self)
    self.device.memory_listener = listener


# -- 8: stubs ----------------------------------------------------------------------------------------------------------


class Milliseconds(ToyStubs):
    def elapsed(self, start: Any, end: Any) -> float:
        return super().elapsed(start, end) / 1e3


class VisitsOne(ToyStubs):
    def on_each_device(self, visit: Callable[[int], None]) -> None:
        visit(0)


class PopsNothing(ToyStubs):
    def __init__(self, device: ToyDevice) -> None:
        super().__init__(device)
        self.open: list[str] = []

    def range_push(self, name: str) -> None:
        self.open.append(name)

    def range_pop(self) -> None:
        self.open.pop()


class FourEvents(ToyStubs):
    """Takes its events from a ring of four."""

    def __init__(self, device: ToyDevice) -> None:
        super().__init__(device)
        self.ring = [[0], [0], [0], [0]]

    def record(self) -> Any:
        event = self.ring[0]
        event[0] = self.device.ticks()
        self.ring.append(self.ring.pop(0))
        return event

    def elapsed(self, start: Any, end: Any) -> float:
        return super().elapsed(start[0], end[0])


# -- 9: overload, faults, leaks, cost ----------------------------------------------------------------------------------


def _four_threads(self: ToySession, done: Done) -> None:
    threads = {one.call.thread_id for one in self.done} | {done.call.thread_id}
    if len(threads) <= 4:
        ToySession.on_call(self, done)


class KeepsError(ToyDevice):
    def synchronize(self) -> None:
        error = self.error
        try:
            super().synchronize()
        finally:
            self.error = error


class KeepsSessions(ToyProfiler):
    def __init__(self, device: ToyDevice, torch_device: str | None = None) -> None:
        super().__init__(device, torch_device)
        self.kept: list[Any] = []

    def configure(self, activity_types: Set[ActivityType], config: SessionConfig, **planned: Any) -> Any:
        self.kept.append(super().configure(activity_types, config, **planned))
        return self.kept[-1]


COLLECTOR = "toy collector"
"""Name of the threads that a leaky session leaves."""

ENDED = threading.Event()
"""Lets the threads go that a leaky session leaves."""


def _start_with_thread(self: ToySession) -> None:
    ToySession.start(self)
    threading.Thread(target=ENDED.wait, name=COLLECTOR, daemon=True).start()


def _slow_push(self: ToySession, id: int) -> None:
    time.sleep(0.0003)
    ToySession.push_correlation_id(self, id)


ANIMALS = (
    Animal("C101", "another name each time", profiler=Renamed),
    Animal("C102", "written for a later contract", profiler=OldContract),
    Animal("C103", "starts a thread when it is asked what it is", importable="zoo:imported"),
    Animal("C104", "asks the device what it can record", profiler=AsksDevice),
    Animal("C105", "claims the host's ops", profiler=ClaimsOps),
    Animal("C106", "a getter without a return", session=_session(get_device_infos=_no_devices)),
    Animal(
        "C107",
        "the last kernels taken for those of the warm-up",
        session=_session(__init__=_listen_at_once, start=_start_counting, device_work=_last_for_first),
    ),
    Animal(
        "C108",
        "takes the device at configure, gives it back at stop",
        profiler=Exclusive,
        session=_session(stop=_stop_and_give_back),
    ),
    Animal("C109", "a stop that must have had a start", session=_session(stop=_stop_must_have_started)),
    Animal("C110", "a second stop that clears the records", session=_session(stop=_stop_clears)),
    Animal(
        "C111",
        "records between sessions",
        profiler=RecordsOn,
        session=_session(start=_start_with_leftovers, stop=_stop_and_record_on),
    ),
    Animal("C201", "does not look at what it was asked for", session=_session(device_work=_all_work)),
    Animal("C202", "kernels only together with calls", session=_session(device_work=_kernels_need_calls)),
    Animal("C203", "nothing where no op is known", session=_session(device_work=_only_with_ops)),
    Animal("C204", "a toggle without effect", session=_session(toggle_collection_dynamic=_ignore_toggle)),
    Animal("C301", "the outermost op", profiler=PushedProfiler, session=_session(PushedSession, ids=_outermost)),
    Animal("C302", "no user ranges", session=_session(ids=_no_user)),
    Animal(
        "C303",
        "one stack for all threads",
        profiler=PushedProfiler,
        session=_session(PushedSession, ops=_one_stack),
    ),
    Animal("C304", "the last op's id stays", session=_session(ids=_sticky)),
    Animal(
        "C305",
        "a stack that outlives the session",
        profiler=PushedProfiler,
        session=_session(PushedSession, ops=_stack_of_the_profiler),
    ),
    Animal("C306", "ids of 31 bits", session=_session(ids=_cut_ids)),
    Animal(
        "C307",
        "a pop that needs a push",
        profiler=PushedProfiler,
        session=_session(PushedSession, pop_correlation_id=_pop_needs_push),
    ),
    Animal(
        "C308",
        "a stack in a threading.local",
        profiler=PushedProfiler,
        session=_session(PushedSession, ops=_thread_local_stack),
    ),
    Animal("C401", "every kernel twice", session=_session(device_work=_twice)),
    Animal("C402", "the device's number in place of the op's", session=_session(on_call=_own_numbers)),
    Animal("C403", "no op id at all", session=_session(on_call=_unlinked)),
    Animal("C404", "calls with numbers of their own", session=_session(host_calls=_calls_numbered_apart)),
    Animal("C405", "a number for each node of a graph", session=_session(device_work=_nodes_numbered_apart)),
    Animal("C406", "kernels as driver calls", profiler=ClaimsDriver, session=_session(device_work=_as_driver_calls)),
    Animal("C407", "calls without a thread", session=_session(host_calls=_calls_without_thread)),
    Animal("C408", "one key for all arrows", session=_session(host_calls=_one_arrow_for_all)),
    Animal("C409", "a number counted per stream", session=_session(on_call=_numbered_per_stream)),
    Animal("C501", "times of a monotonic clock as Unix ns", session=_session(clock=lambda self: "unix_ns")),
    Animal("C502", "an end at the start", session=_session(device_work=_no_end)),
    Animal("C503", "a start at the end of the kernel before", session=_session(device_work=_from_the_end_of_the_last)),
    Animal("C504", "an end that is seen late", session=_session(device_work=_long)),
    Animal(
        "C505",
        "an offset of 50 ms",
        session=_session(device_work=_shifted(lambda self, one: 50_000_000)),
    ),
    Animal(
        "C506",
        "a clock that drifts",
        session=_session(device_work=_shifted(_drift), start=_start_noting),
    ),
    Animal("C507", "a wrong rate", session=_session(clock_domain=_wrong_rate)),
    Animal("C601", "a small ring that is overwritten in silence", session=_session(on_call=_small_ring)),
    Animal("C602", "a record of device -1", session=_session(host_calls=_negative_device)),
    Animal("C603", "losses that are not told", session=_session(lost=_no_loss)),
    Animal("C604", "losses that are told again and again", session=_session(lost=_all_losses)),
    Animal("C605", "hands over a second time", session=_session(flush_trace=_flush_and_keep)),
    Animal("C701", "names of 64 letters", session=_session(device_work=_short_names)),
    Animal("C702", "calls without a name", session=_session(host_calls=_nameless_calls)),
    Animal("C703", "bytes as text", session=_session(device_work=_bytes_as_text)),
    Animal("C704", "NaN in the metadata", session=_session(get_metadata=_not_json)),
    Animal("C721", "streams without names", session=_session(get_resource_infos=_unnamed_streams)),
    Animal(
        "C722",
        "all devices are device 0",
        session=_session(device_work=_one_device, get_device_infos=_just_one, get_resource_infos=_rows_of_one_device),
    ),
    Animal("C723", "all streams are stream 0", session=_session(device_work=_one_stream)),
    Animal("C741", "releases with a positive size", device=ForgetsSign),
    Animal("C742", "reports memory after the stop", session=_session(stop=_stop_and_keep_reporter)),
    Animal("C801", "milliseconds", stubs=Milliseconds),
    Animal("C802", "only the current device", stubs=VisitsOne),
    Animal("C803", "a pop from an empty stack", stubs=PopsNothing),
    Animal("C804", "a pool of four events", stubs=FourEvents),
    Animal("C901", "records of four threads", session=_session(on_call=_four_threads)),
    Animal("C902", "an error that stays", device=KeepsError),
    Animal("C903", "keeps its sessions", profiler=KeepsSessions),
    Animal("C904", "a thread per session that does not end", session=_session(start=_start_with_thread)),
    Animal(
        "C905",
        "waits in every push",
        profiler=PushedProfiler,
        session=_session(PushedSession, push_correlation_id=_slow_push),
    ),
)

COMPANIONS: dict[str, frozenset[str]] = {}
"""Further checks that catch a defect, by the number of the check that it was made for."""
