"""User ranges on devices, from linked batches to rows of a trace."""

from __future__ import annotations

import pytest

from devprof.errors import UsageError
from devprof.link import AnnotationSpans, annotation_spans, join_launches, link
from devprof.model import ActivityBatch, ActivityType, GenericTraceActivity, ResourceInfo
from tests.cases.linking import work


def _spans(*records: GenericTraceActivity, device_offset: int = 0, **options: object) -> AnnotationSpans:
    batches = [ActivityBatch.from_activities(records)]
    result = link(batches, join_launches(batches), device_offset=device_offset)
    return annotation_spans(batches, result, **options)  # type: ignore[arg-type]


def _rows(spans: AnnotationSpans) -> list[tuple[int, ...]]:
    columns = (spans.user_id, spans.device, spans.resource, spans.start, spans.end)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_spans_carry_the_offset_of_their_plugins_devices() -> None:
    spans = _spans(work(0, 10, user=3, device=1, stream=2**40), device_offset=100)
    assert _rows(spans) == [(3, 101, 2**40, 0, 10)]
    assert (len(spans), spans.device.dtype.name) == (1, "int32")


def test_outer_ranges_come_before_inner_ones_that_are_as_long() -> None:
    spans = _spans(work(0, 10, user=9), user_parents={9: 5, 5: 7})
    assert spans.user_id.tolist() == [7, 5, 9]


def test_spans_that_touch_are_left_whole_where_nothing_widens_them() -> None:
    records = (work(0, 10, user=3), work(10, 20, user=4))
    assert _rows(_spans(*records, widened_by_ns=0)) == [(3, 0, 1, 0, 10), (4, 0, 1, 10, 20)]
    assert _rows(_spans(*records)) == [(3, 0, 1, 0, 9), (4, 0, 1, 11, 20)]


def test_a_row_is_added_under_an_id_that_no_record_of_the_device_uses() -> None:
    records = [work(start, start + 10, user=user) for start, user in ((0, 3), (20, 4), (40, 3), (60, 4))]
    wait = work(0, 1, stream=2**30, device=0, kind=ActivityType.CUDA_SYNC)
    spans = _spans(*records, wait)
    assert _rows(spans) == [(3, 0, 1, 0, 50), (4, 0, 2**30 + 1, 20, 70)]
    assert spans.extra_rows == (ResourceInfo(2**30 + 1, 0, "stream 1 annotations 2", sort_index=1),)
    assert spans.n_displaced == 1


def test_the_same_pattern_on_two_streams_adds_a_row_to_each() -> None:
    pattern = [(start, user, stream) for stream in (1, 2) for start, user in ((0, 3), (20, 4), (40, 3), (60, 4))]
    spans = _spans(*(work(start, start + 10, user=user, stream=stream) for start, user, stream in pattern))
    assert [row.name for row in spans.extra_rows] == ["stream 1 annotations 2", "stream 2 annotations 2"]
    assert len({row.id for row in spans.extra_rows}) == 2


def test_an_instant_between_two_ranges_that_touch_moves_to_a_row_of_its_own() -> None:
    spans = _spans(work(0, 10, user=3), work(10, 10, user=5), work(10, 20, user=4))
    written = [(user, resource, start - 1, end + 1) for user, _, resource, start, end in _rows(spans)]
    assert written == [(3, 1, -1, 10), (5, 2**30, 9, 11), (4, 1, 10, 21)]


def test_work_that_ends_before_it_starts_is_an_instant() -> None:
    assert _rows(_spans(work(10, 5, user=3), work(20, 30, user=3))) == [(3, 0, 1, 10, 30)]


def test_without_ranges_there_is_nothing() -> None:
    spans = _spans(work(0, 10))
    assert (_rows(spans), spans.extra_rows, spans.n_displaced, len(spans)) == ([], (), 0, 0)
    assert _rows(_spans()) == []


@pytest.mark.parametrize("width", [-1, 2])
def test_another_width_is_refused(width: int) -> None:
    with pytest.raises(UsageError, match=f"spans are widened by 0 or 1 ns, found {width}"):
        _spans(work(0, 10, user=3), widened_by_ns=width)
