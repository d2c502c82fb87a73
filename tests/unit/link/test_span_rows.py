"""Spans are cut where Kineto's widening would make them overlap, and put on further rows where they cross."""

from __future__ import annotations

import numpy as np
import pytest

from devprof.link.span_rows import cut_for_widening, edges_at, lanes_of, name_extra_rows
from devprof.model import ResourceInfo

Intervals = list[tuple[int, int]]


def _cut(*intervals: tuple[int, int]) -> Intervals:
    start, end = (np.array(column, dtype=np.int64) for column in zip(*intervals, strict=True))
    return list(zip(*(column.tolist() for column in cut_for_widening(start, end)), strict=True))


def _lanes(*intervals: tuple[int, int]) -> list[int]:
    start, end = (np.array(column, dtype=np.int64) for column in zip(*intervals, strict=True))
    return lanes_of(start, end).tolist()


@pytest.mark.parametrize(
    ("spans", "cut"),
    [
        ([(0, 10), (10, 20)], [(0, 9), (11, 20)]),
        ([(0, 10), (11, 20)], [(0, 9), (11, 20)]),
        ([(0, 10), (12, 20)], [(0, 10), (12, 20)]),
        ([(0, 20), (0, 10), (10, 20)], [(0, 20), (0, 9), (11, 20)]),
        ([(0, 10), (0, 10), (10, 20), (10, 15)], [(0, 9), (0, 9), (11, 20), (11, 15)]),
        ([(0, 2), (2, 4)], [(0, 1), (3, 4)]),
        ([(0, 10), (10, 10), (10, 20)], [(0, 9), (10, 10), (11, 20)]),
        ([(0, 1), (1, 2)], [(0, 1), (1, 2)]),
    ],
    ids=["touching", "one apart", "two apart", "inside one", "equal ones alike", "short", "an instant", "too short"],
)
def test_spans_are_cut_only_where_widening_would_make_them_overlap(spans: Intervals, cut: Intervals) -> None:
    assert _cut(*spans) == cut


def test_a_span_right_beside_other_work_is_cut_on_that_side() -> None:
    start, end = np.array([0, 30]), np.array([10, 40])
    held = (edges_at(start, np.array([30, 99])), edges_at(end, np.array([10, 7])))
    cut_start, cut_end = cut_for_widening(start, end, held)
    assert (cut_start.tolist(), cut_end.tolist()) == ([0, 31], [9, 40])


def test_times_are_found_among_edges_in_any_order() -> None:
    assert edges_at(np.array([5, 1, 5, 9]), np.array([9, 100, 5, -3])).tolist() == [True, False, True, True]
    assert edges_at(np.array([5]), np.array([], dtype=np.int64)).tolist() == [False]
    assert edges_at(np.array([], dtype=np.int64), np.array([5])).tolist() == []


@pytest.mark.parametrize(
    ("spans", "lanes"),
    [
        ([(0, 10), (2, 5), (10, 20)], [0, 0, 0]),
        ([(0, 10), (5, 15)], [0, 1]),
        ([(0, 10), (5, 15), (7, 9), (12, 20)], [0, 1, 0, 0]),
        ([(0, 10), (1, 11), (2, 12), (20, 30)], [0, 1, 2, 0]),
        ([(0, 10), (0, 10), (0, 10)], [0, 0, 0]),
    ],
    ids=["nested or apart", "crossing", "back to the first", "three at once", "equal"],
)
def test_a_span_is_on_the_first_row_where_it_crosses_nothing(spans: Intervals, lanes: list[int]) -> None:
    assert _lanes(*spans) == lanes


def test_a_range_inside_one_on_a_far_row_is_on_its_row() -> None:
    crossing = [(i, 100 + i) for i in range(9)]
    assert _lanes(*crossing, (9, 50), (20, 30)) == [*range(9), 0, 0]
    assert _lanes(*crossing, (9, 108)) == [*range(9), 8]


def test_a_far_row_is_used_again_when_it_is_empty() -> None:
    first = [(i, 100 + i) for i in range(9)]
    second = [(1000 + i, 1100 + i) for i in range(9)]
    lanes = _lanes(*first, *second)
    assert max(lanes) == 8
    assert sorted(lanes[9:]) == list(range(9))


def test_added_rows_have_free_ids_and_say_what_they_are() -> None:
    rows = name_extra_rows([(0, 7, 1), (0, 7, 2), (1, 7, 1)], {(0, 7), (0, 2**30), (1, 7)})
    assert rows == {
        (0, 7, 1): ResourceInfo(2**30 + 1, 0, "stream 7 annotations 2", sort_index=7),
        (0, 7, 2): ResourceInfo(2**30 + 2, 0, "stream 7 annotations 3", sort_index=7),
        (1, 7, 1): ResourceInfo(2**30, 1, "stream 7 annotations 2", sort_index=7),
    }
