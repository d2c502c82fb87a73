"""A record that was delivered twice stays once; whatever differs in anything is another record."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from devprof.link import duplicates, join_launches, may_hold_duplicates, overlapping_rows
from devprof.model import ActivityBatch, ActivityType, GenericTraceActivity

KERNEL = GenericTraceActivity(
    ActivityType.CONCURRENT_KERNEL, "k", 100, 200, id=7, device=1, resource=2, thread_id=3, linked=4
)
LAUNCH = GenericTraceActivity(ActivityType.PRIVATEUSE1_RUNTIME, "launch", 90, 95, id=7, thread_id=3)


def batches(*parts: list[GenericTraceActivity]) -> list[ActivityBatch]:
    return [ActivityBatch.from_activities(part) for part in parts]


def repeated(*parts: list[GenericTraceActivity]) -> list[list[bool]]:
    return [mask.tolist() for mask in duplicates(batches(*parts))]


def test_the_second_and_every_further_copy_is_told_from_the_first() -> None:
    assert repeated([KERNEL, LAUNCH, KERNEL, KERNEL, LAUNCH]) == [[False, False, True, True, True]]


def test_copies_are_found_in_other_batches_whose_strings_have_other_numbers() -> None:
    other = replace(LAUNCH, activity_name="another", id=8)
    assert repeated([KERNEL], [other, KERNEL], []) == [[False], [False, True], []]


@pytest.mark.parametrize(
    "change",
    [
        {"activity_name": "other"},
        {"activity_type": ActivityType.GPU_MEMCPY},
        {"start_ns": 101},
        {"end_ns": 201},
        {"id": 8},
        {"device": 0},
        {"resource": 3},
        {"thread_id": 4},
    ],
    ids=str,
)
def test_a_record_that_differs_is_no_copy(change: dict[str, Any]) -> None:
    assert repeated([KERNEL, replace(KERNEL, **change)]) == [[False, False]]


def test_records_without_a_number_are_left_alone() -> None:
    """Two user counters or two unnumbered kernels may well be alike."""
    assert repeated([replace(KERNEL, id=0), replace(KERNEL, id=0)]) == [[False, False]]


def test_nothing_holds_no_duplicates() -> None:
    assert duplicates([]) == ()


@pytest.mark.parametrize(
    ("records", "worth"),
    [
        ([LAUNCH, KERNEL], False),
        ([LAUNCH, KERNEL, KERNEL], True),
        ([LAUNCH, KERNEL, LAUNCH], True),
        ([LAUNCH, KERNEL, replace(KERNEL, start_ns=200, end_ns=300)], False),
    ],
    ids=["clean", "work twice", "launch twice", "one launch of two kernels"],
)
def test_a_look_is_worth_it_only_where_copies_leave_their_marks(
    records: list[GenericTraceActivity], worth: bool
) -> None:
    found = batches(records)
    assert may_hold_duplicates(join_launches(found), overlapping_rows(found)) is worth
