"""The columns beside a batch: what is shared, what is copied, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from devprof.errors import UsageError
from devprof.link import LinkCounts, LinkResult, join_launches, link
from devprof.link.columns import Bools, Longs
from devprof.model import ActivityBatch, ActivityType, GenericTraceActivity
from tests.cases.linking import call, work

T = ActivityType


def _link(*batches: list[GenericTraceActivity], **options: object) -> tuple[list[ActivityBatch], LinkResult]:
    ready = [ActivityBatch.from_activities(batch) for batch in batches]
    return ready, link(ready, join_launches(ready), **options)  # type: ignore[arg-type]


def test_columns_come_per_batch_with_the_dtypes_of_a_batch() -> None:
    batches, result = _link([call(0, 1, id=1), work(2, 3, id=1)], [], [work(4, 5)])
    for batch, columns in zip(batches, result.columns, strict=True):
        for name in ("linked", "linked_user", "id", "flow_id", "flow_type", "flow_start", "device"):
            assert getattr(columns, name).dtype == getattr(batch, name).dtype, name
            assert getattr(columns, name).shape == (len(batch),), name
        assert (columns.skewed.dtype, columns.skewed.shape) == (np.bool_, (len(batch),))


def test_applied_columns_replace_the_batchs_and_nothing_else() -> None:
    batches, result = _link([call(0, 1, id=1, op=7, thread=3), work(2, 3, id=1, device=1)], device_offset=100)
    before = batches[0].activities()
    after = result.apply_to(batches)[0].activities()
    assert [(one.id, one.linked, one.device, one.flow) for one in after] == [
        (2**30, 7, 0, (2**30, 2, True)),
        (2**30, 7, 101, (2**30, 2, False)),
    ]
    kept = ("activity_type", "activity_name", "start_ns", "end_ns", "resource", "thread_id")
    assert [[getattr(one, name) for name in kept] for one in after] == [
        [getattr(one, name) for name in kept] for one in before
    ]


def test_linking_does_not_write_to_the_batches() -> None:
    batches, _ = _link([call(0, 1, id=1, op=7), work(2, 3, id=1)], [work(0, 1, op=9)], known_ops=lambda ids: ids == 7)
    assert [batch.linked.tolist() for batch in batches] == [[7, 0], [9]]


def test_every_number_is_given_from_the_base_and_the_next_plugin_goes_on() -> None:
    _, result = _link([call(0, 1, id=1), work(2, 3, id=1), work(4, 5)], launch_base=10)
    assert (result.columns[0].id.tolist(), result.next_id) == ([10, 10, 11], 12)
    _, empty = _link(launch_base=10)
    assert (empty.columns, empty.next_id, empty.counts) == ((), 10, LinkCounts())


@pytest.mark.parametrize("base", [0, -5, 2**31 - 1])
def test_numbers_that_do_not_fit_a_positive_int32_are_refused(base: int) -> None:
    with pytest.raises(UsageError, match=rf"launch numbers {base} to {base + 1} do not fit 1 to 2147483647"):
        _link([call(0, 1), call(2, 3)], launch_base=base)


def test_the_last_number_that_fits_is_given() -> None:
    _, result = _link([call(0, 1)], launch_base=2**31 - 1)
    assert result.columns[0].id.tolist() == [2**31 - 1]


def test_only_records_on_devices_are_moved_by_the_offset() -> None:
    kinds = [
        T.PRIVATEUSE1_RUNTIME,
        T.CONCURRENT_KERNEL,
        T.OVERHEAD,
        T.MTIA_COUNTERS,
        T.CUDA_SYNC,
        T.GPU_USER_ANNOTATION,
    ]
    _, result = _link([work(0, 0, kind=kind, device=1) for kind in kinds], device_offset=200)
    assert result.columns[0].device.tolist() == [1, 201, 1, 201, 201, 201]


def test_the_host_is_asked_once_about_distinct_ids_and_never_about_none() -> None:
    asked: list[list[int]] = []

    def known(ids: Longs) -> Bools:
        asked.append(ids.tolist())
        return ids != 9

    _, result = _link(
        [work(0, 1, op=9), work(0, 1, op=4), work(0, 1)], [work(0, 1, op=4), work(0, 1, op=-2)], known_ops=known
    )
    assert asked == [[-2, 4, 9]]
    assert [columns.linked.tolist() for columns in result.columns] == [[0, 4, 0], [4, -2]]


def test_counts_add_up() -> None:
    records = [
        call(10, 11, id=1, op=7),
        work(12, 13, id=1),
        work(5, 6, id=1, op=8),
        call(20, 21, op=7),
        work(30, 31, id=99, op=55),
        work(32, 33, kind=T.CUDA_SYNC),
    ]
    _, result = _link(records, known_ops=lambda ids: ids != 55)
    assert result.counts == LinkCounts(
        work=3,
        linked=2,
        unlinked=1,
        unknown_ops=1,
        inherited=1,
        launches=1,
        calls_without_work=1,
        work_without_launch=1,
        shared_numbers=0,
        duplicate_starts=0,
        loose_ends=0,
        skewed=1,
        other_ops=1,
    )


def test_user_parents_are_kept_for_the_spans() -> None:
    parents = {4: 3}
    _, result = _link([call(0, 1)], user_parents=parents)
    assert result.user_parents == parents
