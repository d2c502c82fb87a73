"""A batch is right however it is made, stays as it is, and gives back what was put in."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import numpy as np
import pytest

from devprof.model import (
    ActivityBatch,
    ActivityType,
    BatchBuilder,
    Flow,
    GenericTraceActivity,
    MetadataColumn,
    MetadataKind,
    MixedKindsError,
    RecordError,
    kLinkFwdBwd,
)
from devprof.model.columns import COLUMNS

FULL = GenericTraceActivity(
    ActivityType.CONCURRENT_KERNEL,
    'gemm "x"\n',
    10,
    20,
    id=3,
    device=1,
    resource=7,
    thread_id=99,
    linked=5,
    linked_user=6,
    flow=Flow(11, kLinkFwdBwd, False),
    metadata={"grid": (1, 2, 3), "bytes": 4, "ratio": 0.5, "ok": True, "text": "\ud800é"},
    counter_values={"watts": 2.5},
)
PLAIN = GenericTraceActivity(ActivityType.GPU_MEMCPY, "copy", -5, 2**62)
EMPTY: dict[str, Any] = {"activity_type": [], "name": [], "start": [], "end": []}
TWO: dict[str, Any] = {"activity_type": 5, "name": [0, 1], "start": [1, 2], "end": [3, 4]}


def _batch(**changes: Any) -> ActivityBatch:
    return ActivityBatch.from_columns(("a", "b"), **{**TWO, **changes})


def _columns(batch: ActivityBatch) -> dict[str, list[int]]:
    return {key: getattr(batch, key).tolist() for key in COLUMNS}


# -- made of columns --------------------------------------------------------------------------------------------------


def test_columns_not_given_are_zero_and_scalars_are_repeated() -> None:
    zeros = {key: [0, 0] for key in COLUMNS}
    assert _columns(_batch(device=3)) == {
        **zeros,
        "activity_type": [5, 5],
        "name": [0, 1],
        "start": [1, 2],
        "end": [3, 4],
        "device": [3, 3],
    }


@pytest.mark.parametrize("key", COLUMNS)
def test_every_column_has_its_dtype_and_cannot_be_written(key: str) -> None:
    column = getattr(_batch(), key)
    assert column.dtype == np.dtype(COLUMNS[key])
    with pytest.raises(ValueError, match="read-only"):
        column[0] = 1


def test_a_batch_of_nothing_is_a_batch() -> None:
    batch = ActivityBatch.from_columns((), **EMPTY)
    assert (len(batch), batch.activities(), _columns(batch)) == (0, [], {key: [] for key in COLUMNS})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"colour": [1, 2]}, r"unknown column\(s\) \['colour'\]; expected among \['activity_type', 'device'"),
        ({"end": [3]}, r"column 'end' has shape \(1,\), expected \(2,\)"),
        ({"start": [[1, 2], [3, 4]]}, r"column 'start' has shape \(2, 2\)"),
        (
            {"device": [0, 2**31]},
            "column 'device' does not fit int32: it has dtype int64 and values from 0 to 2147483648",
        ),
        ({"id": np.array([0, 2**63], dtype=np.uint64)}, "column 'id' does not fit int64: it has dtype uint64"),
        ({"start": [1.5, 2.0]}, "column 'start' does not fit int64: it has dtype float64"),
        ({"start": [float("nan"), 2.0]}, "column 'start' does not fit int64"),
        ({"linked": 2**70}, "column 'linked' does not fit int64: it has dtype object"),
        ({"linked": None}, "column 'linked' does not fit int64: it has dtype object"),
        ({"activity_type": [5, 256]}, "column 'activity_type' does not fit uint8"),
        ({"name": [0, 2]}, r"column 'name' indexes outside the string table: 0\.\.2, table has 2 text\(s\)"),
        ({"name": [-1, 0]}, "column 'name' indexes outside the string table: -1"),
        (
            {"metadata": {"k": MetadataColumn(MetadataKind.INT, np.array([1]))}},
            "metadata column 'k' has 1 rows, expected 2",
        ),
        (
            {"metadata": {"k": MetadataColumn(MetadataKind.STRING, np.array([0, 9]))}},
            r"metadata column 'k' indexes outside the string table: 0\.\.9",
        ),
        ({"metadata": {1: MetadataColumn(MetadataKind.INT, np.array([1, 2]))}}, "metadata 1 is a MetadataColumn"),
        ({"metadata": {"k": np.array([1, 2])}}, "metadata 'k' is a ndarray, expected a MetadataColumn under a text"),
        (
            {"counters": {"c": MetadataColumn(MetadataKind.INT, np.array([1, 2]))}},
            "counter 'c' holds INT values, expected FLOAT",
        ),
        ({"clock": None}, "clock is a NoneType, expected a name"),
    ],
)
def test_a_column_that_does_not_fit_is_refused_by_name(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        _batch(**changes)


@pytest.mark.parametrize("strings", [("a", b"b"), ("a", None), ("a", 1)])
def test_a_string_table_holds_text_only(strings: Any) -> None:
    with pytest.raises(ValueError, match=r"the string table holds .*expected text only"):
        ActivityBatch.from_columns(strings, **TWO)


def test_a_string_table_of_numpy_holds_plain_text_afterwards() -> None:
    batch = ActivityBatch.from_columns(np.array(["a", "b"]), **TWO)  # type: ignore[arg-type]
    assert batch.strings == ("a", "b")
    assert {type(text) for text in batch.strings} == {str}


def test_arrays_that_fit_are_not_copied_and_the_mapping_is() -> None:
    start, metadata = np.array([1, 2]), {"k": MetadataColumn(MetadataKind.INT, np.array([1, 2]))}
    batch = _batch(start=start, metadata=metadata)
    assert np.shares_memory(batch.start, start)
    metadata.clear()
    assert list(batch.metadata) == ["k"]


# -- made of another batch --------------------------------------------------------------------------------------------


def test_taking_rows_keeps_everything_of_them() -> None:
    batch = ActivityBatch.from_activities([FULL, PLAIN, FULL])
    for rows in (np.array([False, True, True]), np.array([1, 2]), slice(1, 3)):
        taken = batch.take(rows)
        assert taken.activities() == [PLAIN, FULL]
        assert taken.strings is batch.strings


@pytest.mark.parametrize("rows", [np.array([True]), np.array([5])])
def test_rows_that_are_not_there_cannot_be_taken(rows: Any) -> None:
    with pytest.raises(IndexError):
        _batch().take(rows)


def test_other_times_on_another_clock_change_nothing_else() -> None:
    batch = ActivityBatch.from_activities([FULL, PLAIN], clock="ticks")
    moved = batch.with_times(np.array([1, 2]), np.array([3, 4]))
    assert moved.activities() == [
        dataclasses.replace(FULL, start_ns=1, end_ns=3),
        dataclasses.replace(PLAIN, start_ns=2, end_ns=4),
    ]
    assert (batch.clock, moved.clock) == ("ticks", "unix_ns")


@pytest.mark.parametrize("times", [np.array([1]), np.array([1.5, 2.5]), np.array([[1, 2]])])
def test_times_of_another_length_or_type_are_refused(times: Any) -> None:
    batch = _batch()
    with pytest.raises(ValueError, match="column 'start'"):
        batch.with_times(times, batch.end)
    with pytest.raises(ValueError, match="column 'end'"):
        batch.with_times(batch.start, times)


def test_a_replaced_column_is_checked_as_a_new_one() -> None:
    with pytest.raises(ValueError, match=r"column 'linked' has shape \(3,\), expected \(2,\)"):
        dataclasses.replace(_batch(), linked=np.zeros(3, dtype=np.int64))


def test_a_batch_survives_pickling() -> None:
    batch = ActivityBatch.from_activities([FULL, PLAIN], clock="ticks")
    copy = pickle.loads(pickle.dumps(batch))
    assert (copy.activities(), copy.clock, copy.strings) == (batch.activities(), "ticks", batch.strings)


# -- made of objects --------------------------------------------------------------------------------------------------


def test_objects_come_back_as_they_were() -> None:
    assert ActivityBatch.from_activities([FULL, PLAIN]).activities() == [FULL, PLAIN]


def test_a_flow_of_id_0_is_none() -> None:
    [back] = ActivityBatch.from_activities([dataclasses.replace(PLAIN, flow=Flow(0, 2, True))]).activities()
    assert back == PLAIN


def test_whole_and_broken_numbers_under_one_key_become_floats_without_loss() -> None:
    batch = ActivityBatch.from_activities(
        [dataclasses.replace(PLAIN, metadata={"k": value}) for value in (1, 0.5, 2**53)]
    )
    assert batch.metadata["k"].kind is MetadataKind.FLOAT
    assert batch.metadata["k"].values.tolist() == [1.0, 0.5, 2.0**53]


def test_a_record_that_no_batch_can_hold_leaves_the_builder_as_it_was() -> None:
    builder = BatchBuilder()
    builder.append(PLAIN)
    builder.append(dataclasses.replace(PLAIN, metadata={"k": 1}))
    with pytest.raises(RecordError, match="start_ns is a float"):
        builder.append(dataclasses.replace(PLAIN, start_ns=1.0, metadata={"new": 1}))  # type: ignore[arg-type]
    with pytest.raises(MixedKindsError, match="'k' holds INT and STRING in one batch"):
        builder.append(dataclasses.replace(PLAIN, metadata={"k": "1", "other": 1}))
    assert len(builder) == 2
    assert builder.build().activities() == [PLAIN, dataclasses.replace(PLAIN, metadata={"k": 1})]


def test_one_object_filled_again_for_every_record_gives_different_records() -> None:
    builder, reused = BatchBuilder(clock="ticks"), dataclasses.replace(PLAIN, start_ns=0)
    for start in range(3):
        reused.start_ns = start
        builder.append(reused)
    assert [a.start_ns for a in builder.build().activities()] == [0, 1, 2]
    assert builder.build().clock == "ticks"


def test_a_number_that_is_no_activity_type_can_travel_and_cannot_be_shown() -> None:
    batch = _batch(activity_type=[200, 5])
    with pytest.raises(ValueError, match="200 is not a valid ActivityType"):
        batch.activities()
