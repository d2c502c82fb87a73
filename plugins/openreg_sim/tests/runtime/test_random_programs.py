"""Whatever a program does, the timeline obeys its streams, events and engines, and the activity records say the same.

Programs are random; an oracle works out from the calls what each piece of work had to wait for.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import given, settings
from hypothesis import strategies as st
from openreg_sim import activity
from openreg_sim.activity import EXTERNAL_CORRELATION_DTYPE, KERNEL_DTYPE, MEMCPY_DTYPE, ActivityKind
from openreg_sim.ring import CopyKind
from openreg_sim.runtime import Call, RealClock, Runtime, RuntimeConfig, use_runtime

DEVICES, STREAMS, EVENTS = 2, 3, 3

places = st.tuples(st.integers(0, DEVICES - 1), st.integers(0, STREAMS - 1))
events = st.integers(0, EVENTS - 1)
# of a size that matters, most of the time: from nothing to some hundred microseconds
flops = st.integers(0, 100).map(lambda share: share * 10**8)
sizes = st.integers(0, 100).map(lambda share: share * 10**5)
kinds_of_ids = st.sampled_from(activity.ExternalCorrelationKind)
# how often a step occurs, and what it is made of; often enough to have something to wait for, seldom a wait that ends it all
STEPS = {
    "launch": (10, places, flops),
    "copy": (8, places, st.sampled_from(CopyKind), sizes),
    "set": (2, places, sizes),
    "record": (8, places, events),
    "wait": (8, places, events),
    "stream sync": (1, places),
    "device sync": (1, st.integers(0, DEVICES - 1)),
    "event sync": (1, events),
    "push": (3, kinds_of_ids, st.integers(1, 2**40)),
    "pop": (2, kinds_of_ids),
    "flush": (2, st.booleans()),
}
verbs = st.sampled_from([verb for verb, (weight, *_) in STEPS.items() for _ in range(weight)])
steps = verbs.flatmap(lambda verb: st.tuples(st.just(verb), *STEPS[verb][1:]))
programs = st.lists(steps, min_size=20, max_size=60)


def run(runtime: Runtime, program: Iterable[Any]) -> None:
    """Run a program on the process's runtime."""
    for device in range(DEVICES):
        for _ in range(STREAMS - 1):
            runtime.create_stream(device)
    handles = [runtime.event_create() for _ in range(EVENTS)]
    for verb, *what in program:
        _step(runtime, handles, verb, *what)


def _step(runtime: Runtime, handles: list[int], verb: str, what: Any, *rest: Any) -> None:
    device, stream = what if isinstance(what, tuple) else (0, 0)
    match verb:
        case "launch":
            runtime.launch(f"kernel{rest[0] % 7}", device=device, stream=stream, flops=rest[0])
        case "copy":
            peer = 1 - device if rest[0] is CopyKind.PEER_TO_PEER else None
            runtime.memcpy(rest[0], rest[1], device=device, stream=stream, peer=peer)
        case "set":
            runtime.memset(rest[0], device=device, stream=stream)
        case "record":
            runtime.event_record(handles[rest[0]], device, stream)
        case "wait":
            runtime.stream_wait_event(handles[rest[0]], device, stream)
        case "stream sync":
            runtime.stream_synchronize(device, stream)
        case "device sync":
            runtime.device_synchronize(what)
        case "event sync":
            runtime.event_synchronize(handles[what])
        case "push":
            activity.orActivityPushExternalCorrelationId(what, rest[0])
        case "pop":
            activity.orActivityPopExternalCorrelationId(what)
        case "flush":
            activity.orActivityFlushAll(what)


def finish(runtime: Runtime) -> None:
    """End a capture as a profiler does."""
    activity.orActivityDisableTracing()
    for device in range(DEVICES):
        runtime.device_synchronize(device)
    activity.orActivityFlushAll(force=True)


def expected_starts(truth: np.ndarray, launch_latency_ns: int) -> list[int]:
    """Return when each piece of work, in the order of the calls, had nothing left to wait for."""
    starts = []
    stream_free: dict[tuple[int, int], int] = {}
    engine_free: dict[tuple[int, CopyKind], int] = {}
    reached: dict[int, int] = {}
    for row in truth:
        place = int(row["device"]), int(row["stream"])
        event, call = int(row["detail0"]), Call(row["call"])
        if call is Call.EVENT_RECORD:
            reached[event] = max(int(row["host_start_ns"]), stream_free.get(place, 0))
        elif call is Call.STREAM_WAIT_EVENT:
            stream_free[place] = max(stream_free.get(place, 0), reached.get(event, 0))
        elif call in (Call.LAUNCH, Call.MEMCPY, Call.MEMSET):
            engines = _engines(row) if call is Call.MEMCPY else []
            free = [engine_free.get(engine, 0) for engine in engines]
            starts.append(max(int(row["host_start_ns"]) + launch_latency_ns, stream_free.get(place, 0), *free))
            stream_free[place] = int(row["end_ns"])
            engine_free |= dict.fromkeys(engines, int(row["end_ns"]))
    return starts


