"""The activity API: what is enabled is recorded, what has ended is delivered, what cannot be delivered is counted."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from openreg_sim import activity
from openreg_sim.activity import MEMORY_DTYPE, RECORD_BYTES, SYNCHRONIZATION_DTYPE, ActivityKind
from openreg_sim.runtime import Call, CostModel, Runtime, RuntimeConfig, use_runtime

KERNEL, RUNTIME = ActivityKind.KERNEL, ActivityKind.RUNTIME


def _names(records: Any) -> list[str]:
    return [activity.orActivityGetName(int(name)) for name in records["name"]]


def _launch(runtime: Runtime, count: int = 1) -> list[int]:
    return [runtime.launch("k", flops=1e9) for _ in range(count)]


def test_only_what_is_enabled_is_recorded(virtual: Runtime, make_client: Any) -> None:
    client = make_client()
    activity.orActivityEnableTracing({KERNEL})
    virtual.memset(10)
    kernel = virtual.launch("k")
    virtual.device_synchronize()
    activity.orActivityFlushAll(force=True)
    assert [(int(r["kind"]), int(r["correlation"])) for r in client.records] == [(KERNEL, kernel)]


def test_nothing_is_recorded_before_enabling_and_after_disabling(virtual: Runtime, make_client: Any) -> None:
    client = make_client()
    _launch(virtual)
    activity.orActivityEnableTracing()
    inside = _launch(virtual)
    activity.orActivityDisableTracing()
    _launch(virtual)
    virtual.device_synchronize()
    activity.orActivityFlushAll(force=True)
    assert client.correlations(KERNEL) == client.correlations(RUNTIME) == inside


def test_kinds_are_enabled_and_disabled_one_by_one(virtual: Runtime, make_client: Any) -> None:
    client = make_client()
    activity.orActivityEnableTracing({KERNEL})
    activity.orActivityEnableTracing({RUNTIME})
    first = _launch(virtual)
    activity.orActivityDisableTracing({KERNEL})
    second = _launch(virtual)
    virtual.stream_synchronize()
    activity.orActivityFlushAll(force=True)
    assert client.correlations(KERNEL) == first
    assert client.correlations(RUNTIME) == [*first, *second, second[0] + 1]


def test_work_that_was_launched_before_disabling_still_leaves_its_record(virtual: Runtime, make_client: Any) -> None:
    client = make_client()
    activity.orActivityEnableTracing({KERNEL})
    launched = _launch(virtual)
    activity.orActivityDisableTracing()
    activity.orActivityFlushAll()
    assert client.correlations(KERNEL) == []
    virtual.device_synchronize()
    activity.orActivityFlushAll()
    assert client.correlations(KERNEL) == launched


@pytest.mark.parametrize("force", [False, True])
def test_a_flush_leaves_what_is_still_running_and_never_cuts_it_short(
    virtual: Runtime, make_client: Any, force: bool
) -> None:
    client = make_client()
    activity.orActivityEnableTracing({KERNEL, RUNTIME})
    launched = _launch(virtual, 5)
    activity.orActivityFlushAll(force)
    assert (client.correlations(RUNTIME), client.correlations(KERNEL)) == (launched, [])
    virtual.device_synchronize()
    activity.orActivityFlushAll(force)
    assert client.correlations(KERNEL) == launched


def test_a_flush_hands_over_what_has_ended_so_far(virtual: Runtime, make_client: Any) -> None:
    client = make_client()
    activity.orActivityEnableTracing({KERNEL})
    event = virtual.event_create()
    first = _launch(virtual)
    virtual.event_record(event)
    second = _launch(virtual)
    virtual.event_synchronize(event)
    activity.orActivityFlushAll()
    assert client.correlations(KERNEL) == first
    virtual.device_synchronize()
    activity.orActivityFlushAll()
    assert client.correlations(KERNEL) == first + second


def test_full_buffers_are_handed_back_and_the_last_one_at_the_flush(virtual: Runtime, make_client: Any) -> None:
    client = make_client(buffer_bytes=4 * RECORD_BYTES + 7)
    activity.orActivityEnableTracing({KERNEL})
    launched = _launch(virtual, 10)
    virtual.device_synchronize()
    activity.orActivityFlushAll()
    assert [size // RECORD_BYTES for _, size in client.completed] == [4, 4, 2]
    assert client.correlations(KERNEL) == launched


def test_after_a_forced_flush_the_runtime_holds_no_buffer(virtual: Runtime, make_client: Any) -> None:
    with use_runtime(Runtime(replace(virtual.config, delivery_rows=1))) as eager:
        client = make_client()
        activity.orActivityEnableTracing({KERNEL})
        eager.launch("k")
        eager.device_synchronize()
        eager.memset(1)
        eager.launch("k")
        assert client.completed == []
        activity.orActivityFlushAll(force=True)
    assert [size // RECORD_BYTES for _, size in client.completed] == [1]


def test_records_pile_up_only_so_far_before_they_are_delivered(make_client: Any) -> None:
    with use_runtime(Runtime(RuntimeConfig.virtual_clock(delivery_rows=10))) as runtime:
        client = make_client(buffer_bytes=10 * RECORD_BYTES)
        activity.orActivityEnableTracing({RUNTIME})
        _launch(runtime, 25)
        assert client.correlations(RUNTIME) == list(range(1, 21))


def test_records_without_a_buffer_are_dropped_and_counted_once(virtual: Runtime, make_client: Any) -> None:
    client = make_client(buffer_bytes=3 * RECORD_BYTES, buffers=10)
    activity.orActivityEnableTracing({KERNEL})
    _launch(virtual, 100)
    virtual.device_synchronize()
    activity.orActivityFlushAll()
    assert len(client.records) == 30
    assert [activity.orActivityGetNumDroppedRecords() for _ in range(2)] == [70, 0]


def test_without_a_client_everything_is_dropped_and_counted(virtual: Runtime) -> None:
    activity.orActivityEnableTracing({KERNEL})
    _launch(virtual, 3)
    virtual.device_synchronize()
    activity.orActivityFlushAll()
    assert activity.orActivityGetNumDroppedRecords() == 3


def test_a_buffer_too_small_for_a_record_goes_straight_back(virtual: Runtime, make_client: Any) -> None:
    client = make_client(buffer_bytes=RECORD_BYTES - 1)
    activity.orActivityEnableTracing({KERNEL})
    _launch(virtual, 2)
    virtual.device_synchronize()
    activity.orActivityFlushAll()
    assert [size for _, size in client.completed] == [0]
    assert activity.orActivityGetNumDroppedRecords() == 2


def test_a_new_client_gets_nothing_of_the_old_ones_buffers(make_client: Any) -> None:
    with use_runtime(Runtime(RuntimeConfig.virtual_clock(delivery_rows=1))) as runtime:
        old = make_client()
        activity.orActivityEnableTracing({RUNTIME})
        first = _launch(runtime)
        new = make_client()
        second = _launch(runtime)
        activity.orActivityFlushAll()
        assert (old.correlations(RUNTIME), new.correlations(RUNTIME)) == (first, second)


@pytest.mark.parametrize("callback", ["requested", "completed"])
def test_a_callback_that_raises_is_logged_and_spares_the_program(
    virtual: Runtime, caplog: pytest.LogCaptureFixture, callback: str
) -> None:
    def fail(*_: object) -> Any:
        raise ZeroDivisionError

    requested: Any = fail if callback == "requested" else lambda: bytearray(RECORD_BYTES)
    completed: Any = fail if callback == "completed" else lambda buffer, size: None
    activity.orActivityRegisterCallbacks(requested, completed)
    activity.orActivityEnableTracing({KERNEL})
    _launch(virtual)
    virtual.device_synchronize()
    with caplog.at_level(logging.ERROR, logger="openreg_sim"):
        activity.orActivityFlushAll()
    assert [record.exc_info[0] for record in caplog.records if record.exc_info] == [ZeroDivisionError]


def test_external_ids_come_in_records_of_their_own_before_the_call(virtual: Runtime, make_client: Any) -> None:
    client = make_client()
    activity.orActivityEnableTracing({RUNTIME, ActivityKind.EXTERNAL_CORRELATION})
    activity.orActivityPushExternalCorrelationId(0, 70)
    activity.orActivityPushExternalCorrelationId(1, 2**62)
    _launch(virtual)
    activity.orActivityFlushAll()
    kinds = [int(record["kind"]) for record in client.records]
    pushed = client.of(ActivityKind.EXTERNAL_CORRELATION).view(activity.EXTERNAL_CORRELATION_DTYPE)
    assert kinds == [ActivityKind.EXTERNAL_CORRELATION] * 2 + [RUNTIME]
    assert [(int(r["correlation"]), int(r["external_kind"]), int(r["external_id"])) for r in pushed] == [
        (1, 0, 70),
        (1, 1, 2**62),
    ]


def test_a_call_outside_every_range_has_no_external_record(virtual: Runtime, make_client: Any) -> None:
    client = make_client()
    activity.orActivityEnableTracing()
    _launch(virtual)
    activity.orActivityFlushAll()
    assert client.correlations(ActivityKind.EXTERNAL_CORRELATION) == []


@pytest.mark.parametrize(("kind", "id"), [(2, 1), (-1, 1), (0, -1), (0, 2**63)])
def test_an_id_that_no_record_can_hold_is_refused(virtual: Runtime, kind: int, id: int) -> None:
    with pytest.raises(RuntimeError, match=r"expected a kind of .* and an id from 0 to"):
        activity.orActivityPushExternalCorrelationId(kind, id)


def test_waits_are_records_that_name_the_event_and_its_recording(virtual: Runtime, make_client: Any) -> None:
    client = make_client()
    activity.orActivityEnableTracing({ActivityKind.SYNCHRONIZATION})
    side, event = virtual.create_stream(device=1), virtual.event_create()
    virtual.launch("k", flops=1e9)
    recorded = virtual.event_record(event)
    virtual.stream_wait_event(event, 1, side)
    virtual.event_synchronize(event)
    virtual.stream_synchronize(1, side)
    virtual.device_synchronize(1)
    activity.orActivityFlushAll()
    found = client.of(ActivityKind.SYNCHRONIZATION).view(SYNCHRONIZATION_DTYPE)
    assert [(*(int(r[n]) for n in ("device", "stream", "event", "event_correlation")),) for r in found] == [
        (1, side, event, recorded),
        (0, 0, event, recorded),
        (1, side, 0, 0),
        (1, 0, 0, 0),
    ]
    assert _names(found) == ["Stream Wait Event", "Event Sync", "Stream Sync", "Context Sync"]


def test_memory_records_say_how_much_is_in_use_afterwards(virtual: Runtime, make_client: Any) -> None:
    client = make_client()
    activity.orActivityEnableTracing({ActivityKind.MEMORY})
    address = virtual.allocate(100, device=1)
    virtual.free(address)
    activity.orActivityFlushAll()
    found = client.of(ActivityKind.MEMORY).view(MEMORY_DTYPE)
    fields = ("device", "call", "bytes", "address", "allocated", "reserved")
    assert [tuple(int(record[field]) for field in fields) for record in found] == [
        (1, Call.ALLOCATE, 100, address, 100, 512),
        (1, Call.FREE, -100, address, 0, 0),
    ]


def test_host_records_are_unix_ns_and_device_records_are_ticks(hand_clock: Any, make_client: Any) -> None:
    config = RuntimeConfig(clock_offset_ticks=1_000, clock_drift_ppm=0.0, cost=CostModel(launch_latency_ns=0))
    with use_runtime(Runtime(config, hand_clock.clock())) as runtime:
        client = make_client()
        activity.orActivityEnableTracing({KERNEL, RUNTIME})
        runtime.launch("k")
        runtime.device_synchronize()
        activity.orActivityFlushAll()
        (truth, _), origin_ns = runtime.ground_truth(), runtime.device_clock.origin_ns
        assert client.of(RUNTIME)["start"][0] == truth["host_start_ns"]
        assert client.of(KERNEL)["start"][0] == truth["start_ns"] - origin_ns + 1_000
        assert activity.orActivityHostTimesAreTicks() is False


def test_with_a_virtual_clock_host_records_are_ticks_too(virtual: Runtime, make_client: Any) -> None:
    client = make_client()
    activity.orActivityEnableTracing({KERNEL, RUNTIME})
    _launch(virtual)
    virtual.device_synchronize()
    activity.orActivityFlushAll()
    launch, kernel = client.of(RUNTIME)[0], client.of(KERNEL)[0]
    assert (int(launch["start"]), int(kernel["start"])) == (0, virtual.config.cost.launch_latency_ns)
    assert activity.orActivityHostTimesAreTicks() is True


def test_threads_that_launch_at_once_lose_nothing_and_share_no_number(make_client: Any) -> None:
    with use_runtime(Runtime(RuntimeConfig.virtual_clock(delivery_rows=7))) as runtime:
        client = make_client()
        activity.orActivityEnableTracing({KERNEL, RUNTIME, ActivityKind.EXTERNAL_CORRELATION})
        numbers: dict[int, list[int]] = {}

        def work(worker: int) -> None:
            activity.orActivityPushExternalCorrelationId(0, worker)
            numbers[worker] = _launch(runtime, 200)

        threads = [threading.Thread(target=work, args=(worker,)) for worker in range(1, 9)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        activity.orActivityDisableTracing()
        runtime.device_synchronize()
        activity.orActivityFlushAll(force=True)
        everything = sorted(number for mine in numbers.values() for number in mine)
        pushed = client.of(ActivityKind.EXTERNAL_CORRELATION).view(activity.EXTERNAL_CORRELATION_DTYPE)
        assert everything == list(range(1, 1601))
        assert sorted(client.correlations(KERNEL)) == sorted(client.correlations(RUNTIME)) == everything
        assert {int(r["correlation"]): int(r["external_id"]) for r in pushed} == {
            number: worker for worker, mine in numbers.items() for number in mine
        }


def test_queued_calls_are_judged_under_the_state_in_which_they_were_made(
    virtual: Runtime, make_client: Any, ring: Callable[..., Any]
) -> None:
    queue: list[Any] = []
    virtual.set_drain(lambda: virtual.replay(queue.pop()) if queue else None)
    client = make_client()
    queue.append(ring(2))
    activity.orActivityEnableTracing({KERNEL})
    queue.append(ring(3))
    activity.orActivityDisableTracing()
    queue.append(ring(4))
    virtual.device_synchronize()
    activity.orActivityFlushAll(force=True)
    assert client.correlations(KERNEL) == [3, 4, 5]
