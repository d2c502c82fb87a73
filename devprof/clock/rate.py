"""`Rate`: nanoseconds per tick, split so that long intervals keep their last nanosecond.

A double holds 53 bits. Unix ns need 61, and even a difference of hours times a slope near 1 comes close to the limit. So the
slope is a whole number plus a rest of at most one half: the whole part is multiplied in integers, exactly, and only the small
rest goes through a double.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

__all__ = ["Rate"]

_CHUNK = 1 << 15
"""Rows converted at a time: the buffers of one chunk stay in the second-level cache."""

_FAR = 2.0**62
"""Bound for what a wrong tick may become; the sum with a Unix time still fits int64."""


@dataclass(frozen=True, slots=True)
class Rate:
    """Nanoseconds per tick.

    Attributes:
        whole: nearest whole number.
        rest: what is missing, -0.5 to 0.5.
    """

    whole: int
    rest: float

    @classmethod
    def nominal(cls, ticks_per_second: float) -> Rate:
        """Return the rate that a clock domain states."""
        exact = Fraction(10**9) / Fraction(ticks_per_second)
        whole = round(exact)
        return cls(whole, float(exact - whole))

    def drifted(self, drift: float) -> Rate:
        """Return this rate times ``1 + drift``."""
        rest = self.rest + float(self) * drift
        moved = round(rest)
        return Rate(self.whole + moved, rest - moved)

    def __float__(self) -> float:
        return self.whole + self.rest

    def duration_ns(self, ticks: int) -> float:
        """Return a duration in ns, as a double."""
        return float(self.whole * ticks) + self.rest * ticks

    def apply(self, ticks: npt.NDArray[np.int64], reference_ticks: int, reference_ns: int) -> npt.NDArray[np.int64]:
        """Return ``reference_ns + (ticks - reference_ticks) * rate``, rounded to whole ns.

        Args:
            ticks: shape (n,), int64.
            reference_ticks: tick of the reference point, within int64.
            reference_ns: its time, Unix ns.

        Returns:
            Shape (n,), int64. A tick so far off that its time does not fit becomes a time far off; none raises.
        """
        if self.rest == 0.0 and self.whole == 1:
            return ticks + _wrapped(reference_ns - reference_ticks)
        result = np.empty(len(ticks), dtype=np.int64)
        for begin in range(0, len(ticks), _CHUNK):
            part = slice(begin, begin + _CHUNK)
            since = ticks[part] - np.int64(reference_ticks)
            result[part] = self._scaled(since) + np.int64(reference_ns)
        return result

    def _scaled(self, since: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        limit = int(_FAR / (abs(self.whole) + 1))
        if len(since) and (since.max() > limit or since.min() < -limit):
            since = np.clip(since, -limit, limit)
        rest = since * self.rest
        np.rint(rest, out=rest)
        return since * self.whole + rest.astype(np.int64)


def _wrapped(number: int) -> np.int64:
    """Return what 64 bits keep of a number: the sum that it goes into wraps as well, and is right where that fits."""
    return np.int64((number + 2**63) % 2**64 - 2**63)
