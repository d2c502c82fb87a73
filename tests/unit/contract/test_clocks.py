"""The host's clock has one name, and a device's clock runs with it unless it says otherwise."""

from __future__ import annotations

import time

from devprof.contract import HOST_CLOCK, ClockDomain, ClockSample, SessionConfig
from devprof.model import ActivityBatch


def test_a_batch_is_on_the_hosts_clock_unless_it_says_otherwise() -> None:
    assert ActivityBatch.from_activities([]).clock == HOST_CLOCK


def test_a_sessions_clock_is_the_hosts_unless_the_host_gives_another() -> None:
    before_ns = time.time_ns()
    assert before_ns <= SessionConfig("python").now_ns() <= time.time_ns()


def test_a_clock_ticks_in_nanoseconds_and_is_real_unless_it_says_otherwise() -> None:
    assert ClockDomain("ticks") == ClockDomain(name="ticks", ticks_per_second=1e9, virtual=False)


def test_a_sample_is_the_devices_clock_between_two_readings_of_the_hosts() -> None:
    assert ClockSample(1, 2, 3) == ClockSample(host_before_ns=1, device_ticks=2, host_after_ns=3)
