"""Records survive the way into columns and back, whatever they hold."""

from __future__ import annotations

import dataclasses

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from devprof.model import ActivityBatch, ActivityType, BatchBuilder, Flow, GenericTraceActivity, MixedKindsError

INT64 = st.integers(-(2**63), 2**63 - 1)
# lone surrogates included: a vendor's names come from anywhere
TEXT = st.text(st.characters(), max_size=8)
KEYS = st.sampled_from(["a", "b", "grid", "", "ключ"])
FLOATS = st.floats(allow_nan=False)
# one type per key, so that every record fits the same batch
METADATA = st.fixed_dictionaries(
    {},
    optional={
        "int": INT64,
        "float": FLOATS,
        "bool": st.booleans(),
        "text": TEXT,
        "list": st.tuples(INT64, INT64),
        "empty": st.just(()),
    },
)
FLOWS = st.none() | st.builds(Flow, st.integers(1, 2**63 - 1), st.integers(0, 255), st.booleans())


def _activities(metadata: st.SearchStrategy[dict[str, object]]) -> st.SearchStrategy[GenericTraceActivity]:
    return st.builds(
        GenericTraceActivity,
        st.sampled_from(ActivityType),
        TEXT,
        INT64,
        INT64,
        id=INT64,
        device=st.integers(-(2**31), 2**31 - 1),
        resource=INT64,
        thread_id=INT64,
        linked=INT64,
        linked_user=INT64,
        flow=FLOWS,
        metadata=metadata,
        counter_values=st.dictionaries(KEYS, FLOATS, max_size=2),
    )


RECORDS = st.lists(_activities(METADATA), max_size=12)
MIXED = st.dictionaries(KEYS, st.one_of(INT64, FLOATS, st.booleans(), TEXT, st.lists(INT64, max_size=2).map(tuple)))


@given(RECORDS)
def test_objects_come_back_from_columns_as_they_were(records: list[GenericTraceActivity]) -> None:
    batch = ActivityBatch.from_activities(records, clock="ticks")
    assert batch.activities() == records
    assert len(set(batch.strings)) == len(batch.strings)


@given(RECORDS, st.data())
def test_taking_rows_is_choosing_records(records: list[GenericTraceActivity], data: st.DataObject) -> None:
    batch = ActivityBatch.from_activities(records)
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(records), max_size=len(records))), dtype=np.bool_)
    chosen = [record for record, keep in zip(records, mask, strict=True) if keep]
    assert batch.take(mask).activities() == chosen
    assert batch.take(np.flatnonzero(mask)).activities() == chosen


@given(RECORDS, st.data())
def test_other_times_change_the_times_only(records: list[GenericTraceActivity], data: st.DataObject) -> None:
    n = len(records)
    starts, ends = (data.draw(st.lists(INT64, min_size=n, max_size=n)) for _ in range(2))
    moved = ActivityBatch.from_activities(records, clock="ticks").with_times(
        np.array(starts, dtype=np.int64), np.array(ends, dtype=np.int64)
    )
    assert moved.activities() == [
        dataclasses.replace(record, start_ns=start, end_ns=end)
        for record, start, end in zip(records, starts, ends, strict=True)
    ]


@given(st.lists(_activities(MIXED), max_size=8))  # type: ignore[arg-type]
def test_whatever_metadata_is_mixed_no_value_is_changed(records: list[GenericTraceActivity]) -> None:
    builder, taken = BatchBuilder(), []
    for record in records:
        try:
            builder.append(record)
        except MixedKindsError:
            continue
        taken.append(record)
    # equality of Python's numbers is exact: 2**53 + 1 is not equal to the float beside it
    assert builder.build().activities() == taken
