"""Items that name a launch follow it to its new number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from devprof.link import join_launches, link, with_launch_items
from devprof.model import ActivityBatch, ActivityType, GenericTraceActivity

CALL, KERNEL, WAIT = ActivityType.CUDA_RUNTIME, ActivityType.CONCURRENT_KERNEL, ActivityType.CUDA_SYNC
EVENT = ActivityType.CUDA_EVENT
KEY = "wait_on_cuda_event_record_corr_id"


def batch(*records: tuple[ActivityType, int, Mapping[str, Any]]) -> ActivityBatch:
    made = [
        GenericTraceActivity(kind, "x", 10 * at, 10 * at + 5, id=number, metadata=items)
        for at, (kind, number, items) in enumerate(records, 1)
    ]
    return ActivityBatch.from_activities(made)


def linked(*batches: ActivityBatch) -> tuple[list[list[int]], list[ActivityBatch]]:
    """Return the numbers that records got, and the batches with their items."""
    join = join_launches(batches)
    found = link(batches, join)
    return [one.id.tolist() for one in found.columns], with_launch_items(batches, join, found)


def items(given: ActivityBatch, key: str = KEY) -> list[object]:
    return [one.metadata.get(key) for one in given.activities()]


def test_a_wait_names_the_call_that_recorded_its_event_and_the_event_the_same() -> None:
    calls = batch((CALL, 900, {}), (CALL, 901, {}), (CALL, 902, {}))
    device = batch((KERNEL, 900, {}), (EVENT, 901, {"correlation": 901}), (WAIT, 902, {KEY: 901}))
    ((_, recorded, _), _), (_, after) = linked(calls, device)
    assert items(after) == [None, None, recorded]
    assert items(after, "correlation") == [None, recorded, None]


@pytest.mark.parametrize("number", [-1, 0, 2**32 - 1])
def test_what_names_no_launch_stays(number: int) -> None:
    _, (after,) = linked(batch((CALL, 1, {}), (WAIT, 1, {KEY: number})))
    assert items(after) == [None, number]


def test_a_call_that_is_not_there_is_one_of_before_the_capture() -> None:
    numbers, (after,) = linked(batch((CALL, 1, {}), (WAIT, 1, {KEY: 5}), (KERNEL, 2**40, {KEY: 2**40 - 1})))
    assert items(after) == [None, -1, -1]
    assert len(set(numbers[0])) == 2


def test_a_record_on_the_device_has_the_last_word_only_where_no_call_has_the_number() -> None:
    ((kernel, call, _),), (after,) = linked(batch((KERNEL, 7, {}), (CALL, 8, {}), (WAIT, 9, {KEY: 7})))
    assert items(after)[2] == kernel != call


def test_batches_without_such_items_and_values_that_are_no_whole_numbers_are_left_alone() -> None:
    plain = batch((CALL, 1, {}), (KERNEL, 1, {"correlation": "abc"}))
    _, (after,) = linked(plain)
    assert after is plain
    assert with_launch_items([], join_launches([]), link([], join_launches([]))) == []


def test_many_numbers_far_apart_are_found_again() -> None:
    ids = np.random.default_rng(3).choice(2**62, 500, replace=False)
    calls = batch(*((CALL, int(one), {}) for one in ids))
    waits = batch(*((WAIT, 0, {KEY: int(one)}) for one in ids[::-1]))
    (numbers, _), (_, after) = linked(calls, waits)
    assert items(after) == numbers[::-1]
