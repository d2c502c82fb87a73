"""The window keeps or leaves out, counts why, and costs nothing where it has nothing to do."""

from __future__ import annotations

import numpy as np

from devprof.link import WindowResult, apply_window, join_launches
from devprof.model import ActivityBatch, GenericTraceActivity
from tests.cases.linking import call, work


def _window(*batches: list[GenericTraceActivity], start: int = 100, end: int = 200) -> WindowResult:
    ready = [ActivityBatch.from_activities(batch) for batch in batches]
    return apply_window(ready, join_launches(ready), start, end)


def test_reasons_are_counted_and_masks_are_per_batch() -> None:
    window = _window(
        [call(50, 60, id=1), call(110, 120, id=2), work(150, 160, id=1)],
        [],
        [work(250, 260, id=2), work(250, 260), work(99, 500, id=2)],
    )
    assert [mask.tolist() for mask in window.masks] == [[False, True, False], [], [True, False, False]]
    assert (window.n_kept, window.all_kept) == (2, False)
    assert window.dropped == {"before window": 2, "after window": 1, "launched outside window": 1}


def test_kept_and_dropped_add_up_and_reasons_that_did_not_occur_are_absent() -> None:
    window = _window([call(100, 101), call(200, 900)])
    assert (window.n_kept, window.dropped, window.all_kept) == (2, {}, True)


def test_where_nothing_goes_the_batches_and_the_join_are_passed_through() -> None:
    batches = [ActivityBatch.from_activities([call(150, 151, id=1), work(250, 260, id=1)])]
    join = join_launches(batches)
    kept, kept_join = apply_window(batches, join, 100, 200).apply(batches, join)
    assert kept[0] is batches[0]
    assert kept_join is join


def test_a_batch_that_loses_nothing_is_not_copied_beside_one_that_does() -> None:
    batches = [
        ActivityBatch.from_activities([call(150, 151)]),
        ActivityBatch.from_activities([call(50, 51), call(160, 161)]),
    ]
    join = join_launches(batches)
    kept, kept_join = apply_window(batches, join, 100, 200).apply(batches, join)
    assert kept[0] is batches[0]
    assert (kept[1].start.tolist(), kept_join.bounds) == ([160], (0, 1, 2))


def test_times_near_the_ends_of_int64_are_compared_whole() -> None:
    now = 1_790_000_000_000_000_000
    batch = ActivityBatch.from_columns(
        ["x"], activity_type=5, name=0, start=[now - 1, now, now + 1, 1, 2**63 - 1], end=0
    )
    window = apply_window([batch], join_launches([batch]), now, now)
    assert window.masks[0].tolist() == [False, True, False, False, False]


def test_no_records_are_no_trouble() -> None:
    window = _window()
    assert (window.masks, window.n_kept, window.dropped) == ((), 0, {})
    assert np.concatenate(_window([]).masks).tolist() == []