def _engines(row: np.void) -> list[tuple[int, CopyKind]]:
    kind = CopyKind(row["detail0"])
    if kind is CopyKind.DEVICE_TO_DEVICE:
        return []
    ends = {int(row["detail1"]), int(row["detail2"])} if kind is CopyKind.PEER_TO_PEER else {int(row["device"])}
    return [(device, kind) for device in ends]


class _Clock:
    """A host clock that passes a little at every reading."""

    def __init__(self, start_ns: int) -> None:
        self.time_ns = start_ns

    def now_ns(self) -> int:
        self.time_ns += 137
        return self.time_ns

    def sleep_s(self, seconds: float) -> None:
        self.time_ns += round(seconds * 1e9)


def capture(runtime: Runtime, program: Iterable[Any]) -> list[tuple[bytearray, int]]:
    """Run a program from start to end of a capture and return the completed buffers."""
    completed: list[tuple[bytearray, int]] = []
    with use_runtime(runtime):
        activity.orActivityRegisterCallbacks(lambda: bytearray(4_000), lambda *full: completed.append(full))
        activity.orActivityEnableTracing()
        run(runtime, program)
        finish(runtime)
        assert activity.orActivityGetNumDroppedRecords() == 0
    return completed


def work_of(truth: np.ndarray) -> np.ndarray:
    return truth[np.isin(truth["call"], [Call.LAUNCH, Call.MEMCPY, Call.MEMSET])]


def of_kind(records: np.ndarray, *kinds: ActivityKind) -> np.ndarray:
    found = records[np.isin(records["kind"], kinds)]
    return found[np.argsort(found["correlation"], kind="stable")]


def columns(table: np.ndarray, *names: str) -> list[tuple[int, ...]]:
    return [tuple(int(row[name]) for name in names) for row in table]


def virtual_runtime(drift_ppm: float = 0.0) -> Runtime:
    return Runtime(RuntimeConfig.virtual_clock(clock_drift_ppm=drift_ppm, clock_offset_ticks=12_345))


@given(programs)
def test_work_starts_exactly_when_nothing_is_left_to_wait_for(program: list[Any]) -> None:
    runtime = virtual_runtime()
    capture(runtime, program)
    truth = runtime.ground_truth()
    assert work_of(truth)["start_ns"].tolist() == expected_starts(truth, runtime.config.cost.launch_latency_ns)


@given(programs)
def test_nothing_overlaps_on_a_stream_or_on_a_copy_engine(program: list[Any]) -> None:
    runtime = virtual_runtime()
    capture(runtime, program)
    work = work_of(runtime.ground_truth())
    rows: dict[Any, list[tuple[int, int]]] = {}
    for row in work:
        span = int(row["start_ns"]), int(row["end_ns"])
        rows.setdefault(("stream", int(row["device"]), int(row["stream"])), []).append(span)
        if row["call"] == Call.MEMCPY:
            for engine in _engines(row):
                rows.setdefault(engine, []).append(span)
    overlaps = [(row, a, b) for row, spans in rows.items() for a, b in pairwise(sorted(spans)) if a[1] > b[0]]
    assert overlaps == []


@given(programs)
def test_a_wait_for_a_device_or_stream_ends_when_its_last_work_does(program: list[Any]) -> None:
    runtime = virtual_runtime()
    capture(runtime, program)
    truth = runtime.ground_truth()
    cost_ns = runtime.config.cost.call_ns
    for number, row in enumerate(truth):
        before = truth[:number][truth["device"][:number] == row["device"]]
        if row["call"] == Call.STREAM_SYNCHRONIZE:
            before = before[before["stream"] == row["stream"]]
        elif row["call"] != Call.DEVICE_SYNCHRONIZE:
            continue
        busy = before[np.isin(before["call"], [Call.LAUNCH, Call.MEMCPY, Call.MEMSET, Call.STREAM_WAIT_EVENT])]
        last_ns = max([int(row["host_start_ns"]) + cost_ns, *busy["end_ns"].tolist()])
        assert int(row["host_end_ns"]) == last_ns


def check_records(runtime: Runtime, records: np.ndarray, truth: np.ndarray) -> None:
    """Every record says of its call what the truth says; no call lacks its record, and none has two."""
    device = of_kind(records, ActivityKind.KERNEL, ActivityKind.MEMCPY, ActivityKind.MEMSET)
    same = ("correlation", "call", "device", "stream", "thread_id", "name")
    work = work_of(truth)
    assert columns(device, *same) == columns(work, *same)
    kernels = of_kind(records, ActivityKind.KERNEL).view(KERNEL_DTYPE)
    assert (kernels["block"] == (256, 1, 1)).all()
    copies = of_kind(records, ActivityKind.MEMCPY).view(MEMCPY_DTYPE)
    assert columns(copies, "bytes", "copy_kind", "from", "to") == columns(
        truth[truth["call"] == Call.MEMCPY], "bytes", "detail0", "detail1", "detail2"
    )
    traced = truth[truth["kinds"] != 0]
    calls = of_kind(records, ActivityKind.RUNTIME)
    assert columns(calls, "correlation", "call", "thread_id") == columns(traced, "correlation", "call", "thread_id")
    assert [runtime.name_of(int(n)) for n in calls["name"]] == [Call(int(c)).api_name for c in traced["call"]]
    check_external_ids(records, traced)


