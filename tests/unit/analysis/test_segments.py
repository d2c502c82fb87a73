"""Sorting, sums and running maxima within groups, against plain loops, with and without room to lift groups apart."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from devprof.analysis.grouping import counts_and_sums, totals_by
from devprof.analysis.launches import queue_length
from devprof.analysis.segments import begins, order_within, run_sums, running_max, sorted_within
from devprof.model import ActivityBatch, ActivityType, GenericTraceActivity
from devprof.store import Place, PlaceKind, Row, TraceBuilder

N_GROUPS = 4
near = st.integers(-9, 9)
far = st.sampled_from([-(2**62), -(2**62) + 1, 0, 2**62, 2**62 + 1])
pairs = st.lists(st.tuples(st.integers(0, N_GROUPS - 1), near), max_size=20) | st.lists(
    st.tuples(st.integers(0, N_GROUPS - 1), far), max_size=20
)
Pairs = list[tuple[int, int]]


def columns(pairs: Pairs) -> tuple[np.ndarray, np.ndarray]:
    return np.array([p[0] for p in pairs], dtype=np.int32), np.array([p[1] for p in pairs], dtype=np.int64)


@given(pairs)
def test_values_are_ordered_within_their_group_and_equal_ones_stay_as_they_stand(pairs: Pairs) -> None:
    order = order_within(*columns(pairs), N_GROUPS).tolist()
    assert order == sorted(range(len(pairs)), key=lambda i: pairs[i])
    assert sorted_within(*columns(pairs), N_GROUPS).tolist() == [pairs[i][1] for i in order]


@given(pairs)
def test_the_greatest_so_far_starts_again_in_each_group(pairs: Pairs) -> None:
    pairs = sorted(pairs, key=lambda pair: pair[0])
    expected = [
        top for group in range(N_GROUPS) for top in accumulate((value for g, value in pairs if g == group), max)
    ]
    assert running_max(*columns(pairs), N_GROUPS).tolist() == expected


@given(st.lists(st.lists(st.integers(-(2**40), 2**40), max_size=4), max_size=6))
def test_sums_of_runs_are_exact_and_those_of_empty_runs_zero(runs: list[list[int]]) -> None:
    bounds = np.array([0, *accumulate(map(len, runs))])
    values = np.array([value for run in runs for value in run], dtype=np.int64)
    assert run_sums(values, bounds).tolist() == [sum(run) for run in runs]


def test_a_group_begins_where_its_number_differs_from_the_one_before() -> None:
    assert begins(np.array([3, 3, 5, 3])).tolist() == [True, False, True, True]
    assert begins(np.array([], dtype=np.int32)).tolist() == []


@given(st.lists(st.tuples(st.sampled_from([0, 3, 7]), st.integers(0, 2**53)), max_size=20), st.sampled_from([8, 2**40]))
def test_counts_and_sums_made_in_parts_are_those_of_the_whole(pairs: Pairs, n_groups: int) -> None:
    group, values = (np.array([pair[side] for pair in pairs], dtype=np.int64) for side in (0, 1))
    found = counts_and_sums(lambda part: (group[part], values[part]), len(pairs), n_groups)
    whole = totals_by(group, values)
    assert [found.group.tolist(), found.count.tolist(), found.total.tolist()] == [
        whole.group.tolist(),
        whole.count.tolist(),
        whole.total.tolist(),
    ]


def queues(spans: Sequence[tuple[int, int, int]]) -> list[tuple[object, ...]]:
    builder = TraceBuilder()
    thread = builder.row(Row(builder.place(Place(1, PlaceKind.HOST)), 7))
    toy = builder.place(Place(0, PlaceKind.DEVICE, backend="toy"))
    parent: list[int] = []
    for stream, launched_ns, begun_ns in spans:
        launch = GenericTraceActivity(ActivityType.PRIVATEUSE1_RUNTIME, "launch", launched_ns, launched_ns)
        work = GenericTraceActivity(ActivityType.CONCURRENT_KERNEL, "k", begun_ns, begun_ns)
        builder.add(ActivityBatch.from_activities([launch]), thread)
        builder.add(ActivityBatch.from_activities([work]), builder.row(Row(toy, stream)))
        parent += [-1, len(parent)]
    trace = builder.build().with_parent(np.array(parent, dtype=np.int32))
    rows = queue_length(trace)
    return [(trace.rows[row["row"]].id, row["time_ns"], row["queued"]) for row in rows]


def test_queues_of_streams_that_are_far_apart_in_time_are_counted_apart() -> None:
    late = 2**62
    spans = [(0, -late, -late + 9), (1, late, late + 5), (0, -late + 3, -late + 9), (1, late + 1, late + 1), (0, 0, 7)]
    assert queues(spans) == [
        *((0, -late, 1), (0, -late + 3, 2), (0, -late + 9, 0), (0, 0, 1), (0, 7, 0)),
        *((1, late, 1), (1, late + 5, 0)),
    ]
