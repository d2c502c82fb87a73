"""`Burst`: readings taken in one go, reduced to the best of them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from devprof.clock.rate import Rate
from devprof.contract import ClockSample

__all__ = ["Burst", "bursts_of"]

_BURST_GAP_NS = 1_000_000
"""Readings further apart than this belong to two bursts; within a burst nothing happens between them."""


@dataclass(frozen=True, slots=True)
class Burst:
    """One burst's evidence: at `ticks` the host's clock read `middle_ns`, give or take `half_width_ns`.

    Attributes:
        ticks: the device's clock in the reading with the smallest bracket.
        middle_ns: middle of that bracket, Unix ns.
        half_width_ns: half the bracket and half a tick, and more where another reading of the burst contradicts it.
        size: readings in the burst.
    """

    ticks: int
    middle_ns: int
    half_width_ns: float
    size: int


def bursts_of(samples: Sequence[ClockSample], rate: Rate) -> tuple[list[Burst], list[str]]:
    """Reduce samples to bursts, and say what is wrong with the samples.

    Args:
        samples: readings in the order in which they were taken.
        rate: nominal rate, to compare readings of one burst.

    Returns:
        One entry per burst, and sentences about readings that cannot be used or clocks that ran backwards.
    """
    good = [sample for sample in samples if sample.host_after_ns >= sample.host_before_ns]
    warnings = []
    if len(good) < len(samples):
        warnings.append(f"the host clock went back within {len(samples) - len(good)} reading(s), which were left out")
    warnings += _backwards(good)
    return [_best(group, rate) for group in _grouped(good)], warnings


def _grouped(samples: Sequence[ClockSample]) -> list[list[ClockSample]]:
    groups: list[list[ClockSample]] = []
    for sample in samples:
        if groups and 0 <= sample.host_before_ns - groups[-1][-1].host_after_ns <= _BURST_GAP_NS:
            groups[-1].append(sample)
        else:
            groups.append([sample])
    return groups


def _best(group: Sequence[ClockSample], rate: Rate) -> Burst:
    best = min(group, key=lambda sample: sample.host_after_ns - sample.host_before_ns)
    width_ns = best.host_after_ns - best.host_before_ns
    # The truth is inside every bracket. If the best one's middle is further outside another bracket than its own half
    # width allows, the device's clock jitters by at least the rest.
    half_width_ns = max(width_ns / 2, *(_outside_ns(one, best, width_ns / 2, rate) for one in group))
    # and a reading is as coarse as a tick
    half_width_ns += float(rate) / 2
    return Burst(best.device_ticks, best.host_before_ns + width_ns // 2, half_width_ns, len(group))


def _outside_ns(one: ClockSample, best: ClockSample, middle_ns: float, rate: Rate) -> float:
    # relative to the best reading: Unix ns as doubles would lose the digits that this is about
    expected_ns = middle_ns + rate.duration_ns(one.device_ticks - best.device_ticks)
    before_ns, after_ns = (host_ns - best.host_before_ns for host_ns in (one.host_before_ns, one.host_after_ns))
    return max(before_ns - expected_ns, expected_ns - after_ns)


def _backwards(samples: Sequence[ClockSample]) -> list[str]:
    pairs = list(itertools.pairwise(samples))
    warnings = []
    if n := sum(after.device_ticks < before.device_ticks for before, after in pairs):
        warnings.append(f"the device's clock went back {n} time(s) between readings: it was reset, or wraps around")
    if n := sum(after.host_before_ns < before.host_after_ns for before, after in pairs):
        warnings.append(f"the host clock went back {n} time(s) between readings: it was set")
    return warnings