def check_external_ids(records: np.ndarray, truth: np.ndarray) -> None:
    pushed = of_kind(records, ActivityKind.EXTERNAL_CORRELATION).view(EXTERNAL_CORRELATION_DTYPE)
    found = columns(pushed, "correlation", "external_kind", "external_id")
    wanted = [
        (int(row["correlation"]), kind, int(row[column]))
        for row in truth
        for kind, column in enumerate(("op_id", "user_id"))
        if row[column]
    ]
    assert found == wanted


@given(programs, st.floats(0, 200))
def test_in_virtual_time_the_records_are_the_truth_exactly(program: list[Any], drift_ppm: float) -> None:
    runtime = virtual_runtime(drift_ppm)
    records = activity.orActivityRecords(capture(runtime, program))
    truth = runtime.ground_truth()
    check_records(runtime, records, truth)
    clock = runtime.device_clock
    device = of_kind(records, ActivityKind.KERNEL, ActivityKind.MEMCPY, ActivityKind.MEMSET)
    work = work_of(truth)
    for stamp, time_ns in (("start", "start_ns"), ("end", "end_ns")):
        assert clock.host_ns_of(device[stamp]).tolist() == work[time_ns].tolist()
    calls, traced = of_kind(records, ActivityKind.RUNTIME), truth[truth["kinds"] != 0]
    for stamp, time_ns in (("start", "host_start_ns"), ("end", "host_end_ns")):
        assert clock.host_ns_of(calls[stamp]).tolist() == traced[time_ns].tolist()


@given(programs, st.floats(-200, 200), st.integers(0, 40))
def test_in_real_time_the_records_are_the_truth_within_the_clocks_uncertainty(
    program: list[Any], drift_ppm: float, jitter: int
) -> None:
    host = _Clock(1_700_000_000_000_000_000)
    config = RuntimeConfig(clock_drift_ppm=drift_ppm, clock_jitter_ticks=jitter)
    runtime = Runtime(config, RealClock(now_ns=host.now_ns, sleep_s=host.sleep_s))
    before = sample(runtime, host)
    records = activity.orActivityRecords(capture(runtime, program))
    after = sample(runtime, host)
    truth = runtime.ground_truth()
    check_records(runtime, records, truth)
    device = of_kind(records, ActivityKind.KERNEL, ActivityKind.MEMCPY, ActivityKind.MEMSET)
    uncertainty_ns = 137 + jitter + 2  # a reading lies within its bracket, late by the jitter; and rounding
    for stamp, time_ns in (("start", "start_ns"), ("end", "end_ns")):
        error_ns = between(before, after, device[stamp]) - (work_of(truth)[time_ns] - before[1])
        assert np.abs(error_ns).max(initial=0.0) <= uncertainty_ns
    calls, traced = of_kind(records, ActivityKind.RUNTIME), truth[truth["kinds"] != 0]
    assert columns(calls, "start", "end") == columns(traced, "host_start_ns", "host_end_ns")


def sample(runtime: Runtime, host: _Clock) -> tuple[int, int]:
    """Return ticks, and the host time in the middle of the readings around it."""
    before_ns = host.now_ns()
    ticks = runtime.timestamp()
    return ticks, (before_ns + host.now_ns()) // 2


def between(first: tuple[int, int], last: tuple[int, int], ticks: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return host times of ticks by the line through two samples, in ns after the first sample."""
    rate = (last[1] - first[1]) / (last[0] - first[0])
    return (ticks - first[0]) * rate


@given(programs)
@settings(max_examples=25)
def test_a_program_leaves_the_same_bytes_every_time(program: list[Any]) -> None:
    runs = []
    for _ in range(2):
        runtime = virtual_runtime()
        buffers = capture(runtime, program)
        runs.append(([bytes(buffer[:size]) for buffer, size in buffers], runtime.ground_truth().tobytes()))
    assert runs[0] == runs[1]


@given(programs)
def test_what_is_pushed_is_what_the_next_call_carries(program: list[Any]) -> None:
    runtime = virtual_runtime()
    capture(runtime, program)
    stacks: list[list[int]] = [[], []]
    wanted = []
    for verb, *what in program:
        if verb == "push":
            stacks[what[0]].append(what[1])
        elif verb == "pop":
            stacks[what[0]] = stacks[what[0]][:-1]
        elif verb != "flush":
            wanted.append(tuple(stack[-1] if stack else 0 for stack in stacks))
    truth = runtime.ground_truth()
    found = columns(truth[truth["kinds"] != 0], "op_id", "user_id")
    assert found == wanted
