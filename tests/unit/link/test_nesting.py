"""Which event encloses which, on one row and on many."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from devprof.link import nest, nesting

Spans = list[tuple[int, int]]


def nested(spans: Spans, rows: list[int] | None = None, *, entered_in_order: bool = True) -> list[int]:
    """Parents of (start, end) pairs."""
    start, end = np.array(spans, dtype=np.int64).reshape(-1, 2).T
    row = np.array([0] * len(spans) if rows is None else rows, dtype=np.int64)
    parent = nest(start, end, row, entered_in_order=entered_in_order)
    assert parent.dtype == np.int64
    return [int(event) for event in parent]


def test_children_find_the_innermost_event_around_them() -> None:
    assert nested([(0, 100), (10, 50), (20, 30), (35, 40), (60, 70), (200, 300)]) == [-1, 0, 1, 1, 0, -1]


def test_no_events_have_no_parents() -> None:
    assert nested([]) == []


def test_an_event_that_starts_where_another_ends_is_behind_it() -> None:
    assert nested([(0, 100), (0, 50), (50, 100)]) == [-1, 0, 0]


def test_of_equal_spans_the_one_entered_first_is_outside() -> None:
    assert nested([(0, 10), (0, 10), (0, 10)]) == [-1, 0, 1]


def test_of_equal_starts_a_shorter_event_that_was_entered_first_is_over_before_the_longer_one() -> None:
    assert nested([(0, 5), (0, 10)]) == [-1, -1]


def test_in_a_file_of_equal_starts_the_longest_event_is_outside() -> None:
    assert nested([(0, 5), (0, 10), (0, 10), (20, 21)], entered_in_order=False) == [2, -1, 1, -1]


def test_an_instant_is_inside_what_begins_or_ends_at_its_tick_and_nothing_is_inside_it() -> None:
    spans = [(0, 10), (0, 0), (10, 10), (10, 10), (10, 20), (10, 10), (20, 20), (21, 21)]
    assert nested(spans) == [-1, 0, 0, 0, -1, 4, 4, -1]


def test_a_negative_duration_counts_as_none() -> None:
    assert nested([(0, 10), (5, 3), (5, 6)]) == [-1, 0, 0]


def test_an_event_that_crosses_out_of_another_is_the_child_of_what_encloses_both() -> None:
    assert nested([(0, 100), (10, 50), (40, 60), (45, 48), (55, 58), (70, 80)]) == [-1, 0, 0, 2, 2, 0]


def test_a_crossing_on_one_row_leaves_other_rows_alone() -> None:
    spans = [(0, 10), (0, 10), (5, 15), (5, 9), (12, 14), (6, 8)]
    assert nested(spans, [1, 2, 1, 2, 1, 2]) == [-1, -1, -1, 1, 2, 3]


def test_rows_may_have_any_numbers() -> None:
    rows = [-(2**62), 2**62, 0, -(2**62), 2**62, 0]
    assert nested([(0, 10), (0, 10), (0, 10), (1, 2), (3, 4), (20, 30)], rows) == [-1, -1, -1, 0, 1, -1]


def test_events_may_be_given_in_any_order() -> None:
    assert nested([(20, 30), (10, 50), (60, 70), (0, 100)]) == [1, 3, 3, -1]


def test_a_time_far_off_does_not_upset_the_others() -> None:
    spans = [(0, 10), (-(2**61), 2**62), (1, 2), (3, 4), (2**62, 2**62)]
    assert nested(spans, [1, 2, 1, 2, 3]) == [-1, -1, 0, 1, -1]


@pytest.mark.parametrize("crossing", [False, True])
def test_recursion_may_be_a_hundred_thousand_deep(crossing: bool) -> None:
    n = 100_000
    start = np.arange(n, dtype=np.int64)
    end = 10 * n - start
    parent: npt.NDArray[np.int64] = start - 1
    if crossing:  # the deepest but one outlasts everything
        end[n - 2] = 20 * n
        parent = parent.copy()
        parent[n - 2] = -1
    assert nest(start, end, np.zeros(n, dtype=np.int64)).tolist() == parent.tolist()


def test_what_comes_behind_something_deep_finds_what_is_around_it_however_far_away() -> None:
    deep = [(1 + i, 1000 - i) for i in range(100)]  # each around those after it, all in the first one
    later = [(1000 + 2 * i, 1001 + 2 * i) for i in range(50)]
    assert nested([(0, 2000), *deep, *later]) == [-1, *range(100), *[0] * 50]


def test_whether_anything_crosses_is_told() -> None:
    spans = np.array([(0, 10), (0, 10), (2, 8), (5, 15), (5, 5)], dtype=np.int64)
    start, end = spans.T
    assert nesting(start, end, np.array([1, 2, 1, 2, 1])).crosses
    assert not nesting(start, end, np.array([1, 2, 1, 3, 1])).crosses
