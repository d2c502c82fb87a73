"""Work runs when the last thing that it must wait for has ended, and not later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from openreg_sim.ring import CopyKind
from openreg_sim.runtime import CostModel, ErrorCode, OpenRegError, Runtime, RuntimeConfig

COST = CostModel(
    flops_per_s=1e9,
    bytes_per_s=1e9,
    kernel_fixed_ns=0,
    copy_bytes_per_s=dict.fromkeys(CopyKind, 1e9),
    copy_fixed_ns=0,
    launch_latency_ns=10,
    call_ns=1,
)
"""One operation or byte takes one nanosecond; a call takes one, and work starts ten after its call at the earliest."""

T0 = 1_000_000_000


@pytest.fixture
def runtime() -> Runtime:
    return Runtime(RuntimeConfig.virtual_clock(cost=COST))


@pytest.fixture
def spans(truth_columns: Callable[..., list[Any]]) -> Callable[[Runtime], list[tuple[int, int]]]:
    def relative(runtime: Runtime) -> list[tuple[int, int]]:
        return [(start - T0, end - T0) for start, end in truth_columns(runtime, "start_ns", "end_ns")]

    return relative


Spans = Callable[[Runtime], list[tuple[int, int]]]


def test_a_stream_runs_its_work_in_order_and_without_a_gap(runtime: Runtime, spans: Spans) -> None:
    for _ in range(3):
        runtime.launch("k", flops=100)
    assert spans(runtime) == [(10, 110), (110, 210), (210, 310)]


def test_streams_and_devices_overlap(runtime: Runtime, spans: Spans) -> None:
    side = runtime.create_stream()
    runtime.launch("k", flops=100)
    runtime.launch("k", flops=100, stream=side)
    runtime.launch("k", flops=100, device=1)
    assert spans(runtime) == [(10, 110), (11, 111), (12, 112)]


def test_a_kernel_takes_as_long_as_the_slower_of_arithmetic_and_memory(runtime: Runtime, spans: Spans) -> None:
    runtime.launch("k", flops=100, bytes=30)
    runtime.launch("k", flops=30, bytes=50)
    runtime.memset(7)
    assert spans(runtime) == [(10, 110), (110, 160), (160, 167)]


def test_a_copy_engine_does_one_copy_at_a_time(runtime: Runtime, spans: Spans) -> None:
    side = runtime.create_stream()
    runtime.memcpy(CopyKind.HOST_TO_DEVICE, 100)
    runtime.memcpy(CopyKind.HOST_TO_DEVICE, 100, stream=side)
    runtime.memcpy(CopyKind.HOST_TO_DEVICE, 100, device=1)
    assert spans(runtime) == [(10, 110), (110, 210), (12, 112)]


def test_copies_in_and_out_overlap(runtime: Runtime, spans: Spans) -> None:
    side = runtime.create_stream()
    runtime.memcpy(CopyKind.HOST_TO_DEVICE, 100)
    runtime.memcpy(CopyKind.DEVICE_TO_HOST, 100, stream=side)
    assert spans(runtime) == [(10, 110), (11, 111)]


def test_a_copy_between_devices_needs_the_peer_engine_of_both(runtime: Runtime, spans: Spans) -> None:
    side = runtime.create_stream(device=1)
    runtime.memcpy(CopyKind.PEER_TO_PEER, 100, device=0, peer=1)
    runtime.memcpy(CopyKind.PEER_TO_PEER, 100, device=1, peer=0, stream=side)
    assert spans(runtime) == [(10, 110), (110, 210)]


def test_a_copy_within_a_device_needs_no_engine(runtime: Runtime, spans: Spans) -> None:
    side = runtime.create_stream()
    runtime.memcpy(CopyKind.DEVICE_TO_DEVICE, 100)
    runtime.memcpy(CopyKind.DEVICE_TO_DEVICE, 100, stream=side)
    assert spans(runtime) == [(10, 110), (11, 111)]


def test_work_behind_a_wait_starts_when_the_event_is_reached(runtime: Runtime, spans: Spans) -> None:
    event = runtime.event_create()
    runtime.launch("k", flops=100)
    runtime.event_record(event)
    runtime.stream_wait_event(event, device=1)
    runtime.launch("k", flops=5, device=1)
    assert spans(runtime) == [(10, 110), (110, 110), (2, 110), (110, 115)]


def test_an_event_on_an_idle_stream_is_reached_at_once(runtime: Runtime, spans: Spans) -> None:
    event = runtime.event_create()
    runtime.event_record(event)
    assert spans(runtime) == [(0, 0)]
    assert runtime.event_query(event)


def test_waiting_for_an_event_that_was_never_recorded_holds_nothing_up(runtime: Runtime, spans: Spans) -> None:
    runtime.stream_wait_event(runtime.event_create())
    runtime.launch("k", flops=5)
    assert spans(runtime) == [(0, 0), (11, 16)]


def test_a_wait_keeps_the_point_that_the_event_marked_when_it_was_made(runtime: Runtime, spans: Spans) -> None:
    event = runtime.event_create()
    runtime.event_record(event)
    runtime.stream_wait_event(event, device=1)
    runtime.launch("k", flops=1000)
    runtime.event_record(event)
    runtime.launch("k", flops=5, device=1)
    assert spans(runtime)[-1] == (14, 19)


def test_destroying_an_event_frees_nobody_who_waits_for_it(runtime: Runtime, spans: Spans) -> None:
    event = runtime.event_create()
    runtime.launch("k", flops=100)
    runtime.event_record(event)
    runtime.stream_wait_event(event, device=1)
    runtime.event_destroy(event)
    runtime.launch("k", flops=5, device=1)
    assert spans(runtime)[-1] == (110, 115)


def test_elapsed_time_between_events_is_that_of_the_timeline(runtime: Runtime) -> None:
    start, end = runtime.event_create(), runtime.event_create()
    runtime.event_record(start)
    runtime.launch("k", flops=2_000_000)
    runtime.event_record(end)
    runtime.event_synchronize(end)
    assert runtime.event_elapsed_ms(start, end) == (2_000_000 + 11) / 1e6


def test_elapsed_time_is_refused_until_both_events_are_reached(runtime: Runtime) -> None:
    start, end, never = (runtime.event_create() for _ in range(3))
    runtime.event_record(start)
    runtime.launch("k", flops=2_000_000)
    runtime.event_record(end)
    with pytest.raises(OpenRegError, match="not reached yet; synchronize it first") as not_ready:
        runtime.event_elapsed_ms(start, end)
    with pytest.raises(OpenRegError, match="was never recorded") as unrecorded:
        runtime.event_elapsed_ms(start, never)
    assert (not_ready.value.code, unrecorded.value.code) == (ErrorCode.NOT_READY, ErrorCode.INVALID_HANDLE)


def test_queries_turn_true_when_the_wait_is_over(runtime: Runtime) -> None:
    event = runtime.event_create()
    runtime.launch("k", flops=1000)
    runtime.event_record(event)
    assert (runtime.stream_query(), runtime.event_query(event)) == (False, False)
    runtime.stream_synchronize()
    assert (runtime.stream_query(), runtime.event_query(event)) == (True, True)


@pytest.mark.parametrize(
    ("call", "code", "message"),
    [
        (lambda r: r.launch("k", device=2), ErrorCode.INVALID_DEVICE, "there is no device 2; expected 0 to 1"),
        (lambda r: r.launch("k", stream=9), ErrorCode.INVALID_HANDLE, "device 0 has no stream 9; make one with"),
        (lambda r: r.set_device(-1), ErrorCode.INVALID_DEVICE, "there is no device -1"),
        (lambda r: r.memset(-1), ErrorCode.INVALID_VALUE, "-1 bytes"),
        (lambda r: r.memcpy(CopyKind.PEER_TO_PEER, 1), ErrorCode.INVALID_VALUE, "a peer for PEER_TO_PEER only"),
        (
            lambda r: r.memcpy(CopyKind.HOST_TO_DEVICE, 1, peer=1),
            ErrorCode.INVALID_VALUE,
            "a peer for PEER_TO_PEER only",
        ),
        (lambda r: r.event_record(1 << 40), ErrorCode.INVALID_HANDLE, "destroyed or never created"),
        (lambda r: r.timestamp(5), ErrorCode.INVALID_DEVICE, "there is no device 5"),
    ],
)
def test_a_call_that_makes_no_sense_says_what_was_expected_and_does_nothing(
    runtime: Runtime, call: Callable[[Runtime], object], code: ErrorCode, message: str
) -> None:
    with pytest.raises(OpenRegError, match=message) as caught:
        call(runtime)
    assert caught.value.code is code
    assert len(runtime.ground_truth()) == 0


def test_a_thread_has_its_own_current_device_and_streams(runtime: Runtime) -> None:
    from concurrent.futures import ThreadPoolExecutor

    side = runtime.create_stream(device=1)
    runtime.set_device(1)
    runtime.set_stream(side)
    with ThreadPoolExecutor(1) as pool:
        elsewhere = pool.submit(lambda: (runtime.current_device(), runtime.current_stream(1))).result()
    assert (runtime.current_device(), runtime.current_stream(), runtime.current_stream(0)) == (1, side, 0)
    assert elsewhere == (0, 0)


def test_streams_are_listed_with_device_number_and_priority(runtime: Runtime) -> None:
    runtime.create_stream(device=1, priority=-1)
    assert runtime.streams() == [(0, 0, 0), (1, 0, 0), (1, 1, -1)]
