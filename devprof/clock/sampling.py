"""Read the device's clock between two readings of the host's."""

from __future__ import annotations

import operator
from collections.abc import Callable

from devprof.contract import ClockSample
from devprof.errors import UsageError

__all__ = ["READINGS", "sample"]

READINGS = 5
"""Readings in a burst."""


def sample(read_device: Callable[[], int], now_ns: Callable[[], int], n: int = READINGS) -> list[ClockSample]:
    """Take a burst of bracketed readings.

    The first reading of a burst is often slow (cold code, a sleeping device); the fit takes the one with the smallest bracket.

    Args:
        read_device: the device's clock, in ticks.
        now_ns: the host's clock, Unix ns.
        n: readings to take.

    Returns:
        The readings, in the order in which they were taken.

    Raises:
        UsageError: `n` is below 1.
        TypeError: the device's clock gave something else than a whole number; the clock's owner is at fault.
    """
    if n < 1:
        raise UsageError(f"a burst needs at least one reading, found n={n}")
    return [_bracketed(read_device, now_ns) for _ in range(n)]


def _bracketed(read_device: Callable[[], int], now_ns: Callable[[], int]) -> ClockSample:
    before_ns = now_ns()
    ticks = read_device()
    after_ns = now_ns()
    try:
        # checked after the bracket, so that the check does not widen it
        return ClockSample(before_ns, operator.index(ticks), after_ns)
    except TypeError:
        raise TypeError(f"a device's clock must give whole ticks, found {type(ticks).__name__} {ticks!r}") from None
