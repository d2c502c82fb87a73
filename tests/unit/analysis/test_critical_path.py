"""The critical path of traces whose answer is known, and that its segments always tile the time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devprof.analysis.critical_path import critical_path
from devprof.errors import UsageError
from devprof.model import ActivityBatch, ActivityType, Flow, GenericTraceActivity, kLinkFwdBwd
from devprof.store import Place, PlaceKind, Row, Trace, TraceBuilder

T = ActivityType
OP, CALL, KERNEL, COPY, SYNC, STEP, PYTHON = (
    T.CPU_OP,
    T.CUDA_RUNTIME,
    T.CONCURRENT_KERNEL,
    T.GPU_MEMCPY,
    T.CUDA_SYNC,
    T.USER_ANNOTATION,
    T.PYTHON_FUNCTION,
)
MAIN, WORKER, S7, S8, ALL = range(5)


@dataclass
class Event:
    kind: ActivityType
    name: str
    start_ns: int
    end_ns: int
    row: int = MAIN
    parent: int = -1
    id: int = 0
    items: Mapping[str, Any] = field(default_factory=dict)
    flow: Flow | None = None


def built(events: Sequence[Event], window: tuple[int, int] = (0, 0)) -> Trace:
    builder = TraceBuilder()
    host = builder.place(Place(1, PlaceKind.HOST, "python"))
    gpu = builder.place(Place(0, PlaceKind.DEVICE, "GPU 0", backend="cuda"))
    rows = [Row(host, 1, "main"), Row(host, 2, "worker"), Row(gpu, 7, "s7"), Row(gpu, 8, "s8"), Row(gpu, -1, "all")]
    numbers = [builder.row(row) for row in rows]
    for one in events:
        record = GenericTraceActivity(
            one.kind, one.name, one.start_ns, one.end_ns, id=one.id, metadata=one.items, flow=one.flow
        )
        builder.add(ActivityBatch.from_activities([record]), numbers[one.row])
    trace = builder.build(window_start_ns=window[0], window_end_ns=window[1])
    return trace.with_parent(np.array([one.parent for one in events], dtype=np.int32))


def path(trace: Trace, step: int | None = None) -> list[tuple[int, str, str]]:
    """Return the segments: duration, kind, name."""
    return [(row["duration_ns"], row["kind"], row["name"]) for row in critical_path(trace, step)]


def launch(start: int, end: int, kernel: tuple[int, int], name: str, at: int, stream: int = S7) -> list[Event]:
    """Return a call and the kernel that it launches; `at` is the call's index."""
    return [Event(CALL, "launch", start, end), Event(KERNEL, name, *kernel, stream, at)]


def test_work_that_queues_up_hides_the_host() -> None:
    events = [*launch(0, 10, (20, 100), "a", 0), *launch(10, 20, (105, 200), "b", 2)]
    assert path(built(events)) == [
        (10, "launch", "launch"),
        (10, "wait", "launch latency"),
        (80, "kernel", "a"),
        (5, "wait", "between work"),
        (95, "kernel", "b"),
    ]


def test_of_work_that_overlaps_on_a_stream_the_one_over_last_was_waited_for() -> None:
    spans = {"early": (10, 15), "long": (16, 100), "short": (20, 30), "last": (100, 120)}
    events = [one for i, (name, span) in enumerate(spans.items()) for one in launch(i, i + 1, span, name, 2 * i)]
    assert path(built(events))[-2:] == [(84, "kernel", "long"), (20, "kernel", "last")]


def test_a_host_that_is_late_is_on_the_path_and_what_the_device_did_before_is_not() -> None:
    events = [*launch(0, 10, (20, 30), "a", 0), Event(OP, "slow", 10, 190), *launch(180, 190, (200, 250), "b", 3)]
    assert path(built(events)) == [
        (10, "launch", "launch"),
        (170, "op", "slow"),
        (10, "launch", "launch"),
        (10, "wait", "launch latency"),
        (50, "kernel", "b"),
    ]


