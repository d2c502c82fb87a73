"""Several batches as one."""

from __future__ import annotations

import numpy as np
import pytest

from devprof.errors import UsageError
from devprof.model import ActivityBatch, ActivityType, GenericTraceActivity, MetadataColumn, MetadataKind
from devprof.pipeline.merging import merged

T = ActivityType


def batch(*records: GenericTraceActivity) -> ActivityBatch:
    return ActivityBatch.from_activities(records, clock="toy")


def test_records_keep_everything_and_their_order() -> None:
    first = [GenericTraceActivity(T.CPU_OP, "a", 1, 2, id=3, thread_id=4, metadata={"text": "x", "number": 5})]
    second = [
        GenericTraceActivity(T.PYTHON_FUNCTION, "b", 5, 6, metadata={"text": "y", "grid": (1, 2)}),
        GenericTraceActivity(T.CPU_INSTANT_EVENT, "a", 7, 7, linked=3, metadata={"flag": False}),
    ]
    one = merged([batch(*first), batch(), batch(*second)])
    assert one.activities() == [*first, *second]
    assert one.clock == "toy"


def test_a_single_batch_is_handed_through() -> None:
    alone = batch(GenericTraceActivity(T.CPU_OP, "a", 1, 2))
    assert merged([alone]) is alone


def test_values_of_two_kinds_under_one_key_are_refused_by_name() -> None:
    with pytest.raises(UsageError, match="hold INT, STRING under 'size'"):
        merged(
            [
                batch(GenericTraceActivity(T.CPU_OP, "a", 1, 2, metadata={"size": 3})),
                batch(GenericTraceActivity(T.CPU_OP, "a", 1, 2, metadata={"size": "big"})),
            ]
        )


def test_a_key_that_is_on_every_row_of_one_batch_is_on_no_row_of_the_other() -> None:
    everywhere = ActivityBatch.from_columns(
        ["a"],
        activity_type=0,
        name=0,
        start=[1, 2],
        end=[3, 4],
        metadata={"n": MetadataColumn(MetadataKind.INT, np.array([7, 8]))},
    )
    nowhere = ActivityBatch.from_columns(["b"], activity_type=0, name=0, start=[5], end=[6])
    assert [one.metadata for one in merged([nowhere, everywhere]).activities()] == [{}, {"n": 7}, {"n": 8}]
