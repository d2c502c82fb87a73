"""For any honest clock, a converted time is within the stated uncertainty, and order is kept."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from devprof.clock import Fit
from devprof.contract import ClockDomain, ClockSample

NOW_NS = 1_790_000_000_000_000_000


@dataclass(frozen=True)
class TrueClock:
    """A device's clock that runs at a constant rate, read as whole ticks."""

    frequency: float
    drift: float
    offset: int

    def ticks_at(self, unix_ns: int) -> int:
        return self.offset + int(
            Fraction(unix_ns - NOW_NS) * Fraction(self.frequency) * (1 - Fraction(self.drift)) / 10**9
        )


clocks = st.builds(
    TrueClock,
    frequency=st.sampled_from([1e9, 24e6, 19.2e6, 1e6, 3.2e9, 1.593e9]),
    drift=st.floats(-2e-4, 2e-4),
    offset=st.integers(-(10**15), 10**18),
)
brackets = st.tuples(st.integers(0, 3_000), st.integers(0, 3_000))
bursts = st.lists(brackets, min_size=1, max_size=5)
gaps_s = st.lists(st.floats(0.01, 3600), min_size=1, max_size=6)


def _samples(clock: TrueClock, readings: list[list[tuple[int, int]]], starts_ns: list[int]) -> list[ClockSample]:
    samples = []
    for start_ns, burst in zip(starts_ns, readings, strict=True):
        at_ns = start_ns
        for before, after in burst:
            samples.append(ClockSample(at_ns, clock.ticks_at(at_ns + before), at_ns + before + after))
            at_ns += before + after + 10
    return samples


@given(clock=clocks, gaps=gaps_s, data=st.data())
def test_a_converted_time_is_within_the_stated_uncertainty(
    clock: TrueClock, gaps: list[float], data: st.DataObject
) -> None:
    starts_ns = [NOW_NS + int(sum(gaps[:i]) * 1e9) for i in range(len(gaps) + 1)]
    samples = _samples(clock, [data.draw(bursts) for _ in starts_ns], starts_ns)
    fit = Fit.from_samples(samples, ClockDomain("dev", clock.frequency))
    # a burst's best reading may be any of it, so records lie between the first burst's end and the last one's start
    moments = [data.draw(st.integers(samples[0].host_after_ns + 20_000, starts_ns[-1])) for _ in range(5)]
    converted = fit.to_unix_ns(np.array([clock.ticks_at(moment) for moment in moments], dtype=np.int64))
    off = [abs(int(got) - want) for got, want in zip(converted, moments, strict=True)]
    assert max(off) <= fit.uncertainty_ns, (off, fit)


@given(clock=clocks, ticks=st.lists(st.integers(-(10**17), 10**17), min_size=2, max_size=50))
def test_order_is_kept(clock: TrueClock, ticks: list[int]) -> None:
    samples = [ClockSample(at, clock.ticks_at(at), at + 100) for at in (NOW_NS, NOW_NS + 60 * 10**9)]
    fit = Fit.from_samples(samples, ClockDomain("dev", clock.frequency))
    converted = fit.to_unix_ns(np.array(sorted(ticks), dtype=np.int64) + clock.offset)
    assert np.all(np.diff(converted) >= 0)


@given(
    frequency=st.sampled_from([1e9, 24e6, 1e6]),
    start=st.integers(0, 10**15),
    steps=st.lists(st.integers(0, 10**12), max_size=20),
)
def test_durations_on_a_virtual_clock_are_exact(frequency: float, start: int, steps: list[int]) -> None:
    domain = ClockDomain("virtual", frequency, virtual=True)
    fit = Fit.from_samples([ClockSample(NOW_NS, start, NOW_NS + 999)], domain, session_start_ns=NOW_NS)
    ticks = start + np.cumsum(np.array([0, *steps], dtype=np.int64))
    ns = [NOW_NS + round(Fraction(10**9) / Fraction(frequency) * int(tick - start)) for tick in ticks]
    assert np.abs(fit.to_unix_ns(ticks) - np.array(ns, dtype=np.int64)).max() <= (0 if frequency in (1e9, 1e6) else 1)
