"""Work that crosses other work of its stream stands on a row beside it, and nothing else moves."""

from __future__ import annotations

from devprof.link import join_launches, link, overlapping_rows, separate_work
from devprof.model import ActivityBatch, ActivityType, GenericTraceActivity, ResourceInfo


def batch(*intervals: tuple[int, int], stream: int = 7, device: int = 0) -> ActivityBatch:
    """Kernels of these intervals on one stream."""
    return ActivityBatch.from_activities(
        GenericTraceActivity(ActivityType.CONCURRENT_KERNEL, "k", start, end, device=device, resource=stream)
        for start, end in intervals
    )


def separated(*batches: ActivityBatch, device_offset: int = 0) -> tuple[list[list[int]], tuple[ResourceInfo, ...], int]:
    """The resources per batch, the added rows and how many records moved."""
    result = link(batches, join_launches(batches), device_offset=device_offset)
    work = separate_work(batches, result)
    after = overlapping_rows(work.batches)
    assert after.n_crossing == 0
    return [one.resource.tolist() for one in work.batches], work.extra_rows, work.n_displaced


def test_the_one_that_crosses_moves_and_the_one_nested_in_it_goes_along() -> None:
    """K1 [0, 100], K2 [80, 150], K3 [90, 95]: all three can be drawn."""
    resources, rows, n_displaced = separated(batch((1, 100), (80, 150), (90, 95)))
    assert resources == [[7, 2**30, 7]]
    assert rows == (ResourceInfo(2**30, 0, "stream 7 (2)", sort_index=7),)
    assert n_displaced == 1


def test_other_streams_and_devices_keep_their_rows() -> None:
    """Only the stream that has crossings is touched; the added row is on the device with its offset."""
    crossing, calm, elsewhere = (
        batch((1, 100), (80, 150)),
        batch((1, 100), (100, 150), stream=8),
        batch((5, 9), device=1),
    )
    resources, rows, _ = separated(crossing, calm, elsewhere, device_offset=100)
    assert resources == [[7, 2**30], [8, 8], [7]]
    assert [(row.device_id, row.name) for row in rows] == [(100, "stream 7 (2)")]


def test_a_moved_record_says_which_stream_it_ran_on() -> None:
    """The row is a drawing aid; the truth is in the record."""
    batches = [batch((1, 100), (80, 150))]
    work = separate_work(batches, link(batches, join_launches(batches)))
    assert [dict(activity.metadata) for activity in work.batches[0].activities()] == [{}, {"own stream": 7}]


def test_an_added_row_never_takes_a_number_that_is_in_use() -> None:
    """A stream may have any number, also the first that devprof would give out."""
    resources, rows, _ = separated(batch((1, 100), (80, 150)), batch((1, 5), stream=2**30))
    assert resources == [[7, 2**30 + 1], [2**30]]
    assert [row.id for row in rows] == [2**30 + 1]