def test_work_that_starts_under_its_call_waited_for_the_part_of_the_call_before_it() -> None:
    events = [Event(OP, "mm", 0, 40), Event(CALL, "launch", 10, 40), Event(KERNEL, "k", 25, 60, S7, 1)]
    assert path(built(events)) == [(10, "op", "mm"), (15, "launch", "launch"), (35, "kernel", "k")]


def test_a_call_that_synchronizes_leads_to_the_work_it_waited_for() -> None:
    events = [
        *launch(0, 10, (12, 80), "a", 0),
        Event(CALL, "cudaDeviceSynchronize", 20, 90),
        Event(OP, "after", 90, 100),
    ]
    assert path(built(events)) == [
        (10, "launch", "launch"),
        (2, "wait", "launch latency"),
        (68, "kernel", "a"),
        (10, "sync", "cudaDeviceSynchronize"),
        (10, "op", "after"),
    ]


def test_a_call_that_had_nothing_to_wait_for_is_time_of_its_own() -> None:
    events = [*launch(0, 10, (12, 18), "a", 0), Event(CALL, "cudaDeviceSynchronize", 20, 90)]
    assert path(built(events)) == [
        (10, "launch", "launch"),
        (10, "unrecorded", ""),
        (70, "launch", "cudaDeviceSynchronize"),
    ]


def test_a_sync_record_says_which_stream_was_waited_for() -> None:
    events = [
        *launch(0, 5, (12, 60), "seven", 0, S7),
        *launch(5, 10, (12, 85), "eight", 2, S8),
        Event(CALL, "cudaStreamSynchronize", 20, 90),
        Event(SYNC, "Stream Sync", 20, 90, S7, 4),
    ]
    assert path(built(events))[-2:] == [(48, "kernel", "seven"), (30, "sync", "cudaStreamSynchronize")]


def test_waiting_for_an_event_leads_to_what_was_launched_before_it_was_recorded() -> None:
    number = {"wait_on_stream": 7, "wait_on_cuda_event_record_corr_id": 77}
    events = [
        *launch(0, 5, (12, 40), "before", 0),
        Event(CALL, "cudaEventRecord", 5, 7, id=77),
        *launch(7, 10, (40, 88), "after", 3),
        *launch(0, 5, (12, 86), "on another stream", 5, S8),
        Event(CALL, "cudaEventSynchronize", 12, 90),
        Event(SYNC, "Event Sync", 12, 90, ALL, 7, items=number),
    ]
    assert path(built(events))[-2:] == [(28, "kernel", "before"), (50, "sync", "cudaEventSynchronize")]


@pytest.mark.parametrize("call", ["cudaMemcpy", "cudaMemcpyAsync"])
def test_a_call_that_lasts_until_its_copy_is_over_waited_for_it_and_the_copy_for_the_work_before_it(call: str) -> None:
    events = [
        *launch(0, 10, (12, 80), "a", 0),
        Event(CALL, call, 20, 100),
        Event(COPY, "Memcpy DtoH", 82, 95, S7, 2),
    ]
    assert path(built(events)) == [
        (10, "launch", "launch"),
        (2, "wait", "launch latency"),
        (68, "kernel", "a"),
        (2, "wait", "between work"),
        (13, "copy", "Memcpy DtoH"),
        (5, "sync", call),
    ]


def test_a_stream_that_was_told_to_wait_for_another_leads_there() -> None:
    number = {"wait_on_stream": 8, "wait_on_cuda_event_record_corr_id": 77}
    events = [
        *launch(0, 5, (10, 90), "long", 0, S8),
        Event(CALL, "cudaEventRecord", 5, 7, id=77),
        Event(CALL, "cudaStreamWaitEvent", 7, 9),
        Event(SYNC, "Stream Wait Event", 7, 9, S7, 3, items=number),
        *launch(10, 15, (93, 100), "waits", 5),
    ]
    assert path(built(events)) == [
        (5, "launch", "launch"),
        (5, "wait", "launch latency"),
        (80, "kernel", "long"),
        (3, "wait", "dependency"),
        (7, "kernel", "waits"),
    ]


