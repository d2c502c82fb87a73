"""Clock samples of long captures: few enough to keep, and those that matter."""

from __future__ import annotations

from collections.abc import Sequence

from devprof.clock.sampling import READINGS
from devprof.contract import ClockSample

__all__ = ["MAX_BURSTS", "recent", "thin_out"]

MAX_BURSTS = 1024
"""Bursts that are kept: 17 minutes of one a second, then one in two seconds, and so on."""

_BEFORE_NS = 10 * 10**9
"""So long before the oldest record the samples that its time needs may lie."""


def thin_out(samples: list[ClockSample]) -> None:
    """Where there are too many bursts, take out every second one but the last, in place."""
    if len(samples) <= MAX_BURSTS * READINGS:
        return
    last = len(samples) - READINGS
    samples[:] = [one for at, one in enumerate(samples) if at >= last or at // READINGS % 2 == 0]


def recent(samples: Sequence[ClockSample], since_ns: int | None) -> list[ClockSample]:
    """Return the samples that records since a time need: over hours no clock runs on one line.

    Args:
        samples: all, in the order in which they were taken.
        since_ns: Unix ns; None: all are needed.
    """
    kept = list(samples)
    if since_ns is None:
        return kept
    late = [one for one in kept if one.host_before_ns >= since_ns - _BEFORE_NS]
    return late if len(late) >= 2 * READINGS else kept[-2 * READINGS :]
