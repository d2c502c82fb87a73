"""Each fault rule does what it says, for as long as it says, and the truth stays true."""

from __future__ import annotations

from typing import Any

import pytest
from openreg_sim import activity
from openreg_sim.activity import RECORD_BYTES, ActivityKind
from openreg_sim.runtime import (
    Call,
    ClockStep,
    DropRecords,
    DuplicateRecords,
    ErrorCode,
    FailCall,
    LateFlush,
    OpenRegError,
    ReorderRecords,
    Runtime,
    SmallBuffers,
)

KERNEL, RUNTIME = ActivityKind.KERNEL, ActivityKind.RUNTIME
TEN = list(range(1, 11))


def _ten_launches(runtime: Runtime) -> None:
    activity.orActivityEnableTracing({KERNEL, RUNTIME})
    for _ in range(10):
        runtime.launch("k")
    activity.orActivityDisableTracing()
    runtime.device_synchronize()
    activity.orActivityFlushAll(force=True)


@pytest.mark.parametrize(("counted", "dropped"), [(True, 3), (False, 0)])
def test_records_are_dropped_of_one_kind_and_counted_or_not(
    virtual: Runtime, make_client: Any, counted: bool, dropped: int
) -> None:
    client = make_client()
    virtual.inject(DropRecords(every=3, kind=KERNEL, counted=counted))
    _ten_launches(virtual)
    assert client.correlations(KERNEL) == [1, 2, 4, 5, 7, 8, 10]
    assert client.correlations(RUNTIME) == TEN
    assert activity.orActivityGetNumDroppedRecords() == dropped
    assert virtual.ground_truth()["correlation"].tolist() == [*TEN, 11]


def test_counting_goes_on_from_one_delivery_to_the_next(virtual: Runtime, make_client: Any) -> None:
    client = make_client()
    virtual.inject(DropRecords(every=3))
    activity.orActivityEnableTracing({RUNTIME})
    for _ in range(6):
        virtual.launch("k")
        activity.orActivityFlushAll()
    assert client.correlations(RUNTIME) == [1, 2, 4, 5]


def test_records_come_twice(virtual: Runtime, make_client: Any) -> None:
    client = make_client()
    virtual.inject(DuplicateRecords(every=5, kind=KERNEL))
    _ten_launches(virtual)
    assert client.correlations(KERNEL) == [1, 2, 3, 4, 5, 5, 6, 7, 8, 9, 10, 10]
    assert client.correlations(RUNTIME) == TEN


def test_records_come_in_another_order_the_same_each_time(virtual: Runtime, make_client: Any) -> None:
    orders = []
    for _ in range(2):
        client = make_client()
        virtual.inject(ReorderRecords(seed=1))
        _ten_launches(virtual)
        virtual.clear_faults()
        orders.append([number - min(client.correlations(RUNTIME)) + 1 for number in client.correlations(RUNTIME)])
    assert orders[0] == orders[1] != TEN
    assert sorted(orders[0]) == TEN


def test_buffers_are_used_in_part(virtual: Runtime, make_client: Any) -> None:
    client = make_client()
    virtual.inject(SmallBuffers(bytes=6 * RECORD_BYTES + 1))
    _ten_launches(virtual)
    assert [size // RECORD_BYTES for _, size in client.completed] == [6, 6, 6, 2]


def test_a_late_flush_hands_over_nothing_and_the_next_one_everything(virtual: Runtime, make_client: Any) -> None:
    client = make_client()
    virtual.inject(LateFlush(flushes=1, forced=True))
    _ten_launches(virtual)
    assert client.completed == []
    activity.orActivityFlushAll(force=True)
    assert client.correlations(KERNEL) == TEN


def test_a_forced_flush_is_late_only_if_the_rule_says_so(virtual: Runtime, make_client: Any) -> None:
    client = make_client()
    virtual.inject(LateFlush(flushes=1))
    _ten_launches(virtual)
    assert client.correlations(KERNEL) == TEN


def test_the_nth_call_of_a_sort_fails_once_and_does_nothing(virtual: Runtime) -> None:
    virtual.inject(FailCall(nth=2, call=Call.LAUNCH, code=ErrorCode.LAUNCH_FAILURE))
    virtual.launch("first")
    virtual.memset(1)
    with pytest.raises(OpenRegError, match="orLaunchKernel: failed by a fault rule") as caught:
        virtual.launch("second")
    virtual.launch("third")
    assert caught.value.code is ErrorCode.LAUNCH_FAILURE
    truth = virtual.ground_truth()
    assert [virtual.name_of(int(name)) for name in truth["name"]] == ["first", "Memset (Device)", "third"]
    assert truth["correlation"].tolist() == [1, 2, 3]


def test_a_failed_allocation_takes_no_memory(virtual: Runtime) -> None:
    virtual.inject(FailCall(nth=1, call=Call.ALLOCATE, code=ErrorCode.OUT_OF_MEMORY))
    with pytest.raises(OpenRegError):
        virtual.allocate(100)
    assert virtual.memory_info().allocated_bytes == 0


def test_a_failed_queued_call_is_raised_by_the_next_wait_and_once(virtual: Runtime, ring: Any) -> None:
    virtual.inject(FailCall(nth=2))
    virtual.replay(ring(3))
    with pytest.raises(OpenRegError, match="orLaunchKernel"):
        virtual.device_synchronize()
    virtual.device_synchronize()
    assert (virtual.ground_truth()["call"] == Call.LAUNCH).sum() == 2


def test_a_clock_step_changes_stamps_from_the_nth_call_on_and_not_the_truth(virtual: Runtime, make_client: Any) -> None:
    client = make_client()
    virtual.inject(ClockStep(nth=6, ticks=-1_000_000))
    _ten_launches(virtual)
    work = virtual.ground_truth()[:10]
    shift = client.of(RUNTIME)["start"] - (work["host_start_ns"] - virtual.device_clock.origin_ns)
    assert shift.tolist() == [0] * 5 + [-1_000_000] * 5
    assert (work["end_ns"] > work["start_ns"]).all()


def test_cleared_rules_do_nothing(virtual: Runtime, make_client: Any) -> None:
    client = make_client()
    virtual.inject(DropRecords(every=1), FailCall(nth=1))
    virtual.clear_faults()
    _ten_launches(virtual)
    assert client.correlations(KERNEL) == TEN
