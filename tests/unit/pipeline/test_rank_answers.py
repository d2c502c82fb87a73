"""What is asked of a merged trace is answered for each rank as that rank's own trace answers it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from devprof import analysis
from devprof.analysis import Answer
from devprof.model import ActivityBatch, ActivityType, GenericTraceActivity
from devprof.pipeline.ranks import merge
from devprof.store import Place, PlaceKind, Row, Trace, TraceBuilder

STEP, LAUNCH, KERNEL, MEMORY = (
    ActivityType.USER_ANNOTATION,
    ActivityType.CUDA_RUNTIME,
    ActivityType.CONCURRENT_KERNEL,
    ActivityType.CPU_INSTANT_EVENT,
)
Kernels = list[tuple[str, int, int, int]]
"""Name, when it was launched, when it began and ended."""
FAST: Kernels = [("gemm", 10, 20, 50), ("copy", 30, 60, 80), ("gemm", 110, 120, 130)]
SLOW: Kernels = [("gemm", 15, 40, 95), ("add", 20, 100, 140), ("gemm", 150, 155, 190)]


def trained(rank: int | None, kernels: Kernels, *, steps: tuple[tuple[int, int], ...], pid: int = 7) -> Trace:
    """A process that marks steps, launches kernels on its device 0 and reports its memory at each launch."""
    builder = TraceBuilder()
    host = builder.place(Place(pid, PlaceKind.HOST, "python"))
    gpu = builder.place(Place(0, PlaceKind.DEVICE, "GPU 0", backend="cuda", properties={"id": 0}))
    thread, stream = builder.row(Row(host, pid)), builder.row(Row(gpu, 7, "stream 7"))

    def add(row: int, kind: ActivityType, name: str, start: int, end: int, **more: Any) -> int:
        record = GenericTraceActivity(kind, name, start, end, **more)
        return builder.add(ActivityBatch.from_activities([record]), row)

    parents = []
    for number, (start, end) in enumerate(steps, 1):
        add(thread, STEP, f"ProfilerStep#{number}", start, end, id=number)
        parents.append(-1)
    for number, (name, launched, start, end) in enumerate(kernels, 1):
        used = {"Device Type": 1, "Device Id": 0, "Bytes": 8, "Total Allocated": 8 * number, "Total Reserved": 64}
        add(thread, MEMORY, "[memory]", launched, launched, metadata=used)
        launch = add(thread, LAUNCH, "cudaLaunchKernel", launched, launched + 2, id=number)
        add(stream, KERNEL, name, start, end, id=number)
        parents += [-1, -1, launch]
    facts: dict[str, object] = {} if rank is None else {"metadata": {"distributedInfo": {"rank": rank}}}
    trace = builder.build(window_start_ns=0, window_end_ns=200, facts=facts)
    return trace.with_parent(np.array(parents))


FIRST = trained(0, FAST, steps=((0, 100), (100, 150)))
SECOND = trained(1, SLOW, steps=((5, 140), (140, 200)))


def test_each_rank_has_its_own_steps_and_in_them_what_its_own_device_did() -> None:
    assert list(analysis.steps(merge([FIRST, SECOND], align="none"))) == [
        {"rank": 0, "step": 1, "start_ns": 0, "duration_ns": 100, "busy cuda:0_ns": 50, "busy cuda:1_ns": None},
        {"rank": 0, "step": 2, "start_ns": 100, "duration_ns": 50, "busy cuda:0_ns": 10, "busy cuda:1_ns": None},
        {"rank": 1, "step": 1, "start_ns": 5, "duration_ns": 135, "busy cuda:0_ns": None, "busy cuda:1_ns": 95},
        {"rank": 1, "step": 2, "start_ns": 140, "duration_ns": 60, "busy cuda:0_ns": None, "busy cuda:1_ns": 35},
    ]


def test_each_rank_has_its_own_memory() -> None:
    curves = analysis.memory_curve(merge([FIRST, SECOND], align="none"))
    assert {name: (curve.times_ns.tolist(), curve.allocated_bytes.tolist()) for name, curve in curves.items()} == {
        "rank 0: cuda:0": ([10, 30, 110], [8, 16, 24]),
        "rank 1: cuda:0": ([15, 20, 150], [8, 16, 24]),
    }


@pytest.mark.parametrize(
    "question",
    [analysis.device_breakdown, analysis.stream_usage, analysis.overlap, analysis.launch_latency],
    ids=lambda question: question.__name__,
)
def test_what_is_told_by_device_is_that_of_each_rank(question: Callable[[Trace], Answer]) -> None:
    def rows(trace: Trace, device: str) -> list[dict[str, Any]]:
        return [{**row, "device": ""} for row in question(trace) if row["device"] == device]

    merged = merge([FIRST, SECOND], align="none")
    assert rows(merged, "cuda:0") == rows(FIRST, "cuda:0") != []
    assert rows(merged, "cuda:1") == rows(SECOND, "cuda:0") != []


def test_each_stream_has_its_own_queue() -> None:
    def queues(trace: Trace) -> list[list[tuple[int, int]]]:
        found = list(analysis.queue_length(trace))
        rows = sorted({row["row"] for row in found})
        return [[(one["time_ns"], one["queued"]) for one in found if one["row"] == row] for row in rows]

    assert queues(merge([FIRST, SECOND], align="none")) == [*queues(FIRST), *queues(SECOND)]


def test_the_critical_path_is_that_of_the_rank_that_was_over_last() -> None:
    def path(trace: Trace) -> list[tuple[Any, ...]]:
        keys = ("start_ns", "duration_ns", "kind", "name")
        return [tuple(row[key] for key in keys) for row in analysis.critical_path(trace)]

    assert path(merge([FIRST, SECOND], align="none")) == path(SECOND) != path(FIRST)


def test_a_difference_of_merged_traces_is_that_of_the_sums_over_ranks() -> None:
    before, after = merge([FIRST, FIRST], align="none"), merge([FIRST, SECOND], align="none")
    change = {
        row["name"]: (row["count_before"], row["count_after"], row["change_ns"]) for row in analysis.diff(before, after)
    }
    assert change == {"gemm": (4, 4, 50), "copy": (2, 1, -20), "add": (0, 1, 40), "ProfilerStep": (4, 4, 45)}


def two_processes(marks_steps: tuple[bool, bool]) -> Trace:
    """One trace of two processes, as a file of several may be: the merged one without what says that it is."""
    parts = [
        trained(None, kernels, steps=((0, 100),) if marks else (), pid=pid)
        for kernels, marks, pid in zip((FAST, SLOW), marks_steps, (7, 8), strict=True)
    ]
    merged = merge(parts, align="none")
    return merged.with_facts(ranks=None)


def test_processes_are_told_apart_where_a_trace_has_several() -> None:
    trace = two_processes((True, True))
    first, second = (place.title for place in trace.places if place.kind is PlaceKind.HOST)
    assert list(analysis.steps(trace)) == [
        {"process": first, "step": 1, "start_ns": 0, "duration_ns": 100, "busy cuda:0_ns": 50, "busy cuda:1_ns": None},
        {"process": second, "step": 1, "start_ns": 0, "duration_ns": 100, "busy cuda:0_ns": None, "busy cuda:1_ns": 55},
    ]
    assert set(analysis.memory_curve(trace)) == {f"{first}: cuda:0", f"{second}: cuda:0"}


def test_the_device_of_another_process_is_no_part_of_a_step() -> None:
    assert list(analysis.steps(two_processes((True, False)))) == [
        {"step": 1, "start_ns": 0, "duration_ns": 100, "busy cuda:0_ns": 50}
    ]


def test_steps_that_are_marked_in_a_process_that_launches_nothing_have_all_devices() -> None:
    builder = TraceBuilder()
    marks, host = (builder.place(Place(pid, PlaceKind.HOST)) for pid in (1, 2))
    gpu = builder.place(Place(0, PlaceKind.DEVICE, backend="cuda"))
    rows = [builder.row(Row(place, place)) for place in (marks, host, gpu)]
    records = [(STEP, "ProfilerStep#1", 0, 100), (LAUNCH, "launch", 5, 7), (KERNEL, "k", 10, 30)]
    for row, record in zip(rows, records, strict=True):
        builder.add(ActivityBatch.from_activities([GenericTraceActivity(*record)]), row)
    trace = builder.build().with_parent(np.array([-1, -1, 1]))
    assert list(analysis.steps(trace)) == [{"step": 1, "start_ns": 0, "duration_ns": 100, "busy cuda:0_ns": 20}]


@pytest.mark.parametrize(
    "ranks", [None, 3, "x", {}, [], [None], [{"rank": "x"}], [{"rank": 0}, {"rank": 1, "places": [9, -1, "x", None]}]]
)
def test_facts_that_say_nothing_of_ranks_do_no_harm(ranks: object) -> None:
    trace = FIRST.with_facts(ranks=ranks)
    assert [row["duration_ns"] for row in analysis.steps(trace)] == [100, 50]
    assert [curve.peak_bytes for curve in analysis.memory_curve(trace).values()] == [24]
