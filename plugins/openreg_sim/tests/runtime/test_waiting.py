"""A blocking call really waits for the modelled end of the work, and only the thread that made it."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from openreg_sim.runtime import CostModel, Runtime, RuntimeConfig

COST = CostModel(flops_per_s=1e9, kernel_fixed_ns=0)
SECOND = 1_000_000_000


@pytest.fixture
def runtime(hand_clock: Any) -> Runtime:
    return Runtime(RuntimeConfig(cost=COST), hand_clock.clock())


def _end_ns(runtime: Runtime) -> int:
    return int(runtime.ground_truth()["end_ns"][0])


@pytest.mark.parametrize("wait", ["stream_synchronize", "device_synchronize"])
def test_the_host_passes_the_modelled_time_while_it_waits(runtime: Runtime, hand_clock: Any, wait: str) -> None:
    begin_ns = hand_clock.time_ns
    runtime.launch("k", flops=3e9)
    getattr(runtime, wait)()
    assert hand_clock.time_ns >= _end_ns(runtime) >= begin_ns + 3 * SECOND
    assert hand_clock.time_ns - _end_ns(runtime) < 10 * hand_clock.reading_ns


def test_an_event_is_waited_for_and_not_the_work_behind_it(runtime: Runtime, hand_clock: Any) -> None:
    event = runtime.event_create()
    runtime.launch("k", flops=1e9)
    runtime.event_record(event)
    runtime.launch("k", flops=100e9)
    runtime.event_synchronize(event)
    assert _end_ns(runtime) <= hand_clock.time_ns < _end_ns(runtime) + SECOND


def test_waiting_for_one_device_does_not_wait_for_another(runtime: Runtime, hand_clock: Any) -> None:
    runtime.launch("k", flops=5e9, device=1)
    runtime.device_synchronize(0)
    assert hand_clock.slept_s == []


def test_other_threads_launch_while_one_waits(runtime: Runtime, hand_clock: Any) -> None:
    done = []

    def launch_elsewhere() -> None:
        thread = threading.Thread(target=lambda: done.append(runtime.launch("other", device=1)))
        thread.start()
        thread.join(timeout=60)

    hand_clock.on_sleep = launch_elsewhere
    runtime.launch("k", flops=1e9)
    runtime.device_synchronize()
    assert done == [2]


def test_the_call_is_in_the_truth_with_the_time_it_took(runtime: Runtime) -> None:
    runtime.launch("k", flops=1e9)
    runtime.device_synchronize()
    kernel, wait = runtime.ground_truth()
    assert kernel["host_end_ns"] <= wait["host_start_ns"] < kernel["end_ns"] <= wait["host_end_ns"]


def test_what_a_wait_has_seen_the_end_of_stays_ended_though_the_clock_is_set_back(
    runtime: Runtime, hand_clock: Any
) -> None:
    runtime.launch("k", flops=1e9)
    runtime.device_synchronize()
    hand_clock.time_ns -= 10 * SECOND
    assert runtime.stream_query()
