"""Clock samples of long captures: few enough to keep, and those that matter."""

from __future__ import annotations

from collections.abc import Sequence

from devprof.clock.sampling import READINGS
from devprof.contract import ClockSample

__all__ = ["MAX_BURSTS", "recent", "thin_out"]

MAX_BURSTS = 1024
"""Bursts that are kept: 17 minutes of one a second, then one in two seconds, later one in four, and so on."""

_SECOND_NS = 10**9

_BEFORE_NS = 10 * 10**9
"""So long before the oldest record the samples that its time needs may lie."""


def thin_out(samples: list[ClockSample]) -> None:
    """Where there are too many bursts, leave half as many, evenly over the time, in place; the last one stays."""
    if len(samples) <= MAX_BURSTS * READINGS:
        return
    bursts = [samples[at : at + READINGS] for at in range(0, len(samples), READINGS)]
    first_ns = bursts[0][0].host_before_ns
    spans_ns = [burst[0].host_before_ns - first_ns for burst in bursts]
    step_ns = _SECOND_NS
    while spans_ns[-1] > step_ns * (MAX_BURSTS // 2):
        step_ns *= 2  # so that what stays now is evenly spaced for the next time, too
    kept = {span_ns // step_ns: burst for span_ns, burst in zip(reversed(spans_ns), reversed(bursts), strict=True)}
    if kept[spans_ns[-1] // step_ns] is not bursts[-1]:
        kept[spans_ns[-1] // step_ns + 1] = bursts[-1]
    samples[:] = [one for _, burst in sorted(kept.items()) for one in burst]


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
