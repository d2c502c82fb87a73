"""Ticks times ns per tick, exact to the nanosecond over days."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from devprof.clock.rate import Rate

HOURS_100_NS = 100 * 3600 * 10**9
NOW_NS = 1_790_000_000_000_000_000
FREQUENCIES = [1e9, 24e6, 19.2e6, 1e6, 3.2e9, 32768.0, 1.0]


def _converted(rate: Rate, ticks: list[int], reference_ticks: int = 0, reference_ns: int = NOW_NS) -> list[int]:
    return rate.apply(np.array(ticks, dtype=np.int64), reference_ticks, reference_ns).tolist()


@pytest.mark.parametrize("frequency", FREQUENCIES)
def test_a_nominal_rate_is_within_half_a_nanosecond_over_a_hundred_hours(frequency: float) -> None:
    last = int(frequency * HOURS_100_NS / 1e9)
    ticks = [0, 1, last // 3, last - 1, last, -last]
    exact = [Fraction(10**9) / Fraction(frequency) * tick + NOW_NS for tick in ticks]
    off = [abs(got - want) for got, want in zip(_converted(Rate.nominal(frequency), ticks), exact, strict=True)]
    assert max(off) <= Fraction(1, 2) + Fraction(1, 100)


@pytest.mark.parametrize("frequency", FREQUENCIES)
@pytest.mark.parametrize("drift", [1e-9, -3e-7, 5e-5, -1e-3, 0.25])
def test_a_drifted_rate_keeps_the_nanosecond_too(frequency: float, drift: float) -> None:
    last = int(frequency * HOURS_100_NS / 1e9)
    rate = Rate.nominal(frequency).drifted(drift)
    exact = Fraction(10**9) / Fraction(frequency) * (1 + Fraction(drift)) * last + NOW_NS
    assert abs(_converted(rate, [last])[0] - exact) < 1


def test_nanosecond_ticks_are_shifted_in_integers() -> None:
    rate = Rate.nominal(1e9)
    assert rate == Rate(1, 0.0)
    assert _converted(rate, [5, 2**60 + 1, -7], 3, NOW_NS) == [NOW_NS + 2, NOW_NS + 2**60 - 2, NOW_NS - 10]


def test_the_rest_is_never_more_than_one_half() -> None:
    rates = [Rate.nominal(f).drifted(d) for f in FREQUENCIES for d in (0.0, 0.4, -0.4, 1e-6)]
    assert max(abs(rate.rest) for rate in rates) <= 0.5


def test_a_rate_reads_as_ns_per_tick() -> None:
    assert (float(Rate.nominal(24e6)), float(Rate.nominal(4e9)), float(Rate(1, 0.0).drifted(0.5))) == (
        pytest.approx(41.6666666667),
        0.25,
        1.5,
    )
    assert Rate.nominal(1e6).duration_ns(3) == 3000.0


@pytest.mark.parametrize("frequency", [1e9, 24e6, 1.0])
def test_a_tick_that_is_far_off_gives_a_time_far_off_and_harms_no_neighbour(frequency: float) -> None:
    far, near, before = _converted(Rate.nominal(frequency).drifted(1e-6), [2**62, 0, -(2**62)])
    assert near == NOW_NS
    assert far - NOW_NS > HOURS_100_NS
    assert NOW_NS - before > HOURS_100_NS


@pytest.mark.parametrize("reference", [-(2**63), -(2**62), 2**63 - 8])
@pytest.mark.parametrize("frequency", [1e9, 1e8, 24e6])
def test_a_counter_converts_alike_wherever_in_its_64_bits_it_stands(frequency: float, reference: int) -> None:
    rate = Rate.nominal(frequency)
    at_zero = _converted(rate, [0, 1, 7])
    assert _converted(rate, [reference, reference + 1, reference + 7], reference) == at_zero
    assert at_zero[0] == NOW_NS


@pytest.mark.parametrize("frequency", [1e9, 1e8])
def test_a_counter_may_pass_from_the_highest_to_the_lowest_number(frequency: float) -> None:
    tick_ns = int(1e9 / frequency)
    converted = _converted(Rate.nominal(frequency), [2**63 - 1, -(2**63), -(2**63) + 4], 2**63 - 2)
    assert [ns - NOW_NS for ns in converted] == [tick_ns, 2 * tick_ns, 6 * tick_ns]


def test_order_is_kept_at_the_finest_steps() -> None:
    for rate in (Rate(1, -0.5), Rate(1, 0.5), Rate(0, 0.3), Rate(2, -0.25), Rate(41, 1 / 3)):
        converted = _converted(rate, list(range(-200, 200)))
        assert converted == sorted(converted), rate


def test_many_rows_and_few_rows_convert_alike() -> None:
    ticks = np.arange(100_000, dtype=np.int64) * 77_777
    rate = Rate.nominal(24e6).drifted(3e-6)
    whole = rate.apply(ticks, 12345, NOW_NS)
    pieces = [rate.apply(part, 12345, NOW_NS) for part in np.array_split(ticks, 37)]
    assert np.array_equal(whole, np.concatenate(pieces))
    assert rate.apply(ticks[:0], 12345, NOW_NS).shape == (0,)
