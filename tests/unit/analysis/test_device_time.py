"""Where device time goes, why streams are idle, and what changed between two traces: against plain loops."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devprof.analysis.answer import Answer
from devprof.analysis.difference import diff
from devprof.analysis.grouping import totals_by
from devprof.analysis.intervals import common, covered_at, length_ns, union
from devprof.analysis.kernels import device_breakdown, overlap
from devprof.analysis.launches import launch_latency, queue_length
from devprof.analysis.steps import steps
from devprof.analysis.streams import CAUSES, idle_gaps, stream_usage
from devprof.errors import UsageError
from devprof.model import ActivityBatch, ActivityType, GenericTraceActivity
from devprof.store import Place, PlaceKind, Row, Trace, TraceBuilder

KERNEL, COPY, SET = ActivityType.CONCURRENT_KERNEL, ActivityType.GPU_MEMCPY, ActivityType.GPU_MEMSET
LAUNCH, RANGE = ActivityType.PRIVATEUSE1_RUNTIME, ActivityType.USER_ANNOTATION
Given = tuple[str, int, int, int, int | None]
"""Name, stream, start and end of a kernel in ns, and the start of its launch, if known."""


def built(
    work: Sequence[Given], kinds: Sequence[ActivityType] = (), ranges: Sequence[tuple[str, int, int]] = ()
) -> Trace:
    builder = TraceBuilder()
    thread = builder.row(Row(builder.place(Place(1, PlaceKind.HOST, "python")), 7, "thread 7"))
    toy = builder.place(Place(0, PlaceKind.DEVICE, "toy 0", backend="toy"))
    parent = []
    for number, (name, stream, start_ns, end_ns, launched_ns) in enumerate(work, 1):
        if launched_ns is not None:
            call = GenericTraceActivity(LAUNCH, "toyLaunch", launched_ns, launched_ns + 1, id=number)
            builder.add(ActivityBatch.from_activities([call]), thread)
            parent.append(-1)
        kind = kinds[number - 1] if kinds else KERNEL
        record = GenericTraceActivity(kind, name, start_ns, end_ns, id=number)
        builder.add(ActivityBatch.from_activities([record]), builder.row(Row(toy, stream, f"stream {stream}")))
        parent.append(len(parent) - 1 if launched_ns is not None else -1)
    for name, start_ns, end_ns in ranges:
        builder.add(ActivityBatch.from_activities([GenericTraceActivity(RANGE, name, start_ns, end_ns)]), thread)
        parent.append(-1)
    return builder.build().with_parent(np.array(parent, dtype=np.int32))


spans = st.lists(st.tuples(st.integers(0, 40), st.integers(-2, 12)).map(lambda p: (p[0], p[0] + p[1])), max_size=12)


def cells(pairs: Sequence[tuple[int, int]]) -> set[int]:
    return {cell for start, end in pairs for cell in range(start, end)}


def as_union(pairs: Sequence[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    array = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return union(array[:, 0], array[:, 1])


@given(spans, spans)
def test_unions_and_intersections_are_those_of_sets(one: list[tuple[int, int]], other: list[tuple[int, int]]) -> None:
    first, second = as_union(one), as_union(other)
    assert cells(list(zip(*(side.tolist() for side in first), strict=True))) == cells(one)
    assert (first[0][1:] > first[1][:-1]).all()
    both = common(first, second)
    assert cells(list(zip(*(side.tolist() for side in both), strict=True))) == cells(one) & cells(other)
    assert length_ns(both) == len(cells(one) & cells(other))


@given(spans, st.integers(0, 50), st.integers(0, 50))
def test_how_much_of_an_interval_a_union_covers(pairs: list[tuple[int, int]], a: int, b: int) -> None:
    start, end = min(a, b), max(a, b)
    found = covered_at(as_union(pairs), np.array([start]), np.array([end]))
    assert found.tolist() == [len(cells(pairs) & set(range(start, end)))]


@given(st.lists(st.tuples(st.sampled_from([0, 3, 7, 10**7]), st.integers(0, 2**60)), max_size=20))
def test_sums_by_group_are_exact(pairs: list[tuple[int, int]]) -> None:
    group, values = (np.array([pair[side] for pair in pairs], dtype=np.int64) for side in (0, 1))
    if sum(pair[1] for pair in pairs) >= 2**63:
        return
    found = totals_by(group, values)
    expected = {
        g: (len(v), sum(v), min(v), max(v))
        for g in sorted({p[0] for p in pairs})
        for v in [[p[1] for p in pairs if p[0] == g]]
    }
    columns = (found.group, found.count, found.total, found.least, found.most)
    assert {row[0]: row[1:] for row in zip(*(c.tolist() for c in columns), strict=True)} == expected


def test_device_time_by_name_is_counted_to_the_nanosecond() -> None:
    work = [("mm", 0, 0, 100, None), ("add", 0, 100, 130, None), ("mm", 1, 50, 51, None), ("mm", 0, 130, 135, None)]
    answer = device_breakdown(built(work, [KERNEL, KERNEL, KERNEL, COPY]))
    expected = [
        ("mm", "kernel", "toy:0", 2, 101, 101 / 136, 50.5, 1, 100),
        ("add", "kernel", "toy:0", 1, 30, 30 / 136, 30.0, 30, 30),
        ("mm", "copy", "toy:0", 1, 5, 5 / 136, 5.0, 5, 5),
    ]
    assert [tuple(row.values()) for row in answer] == expected
    assert str(answer).splitlines()[:2] == [
        "device time by name",
        "name  kind    device  count  total_ns  total_share  mean_ns  min_ns  max_ns",
    ]


def test_copies_and_communication_are_hidden_where_something_is_computed() -> None:
    work = [
        ("mm", 0, 0, 100, None),
        ("copy", 1, 90, 120, None),
        ("set", 1, 200, 210, None),
        ("reduce", 2, 50, 150, None),
    ]
    trace = built(work, [KERNEL, COPY, SET, KERNEL])
    assert next(iter(overlap(trace)))["compute_ns"] == 150
    marked = built(work, [KERNEL, COPY, SET, ActivityType.COLLECTIVE_COMM])
    assert list(overlap(marked)) == [
        {
            "device": "toy:0",
            "compute_ns": 100,
            "copy_ns": 40,
            "communication_ns": 100,
            "copy_hidden_share": 10 / 40,
            "communication_hidden_share": 50 / 100,
            "busy_ns": 160,
        }
    ]


@pytest.mark.parametrize(
    ("work", "causes"),
    [
        ([("a", 0, 0, 10, 0), ("b", 0, 30, 40, 25)], {"host wait": 15, "launch latency": 5}),
        ([("a", 0, 0, 10, 0), ("b", 0, 30, 40, 5)], {"between work": 20}),
        ([("a", 0, 0, 10, 0), ("b", 0, 30, 40, 5), ("c", 1, 5, 28, 1)], {"dependency": 18, "between work": 2}),
        ([("a", 0, 0, 10, 0), ("b", 0, 30, 40, None)], {"unknown": 20}),
        ([("a", 0, 0, 10, 0), ("b", 0, 10, 40, 5)], {}),
        ([("a", 0, 0, 50, 0), ("n", 0, 5, 8, 0), ("b", 0, 60, 61, 70)], {"host wait": 10}),
        (
            [("a", 0, 0, 10, 0), ("b", 0, 200_000, 200_001, 20), ("c", 1, 5, 150_000, 1)],
            {"host wait": 10, "launch latency": 1 + 50_000, "dependency": 149_979},
        ),
        (
            [("a", 0, 0, 10, 0), ("b", 0, 100_000, 100_001, 20), ("c", 1, 5, 90_000, 1)],
            {"host wait": 10, "launch latency": 99_980},
        ),
    ],
)
def test_a_stream_is_idle_for_a_reason(work: Sequence[Given], causes: dict[str, int]) -> None:
    usage = [row for row in stream_usage(built(work)) if row["stream"] == "stream 0"]
    found = {cause: usage[0][f"idle_{cause.replace(' ', '_')}_ns"] for cause in CAUSES}
    assert found == {**dict.fromkeys(CAUSES, 0), **causes}
    assert usage[0]["span_ns"] == usage[0]["busy_ns"] + sum(causes.values())


@given(
    st.lists(
        st.tuples(
            st.just("k"), st.integers(0, 2), st.integers(0, 60), st.integers(0, 9), st.none() | st.integers(0, 60)
        ).map(lambda k: (k[0], k[1], k[2], k[2] + k[3], k[4])),
        max_size=12,
    )
)
def test_busy_and_idle_add_up_to_the_span_of_every_stream(work: list[Given]) -> None:
    trace = built(work)
    for row in stream_usage(trace):
        here = [(s, e) for _, stream, s, e, _ in work if f"stream {stream}" == row["stream"]]
        assert row["busy_ns"] == len(cells(here))
        assert row["count"] == len(here)
        assert sum(row[f"idle_{cause.replace(' ', '_')}_ns"] for cause in CAUSES) >= row["span_ns"] - row["busy_ns"]
    gaps = idle_gaps(trace)
    assert (sum(gaps.by_cause.values(), np.zeros(len(gaps.after), np.int64)) == gaps.end_ns - gaps.start_ns).all()
    assert all((part >= 0).all() for part in gaps.by_cause.values())


def test_launch_latency_counts_each_piece_of_work_and_says_what_it_left_out() -> None:
    work = [("a", 0, 10, 20, 0), ("b", 0, 40, 50, 20), ("c", 0, 60, 61, 63), ("d", 0, 70, 71, None)]
    answer = launch_latency(built(work))
    assert list(answer) == [
        {
            "device": "toy:0",
            "launch": "toyLaunch",
            "count": 3,
            "min_ns": -3,
            "median_ns": 10,
            "p95_ns": 10,
            "max_ns": 20,
            "early": 1,
        }
    ]
    assert answer.notes == ("1 device records without a known launch are left out",)


@pytest.mark.parametrize(
    ("waits", "median_ns"), [([7], 7), ([2, 10], 6), ([3, 10], 6), ([1, 2, 9], 2), ([9, 1, 4, 6], 5)]
)
def test_the_median_of_an_even_number_lies_between_the_two_in_the_middle(waits: list[int], median_ns: int) -> None:
    work = [("a", number, wait, 100, 0) for number, wait in enumerate(waits)]
    (row,) = launch_latency(built(work))
    assert (row["min_ns"], row["median_ns"], row["max_ns"]) == (min(waits), median_ns, max(waits))


def test_the_queue_grows_at_each_launch_and_shrinks_as_work_begins() -> None:
    work = [("a", 0, 5, 20, 0), ("b", 0, 20, 30, 2), ("c", 0, 30, 31, 5), ("d", 0, 31, 32, 31)]
    answer = queue_length(built(work))
    assert list(zip(answer.column("time_ns"), answer.column("queued"), strict=True)) == [
        (0, 1),
        (2, 2),
        (5, 2),
        (20, 1),
        (30, 0),
    ]


def test_a_step_has_its_duration_and_what_each_device_did_in_it() -> None:
    ranges = [("ProfilerStep#4", 100, 200), ("ProfilerStep#3", 0, 100), ("ProfilerStep#x", 0, 5), ("other", 0, 5)]
    answer = steps(built([("a", 0, 90, 120, None), ("b", 1, 110, 115, None)], ranges=ranges))
    assert list(answer) == [
        {"step": 3, "start_ns": 0, "duration_ns": 100, "busy toy:0_ns": 10},
        {"step": 4, "start_ns": 100, "duration_ns": 100, "busy toy:0_ns": 20},
    ]


def test_a_difference_names_what_is_new_gone_slower_faster_more_and_fewer() -> None:
    before = [("gone", 0, 0, 10, None), ("slow", 0, 10, 20, None), ("same", 0, 20, 30, None), ("more", 0, 30, 40, None)]
    after = [("new", 0, 0, 5, None), ("slow", 0, 10, 30, None), ("same", 0, 50, 60, None), ("more", 0, 70, 77, None)]
    answer = diff(built(before), built([*after, ("more", 0, 80, 85, None)], ranges=[("ProfilerStep#2", 0, 3)]))
    found = {row["name"]: (row["verdict"], row["count_before"], row["count_after"], row["change_ns"]) for row in answer}
    assert found == {
        "gone": ("gone", 1, 0, -10),
        "slow": ("slower", 1, 1, 10),
        "new": ("new", 0, 1, 5),
        "more": ("more", 1, 2, 2),
        "ProfilerStep": ("new", 0, 1, 3),
    }
    assert list(diff(built(before), built(before))) == []


def test_a_difference_of_device_work_alone_leaves_out_small_changes_and_says_so() -> None:
    before = [("a", 0, 0, 100, None), ("b", 0, 100, 200, None), ("c", 0, 200, 300, None)]
    after = [("a", 0, 0, 104, None), ("b", 0, 110, 215, None), ("c", 0, 220, 221, None), ("c", 0, 230, 330, None)]
    ranges = [("ProfilerStep#2", 0, 3)]
    answer = diff(built(before), built(after, ranges=ranges), device_only=True, least_share=0.05)
    assert [(row["name"], row["verdict"], row["change_ns"]) for row in answer] == [("b", "slower", 5), ("c", "more", 1)]
    assert answer.notes == ("left out: 1 with a change of less than 5 %",)


@pytest.mark.parametrize("share", [-0.1, float("nan")])
def test_a_difference_wants_a_share_from_0_on(share: float) -> None:
    with pytest.raises(UsageError, match=r"least_share is .*; expected a number from 0 on"):
        diff(built([]), built([]), least_share=share)


def test_traces_without_device_work_give_empty_answers() -> None:
    empty = TraceBuilder().build()
    for answer in (
        device_breakdown(empty),
        overlap(empty),
        stream_usage(empty),
        launch_latency(empty),
        queue_length(empty),
    ):
        assert (len(answer), list(answer)) == (0, [])
    assert len(steps(empty)) == 0
    assert len(diff(empty, empty)) == 0


def test_an_answer_reads_well_as_text_json_and_html() -> None:
    answer = Answer(
        "a <b>", {"name": ["x<y", "z"], "total_ns": np.array([1234567, 5]), "busy_share": [0.5, 0.25]}, ("n & m",)
    )
    assert (
        str(answer)
        == "a <b>\nname   total_ns  busy_share\nx<y   1,234,567      50.0 %\nz             5      25.0 %\nn & m"
    )
    assert answer.as_dict()["rows"] == [
        {"name": "x<y", "total_ns": 1234567, "busy_share": 0.5},
        {"name": "z", "total_ns": 5, "busy_share": 0.25},
    ]
    assert "<td>x&lt;y</td>" in answer._repr_html_()
    assert "<p>n &amp; m</p>" in answer._repr_html_()
    assert answer.sorted_by("total_ns", descending=False).column("name") == ["z", "x<y"]
    with pytest.raises(UsageError, match="no column 'total'; expected among"):
        answer.column("total")
    with pytest.raises(ValueError, match="different lengths"):
        Answer("t", {"a": [1], "b": []})