def forward_backward(by: str) -> list[Event]:
    """Return a training step without device: forward on one thread, backward on another, then the optimizer."""
    flows = [Flow(1, kLinkFwdBwd, leaves) if by == "arrow" else None for leaves in (True, False)]
    items: list[dict[str, Any]] = [{}, {}]
    if by == "sequence number":
        items = [{"Sequence number": 5}, {"Sequence number": 5, "Fwd thread id": 1}]
    return [
        Event(STEP, "ProfilerStep#4", 0, 100),
        Event(OP, "forward", 10, 30, flow=flows[0], items=items[0]),
        Event(OP, "backward", 35, 70, WORKER, flow=flows[1], items=items[1]),
        Event(OP, "optimizer", 75, 95),
    ]


@pytest.mark.parametrize("by", ["arrow", "sequence number"])
def test_backward_on_a_thread_of_its_own_is_on_the_path(by: str) -> None:
    assert path(built(forward_backward(by)), 4) == [
        (10, "annotation", "ProfilerStep#4"),
        (20, "op", "forward"),
        (5, "wait", "other thread"),
        (35, "op", "backward"),
        (5, "wait", "other thread"),
        (20, "op", "optimizer"),
        (5, "annotation", "ProfilerStep#4"),
    ]


def test_a_thread_that_has_nothing_to_do_with_this_one_is_not() -> None:
    assert path(built(forward_backward("nothing")), 4) == [
        (10, "annotation", "ProfilerStep#4"),
        (20, "op", "forward"),
        (45, "annotation", "ProfilerStep#4"),
        (20, "op", "optimizer"),
        (5, "annotation", "ProfilerStep#4"),
    ]


def test_each_moment_of_a_thread_belongs_to_its_innermost_event() -> None:
    events = [
        Event(PYTHON, "train.py(1): step", 0, 100),
        Event(OP, "linear", 10, 90),
        Event(OP, "addmm", 20, 50),
        Event(OP, "empty", 20, 20),
        Event(OP, "relu", 50, 90),
    ]
    assert path(built(events)) == [
        (10, "python", "train.py(1): step"),
        (10, "op", "linear"),
        (30, "op", "addmm"),
        (40, "op", "relu"),
        (10, "python", "train.py(1): step"),
    ]


def test_a_window_that_is_longer_than_what_was_recorded_says_so_and_a_shorter_one_cuts() -> None:
    events = [*launch(10, 20, (30, 60), "k", 0)]
    assert path(built(events, (5, 70))) == [
        (5, "unrecorded", ""),
        (10, "launch", "launch"),
        (10, "wait", "launch latency"),
        (30, "kernel", "k"),
        (10, "unrecorded", ""),
    ]
    assert path(built(events, (15, 50))) == [
        (5, "launch", "launch"),
        (10, "wait", "launch latency"),
        (20, "kernel", "k"),
    ]


def test_a_thread_that_only_polls_is_not_where_the_path_begins() -> None:
    events = [Event(OP, "mm", 0, 30), Event(CALL, "cudaEventQuery", 38, 40, WORKER)]
    assert path(built(events)) == [(30, "op", "mm"), (10, "unrecorded", "")]
    assert path(built(events[1:])) == [(2, "launch", "cudaEventQuery")]


def test_work_without_a_launch_waited_for_its_stream_and_nobody_knows_why() -> None:
    events = [Event(KERNEL, "a", 10, 20, S7), Event(KERNEL, "b", 50, 60, S7)]
    assert path(built(events, (0, 60))) == [
        (10, "unrecorded", ""),
        (10, "kernel", "a"),
        (30, "wait", "unknown"),
        (10, "kernel", "b"),
    ]


def test_where_calls_are_not_recorded_the_op_launched_the_work() -> None:
    events = [Event(OP, "mm", 0, 30), Event(KERNEL, "k", 45, 60, S7, 0)]
    assert path(built(events)) == [(30, "op", "mm"), (15, "wait", "launch latency"), (15, "kernel", "k")]


def test_a_collective_operation_is_called_communication() -> None:
    events = [Event(KERNEL, "nccl", 10, 20, S7, items={"Collective name": "allreduce"})]
    assert path(built(events)) == [(10, "communication", "nccl")]


