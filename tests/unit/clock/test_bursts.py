"""A burst is reduced to its best reading; what contradicts it widens it, what is impossible is said."""

from __future__ import annotations

import pytest

from devprof.clock import Burst, bursts_of
from devprof.clock.rate import Rate
from devprof.contract import ClockSample

NS = Rate.nominal(1e9)
BASE = 1_790_000_000_000_000_000


def _sample(before: int, ticks: int, after: int) -> ClockSample:
    return ClockSample(BASE + before, ticks, BASE + after)


def test_the_reading_with_the_smallest_bracket_stands_for_its_burst() -> None:
    samples = [_sample(0, 500, 1000), _sample(1000, 1100, 1200), _sample(1200, 1500, 1800)]
    assert bursts_of(samples, NS) == ([Burst(1100, BASE + 1100, 100.5, 3)], [])


def test_readings_more_than_a_millisecond_apart_are_two_bursts() -> None:
    samples = [_sample(0, 50, 100), _sample(1_000_100, 1_000_150, 1_000_200), _sample(2_000_201, 2_000_221, 2_000_241)]
    bursts, warnings = bursts_of(samples, NS)
    assert [(burst.ticks, burst.size) for burst in bursts] == [(50, 2), (2_000_221, 1)]
    assert warnings == []


def test_a_preempted_reading_neither_counts_nor_widens() -> None:
    samples = [_sample(0, 4_900_000, 5_000_000), _sample(5_000_100, 5_000_150, 5_000_200)]
    assert bursts_of(samples, NS) == ([Burst(5_000_150, BASE + 5_000_150, 50.5, 2)], [])


def test_a_device_clock_that_jitters_widens_its_burst_by_as_much() -> None:
    # the second reading says 40 ns more than its bracket allows
    samples = [_sample(0, 50, 100), _sample(200, 340, 300)]
    (burst,), _ = bursts_of(samples, NS)
    assert burst == Burst(50, BASE + 50, 50.5, 2)
    (burst,), _ = bursts_of([_sample(0, 50, 100), _sample(200, 440, 300)], NS)
    assert burst == Burst(50, BASE + 50, 140.5, 2)


def test_a_coarse_tick_counts_with_its_half() -> None:
    (burst,), _ = bursts_of([_sample(0, 7, 100)], Rate.nominal(1e6))
    assert burst == Burst(7, BASE + 50, 550.0, 1)


def test_a_bracket_that_ends_before_it_began_is_left_out_and_said() -> None:
    bursts, warnings = bursts_of([_sample(100, 5, 50), _sample(200, 210, 220)], NS)
    assert [burst.ticks for burst in bursts] == [210]
    assert warnings == ["the host clock went back within 1 reading(s), which were left out"]


@pytest.mark.parametrize(
    ("samples", "warning"),
    [
        (
            [_sample(0, 5000, 10), _sample(2_000_000, 7, 2_000_010)],
            "the device's clock went back 1 time(s) between readings: it was reset, or wraps around",
        ),
        (
            [_sample(2_000_000, 5, 2_000_010), _sample(0, 7, 10)],
            "the host clock went back 1 time(s) between readings: it was set",
        ),
    ],
)
def test_a_clock_that_runs_backwards_is_said(samples: list[ClockSample], warning: str) -> None:
    bursts, warnings = bursts_of(samples, NS)
    assert (len(bursts), warnings) == (2, [warning])


def test_no_samples_give_no_bursts() -> None:
    assert bursts_of([], NS) == ([], [])
