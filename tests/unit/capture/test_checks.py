"""What no trace can hold is sorted out by reason, once, and derived records lose their link."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from devprof.capture import check_batch
from devprof.model import ActivityBatch, ActivityType, MetadataColumn, MetadataKind

T = ActivityType
ALL = frozenset(T)


def _batch(**columns: Any) -> ActivityBatch:
    given: dict[str, Any] = {"activity_type": 5, "name": 0, "start": [1, 2, 3], "end": [4, 5, 6], "id": [1, 2, 3]}
    return ActivityBatch.from_columns(("k",), **{**given, **columns})


def test_a_batch_without_fault_comes_back_as_it_is() -> None:
    batch = _batch()
    kept, rejected = check_batch(batch, ALL)
    assert kept is batch
    assert rejected == {}


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"activity_type": [5, 200, 5]}, "unknown activity type"),
        ({"activity_type": [5, T.CPU_OP, 5]}, "activity type reserved for the host"),
        ({"activity_type": [5, T.USER_ANNOTATION, 5]}, "activity type reserved for the host"),
        ({"activity_type": [5, T.CPU_INSTANT_EVENT, 5]}, "activity type reserved for the host"),
        ({"activity_type": [5, T.PYTHON_FUNCTION, 5]}, "activity type reserved for the host"),
        ({"start": [1, 0, 3], "end": [4, 0, 6]}, "no timestamp"),
        ({"start": [1, -1, 3], "end": [4, 0, 6]}, "no timestamp"),
        ({"end": [4, 1, 6]}, "negative duration"),
        ({"end": [4, 0, 6]}, "negative duration"),
        ({"start": [1, 2**63 - 1, 3], "end": [4, -(2**63), 6]}, "negative duration"),
        ({"device": [0, -1, 0]}, "negative device index"),
    ],
)
def test_a_record_at_fault_is_taken_out_with_its_reason(columns: dict[str, Any], reason: str) -> None:
    kept, rejected = check_batch(_batch(**columns), ALL)
    assert (kept.id.tolist(), rejected) == ([1, 3], {reason: 1})


def test_a_kind_that_nobody_asked_for_is_taken_out() -> None:
    kinds = [T.CONCURRENT_KERNEL, T.GPU_MEMCPY, T.CONCURRENT_KERNEL]
    kept, rejected = check_batch(_batch(activity_type=kinds), {T.CONCURRENT_KERNEL})
    assert (kept.id.tolist(), rejected) == ([1, 3], {"activity type not requested": 1})
    kept, rejected = check_batch(_batch(), frozenset())
    assert (len(kept), rejected) == (0, {"activity type not requested": 3})


def test_a_record_with_many_faults_is_counted_once() -> None:
    kept, rejected = check_batch(_batch(activity_type=[200, 5, 5], start=[0, 0, 3], end=[0, 0, 1], device=-1), ALL)
    assert (len(kept), rejected) == (0, {"unknown activity type": 1, "no timestamp": 1, "negative duration": 1})


def test_derived_spans_and_counters_lose_their_link_and_work_keeps_it() -> None:
    kinds = [T.CONCURRENT_KERNEL, T.GPU_USER_ANNOTATION, T.HARDWARE_COUNTERS]
    batch = _batch(activity_type=kinds, linked=[7, 7, 7], linked_user=[8, 8, 8])
    kept, rejected = check_batch(batch, ALL)
    assert (kept.linked.tolist(), kept.linked_user.tolist(), rejected) == ([7, 0, 0], [8, 0, 0], {})
    assert batch.linked.tolist() == [7, 7, 7]


def test_every_known_kind_is_kept_or_has_a_reason() -> None:
    kinds = np.arange(256, dtype=np.uint8)
    columns: dict[str, Any] = dict.fromkeys(("start", "end"), np.full(256, 5))
    kept, rejected = check_batch(ActivityBatch.from_columns(("k",), activity_type=kinds, name=0, **columns), ALL)
    assert (len(kept), dict(rejected)) == (
        len(T) - 4,
        {"unknown activity type": 256 - len(T), "activity type reserved for the host": 4},
    )


def _memory(**columns: Any) -> ActivityBatch:
    items = {
        key: MetadataColumn(MetadataKind.INT, np.array([1, 2, 3])) for key in ("Bytes", "Device Type", "Device Id")
    }
    given: dict[str, Any] = {"activity_type": T.CPU_INSTANT_EVENT, "name": [0, 1, 0], "start": [1, 2, 3],
                             "end": [1, 2, 3], "metadata": items}  # fmt: skip
    return ActivityBatch.from_columns(("[memory]", "[OutOfMemory]", "mine"), **{**given, **columns})


def test_reports_of_memory_are_taken_where_they_were_asked_for() -> None:
    batch = _memory()
    assert check_batch(batch, ALL) == (batch, {})
    assert check_batch(batch, ALL - {T.CPU_INSTANT_EVENT})[1] == {"activity type reserved for the host": 3}


@pytest.mark.parametrize(
    ("columns", "kept"),
    [
        ({"name": [0, 2, 0]}, [1, 3]),
        ({"metadata": {}}, []),
        ({"metadata": {**_memory().metadata, "Bytes": MetadataColumn(MetadataKind.FLOAT, np.ones(3))}}, []),
        (
            {"metadata": {**_memory().metadata, "Bytes": MetadataColumn(MetadataKind.INT, np.ones(3), [0, 1, 1])}},
            [2, 3],
        ),
    ],
)
def test_an_instant_that_is_no_report_of_memory_is_the_hosts(columns: dict[str, Any], kept: list[int]) -> None:
    found, rejected = check_batch(_memory(**columns), ALL)
    assert (found.start.tolist(), rejected) == (kept, {"activity type reserved for the host": 3 - len(kept)})