def test_segments_say_where_they_are_and_which_event_they_are_of() -> None:
    found = list(critical_path(built([*launch(0, 10, (20, 100), "a", 0)])))
    assert [(row["start_ns"], row["place"], row["row"], row["event"]) for row in found] == [
        (0, "python", "main", 0),
        (10, "cuda:0", "s7", 1),
        (20, "cuda:0", "s7", 1),
    ]


def test_sums_by_name_and_by_kind_add_up_to_the_span() -> None:
    trace = built([*launch(0, 10, (20, 100), "a", 0), *launch(10, 20, (100, 200), "a", 2)])
    assert [tuple(row.values()) for row in critical_path(trace, by="name")] == [
        ("kernel", "a", 2, 180, 0.9),
        ("launch", "launch", 1, 10, 0.05),
        ("wait", "launch latency", 1, 10, 0.05),
    ]
    assert [tuple(row.values()) for row in critical_path(trace, by="kind")] == [
        ("kernel", 2, 180, 0.9),
        ("launch", 1, 10, 0.05),
        ("wait", 1, 10, 0.05),
    ]


def test_what_is_not_there_is_refused_in_words_and_an_empty_trace_has_an_empty_path() -> None:
    with pytest.raises(UsageError, match="there is no step 5"):
        critical_path(built(forward_backward("arrow")), 5)
    with pytest.raises(UsageError, match="by is 'colour'; expected one of 'segment', 'name', 'kind'"):
        critical_path(built([]), by="colour")
    assert list(critical_path(built([]))) == []


@st.composite
def any_trace(draw: Callable[[Any], Any]) -> Trace:
    """Return a trace of anything: nested, crossing or instant events, work before its launch, waits for anything."""
    count = draw(st.integers(1, 14))
    events: list[Event] = []
    names = ["a", "b", "cudaMemcpy", "cudaMemcpyAsync", "cudaStreamSynchronize", "ProfilerStep#1", "Stream Wait Event"]
    for _ in range(count):
        start = draw(st.integers(0, 40))
        end = start + draw(st.integers(0, 25))
        kind, row = draw(
            st.one_of(
                st.tuples(st.sampled_from([OP, CALL, STEP, PYTHON]), st.sampled_from([MAIN, WORKER])),
                st.tuples(st.sampled_from([KERNEL, COPY, SYNC]), st.sampled_from([S7, S8, ALL])),
            )
        )
        items = {
            "wait_on_stream": draw(st.sampled_from([7, 8])),
            "wait_on_cuda_event_record_corr_id": draw(st.integers(0, 3)),
        }
        more = {"Sequence number": draw(st.integers(0, 2)), "Fwd thread id": draw(st.integers(0, 1))}
        events.append(
            Event(kind, draw(st.sampled_from(names)), start, end, row, draw(st.integers(-1, len(events) - 1)),
                  draw(st.integers(0, 3)), items if kind is SYNC else more if kind is OP else {})
        )  # fmt: skip
    begin = draw(st.integers(0, 30))
    return built(events, draw(st.sampled_from([(0, 0), (begin, begin + 30), (0, 80)])))


@given(any_trace())
def test_segments_tile_the_window_without_gap_or_overlap(trace: Trace) -> None:
    begin, end = trace.window_start_ns, trace.window_end_ns
    if not end:
        begin, end = int(trace.start_ns.min()), int(trace.end_ns.max())
    at = begin
    for segment in critical_path(trace):
        assert segment["start_ns"] == at
        assert segment["duration_ns"] > 0
        at += segment["duration_ns"]
    assert at == end


@given(any_trace())
def test_a_path_is_within_the_events_that_it_names(trace: Trace) -> None:
    for segment in critical_path(trace):
        if segment["kind"] in ("wait", "unrecorded"):
            continue
        event = segment["event"]
        assert trace.start_ns[event] <= segment["start_ns"]
        assert segment["start_ns"] + segment["duration_ns"] <= trace.end_ns[event]
        assert segment["name"] == trace.name_of(event)
