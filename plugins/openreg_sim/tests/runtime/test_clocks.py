"""The host's clock passes as it should, and the device's is wrong in exactly the way it was told to be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openreg_sim.runtime import DeviceClock, RealClock, VirtualClock

NOW = 1_700_000_000_000_000_000


def test_a_real_wait_sleeps_and_then_polls_and_is_never_early(hand_clock: Any) -> None:
    target_ns = hand_clock.time_ns + 2_000_000
    returned_ns = hand_clock.clock().wait_until_ns(target_ns)
    assert target_ns <= returned_ns == hand_clock.time_ns < target_ns + 2 * hand_clock.reading_ns
    assert hand_clock.slept_s == [pytest.approx(0.002 - 150e-6, abs=1e-6)]


def test_a_real_wait_sleeps_again_if_the_sleep_was_cut_short(hand_clock: Any) -> None:
    asked = []
    clock = RealClock(now_ns=hand_clock.now_ns, sleep_s=lambda s: (asked.append(s), hand_clock.sleep_s(s / 2)))
    target_ns = hand_clock.time_ns + 10_000_000
    assert clock.wait_until_ns(target_ns) >= target_ns
    assert len(asked) > 1


def test_a_wait_for_the_past_returns_at_once(hand_clock: Any) -> None:
    hand_clock.clock().wait_until_ns(hand_clock.time_ns - 5)
    assert hand_clock.slept_s == []


def test_virtual_time_passes_by_cost_and_jumps_forward_only() -> None:
    clock = VirtualClock(100)
    assert clock.span_of_call(NOW, NOW + 1, 7) == (100, 107)
    assert (clock.now_ns(), clock.wait_until_ns(200), clock.wait_until_ns(150)) == (107, 200, 200)


def test_a_device_clock_has_offset_and_drift() -> None:
    clock = DeviceClock(offset_ticks=5, drift_ppm=50.0, origin_ns=NOW)
    assert clock.ticks_at(NOW) == 5
    assert clock.ticks_at(NOW + 2_000_000_000) == 5 + 2_000_000_000 + 100_000
    assert clock.ticks_at(NOW - 1_000_000_000) == 5 - 1_000_050_000


def test_a_device_clock_may_tick_at_another_rate() -> None:
    clock = DeviceClock(ticks_per_second=100_000_000, origin_ns=NOW)
    assert clock.ticks_at(NOW + 1_239) == 123


rates = st.builds(
    DeviceClock,
    ticks_per_second=st.integers(1_000_000_000, 3_000_000_000),
    offset_ticks=st.integers(-(10**15), 10**15),
    drift_ppm=st.floats(0, 500),
    origin_ns=st.integers(0, 2 * NOW),
)
moments = st.lists(st.integers(0, 10**16), min_size=1, max_size=20)


@given(rates, moments)
def test_scalars_arrays_and_the_inverse_agree_exactly(clock: DeviceClock, offsets: list[int]) -> None:
    host_ns = np.array(offsets) + clock.origin_ns
    ticks = clock.ticks_of(host_ns)
    assert ticks.tolist() == [clock.ticks_at(int(moment)) for moment in host_ns]
    assert clock.host_ns_of(ticks).tolist() == host_ns.tolist()


@given(rates, moments)
def test_time_never_runs_backwards_without_a_step(clock: DeviceClock, offsets: list[int]) -> None:
    ticks = clock.ticks_of(np.sort(np.array(offsets)) + clock.origin_ns)
    assert (np.diff(ticks) >= 0).all()


def test_a_step_moves_every_later_reading_and_no_earlier_one() -> None:
    clock = DeviceClock()
    clock.step(100, 1_000)
    clock.step(200, -300)
    host_ns = np.array([99, 100, 199, 200])
    assert clock.ticks_of(host_ns).tolist() == [99, 1_100, 1_199, 900]
    assert [clock.ticks_at(int(moment)) for moment in host_ns] == [99, 1_100, 1_199, 900]
    with pytest.raises(ValueError, match=r"stepped 2 time\(s\), it has no inverse"):
        clock.host_ns_of(host_ns)


def test_jitter_delays_readings_within_its_bound_and_is_repeatable() -> None:
    readings = [[DeviceClock(read_jitter_ticks=50, seed=3).read(1_000)] for _ in range(2)]
    clock = DeviceClock(read_jitter_ticks=50, seed=3)
    many = [clock.read(1_000) for _ in range(200)]
    assert readings[0] == readings[1] == many[:1]
    assert 1_000 <= min(many) < max(many) <= 1_050
