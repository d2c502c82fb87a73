"""Work that runs into other work on its row is found, and what only touches is not."""

from __future__ import annotations

import numpy as np

from devprof.link import RowOverlaps, overlapping_rows
from devprof.link.overlaps import crossings, places_of, rows_by_place
from devprof.model import ActivityBatch, ActivityType, GenericTraceActivity
from tests.cases.linking import call, work


def _overlaps(*batches: list[GenericTraceActivity]) -> RowOverlaps:
    return overlapping_rows([ActivityBatch.from_activities(batch) for batch in batches])


def _found(overlaps: RowOverlaps) -> tuple[list[list[bool]], list[list[bool]]]:
    return [mask.tolist() for mask in overlaps.overrun], [mask.tolist() for mask in overlaps.crossing]


def test_a_late_completion_overruns_its_successors_and_crosses_nothing() -> None:
    overlaps = _overlaps([work(0, 1_600_000), work(10, 20), work(30, 40)])
    assert _found(overlaps) == ([[True, False, False]], [[False, False, False]])
    assert (overlaps.n_overrun, overlaps.n_crossing) == (1, 0)


def test_work_that_starts_inside_another_and_ends_after_it_crosses_it() -> None:
    overlaps = _overlaps([work(0, 100), work(80, 150), work(90, 95)])
    assert _found(overlaps) == ([[True, True, False]], [[False, True, False]])


def test_work_that_only_touches_does_not_overlap() -> None:
    assert _found(_overlaps([work(0, 10), work(10, 20), work(20, 20), work(20, 30)])) == ([[False] * 4], [[False] * 4])


def test_rows_are_devices_and_resources_over_all_batches() -> None:
    overlaps = _overlaps([work(0, 10, stream=1), work(5, 15, stream=2)], [work(5, 15, device=1), work(5, 15, stream=1)])
    assert _found(overlaps) == ([[True, False], [False, False]], [[False, False], [False, True]])


def test_calls_waits_and_user_ranges_are_no_work_on_a_row() -> None:
    others = [ActivityType.CUDA_SYNC, ActivityType.GPU_USER_ANNOTATION, ActivityType.MTIA_COUNTERS]
    overlaps = _overlaps([work(0, 10), call(5, 15), *(work(5, 15, kind=kind) for kind in others)])
    assert (overlaps.n_overrun, overlaps.n_crossing) == (0, 0)


def test_a_negative_duration_counts_as_none() -> None:
    assert _overlaps([work(10, 5), work(10, 20), work(20, 1), work(30, 40)]).n_overrun == 0


def test_records_need_not_be_in_order() -> None:
    assert _found(_overlaps([work(80, 150), work(90, 95), work(0, 100)])) == (
        [[True, False, True]],
        [[True, False, False]],
    )


def test_equal_intervals_are_nested_and_overrun() -> None:
    assert _found(_overlaps([work(0, 10), work(0, 10)])) == ([[True, False]], [[False, False]])


def test_no_records_do_not_overlap() -> None:
    assert _found(_overlaps()) == ([], [])
    assert _found(_overlaps([call(0, 1)])) == ([[False]], [[False]])


def test_a_crossing_deep_inside_another_interval_is_found() -> None:
    start = np.array([0, 10, 15, 40, 41], dtype=np.int64)
    end = np.array([100, 20, 30, 90, 50], dtype=np.int64)
    assert crossings(start, end).tolist() == [False, False, True, False, False]


def test_places_are_equal_for_equal_pairs_only() -> None:
    device = np.array([0, 0, 1, 1, 0, -1], dtype=np.int64)
    resource = np.array([7, 2**60, 7, 2**60, 7, 7], dtype=np.int64)
    places = places_of(device, resource)
    assert places[0] == places[4]
    assert len(set(places.tolist())) == 5


def test_rows_of_a_place_come_together_and_in_order() -> None:
    for places in ([3, 1, 3, 1, 0], [0, 2**40, 0], [5, 5], []):
        groups = [rows.tolist() for rows in rows_by_place(np.array(places, dtype=np.int64))]
        assert groups == [[i for i, place in enumerate(places) if place == one] for one in sorted(set(places))]
