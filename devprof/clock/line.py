"""Least squares through bursts, with a bound on the error that follows from the brackets.

Everything is relative to one burst and to the nominal rate, so that the numbers are small enough for doubles: `x` is device
time since that burst at the nominal rate, `y` is host time minus device time since that burst.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from devprof.clock.bursts import Burst
from devprof.clock.rate import Rate

__all__ = ["FASTEST_SLEW", "TOLERANCE_NS", "Line", "Points", "fit_line", "points_of", "steps_in"]

Doubles = npt.NDArray[np.float64]

_NARROWEST_NS = 1.0
"""Least half width: clocks count in whole ns, and a weight must be finite."""

TOLERANCE_NS = 1_000.0
"""Contradiction, in ns, that is put down to jitter rather than to a wrong reading or a clock that was set."""

FASTEST_SLEW = 500e-6
"""The most that NTP slews a clock; what goes faster was set."""


@dataclass(frozen=True, slots=True)
class Points:
    """Bursts as numbers.

    Attributes:
        x_ns: (n,) float64, device time since the reference at the nominal rate.
        y_ns: (n,) float64, host time minus device time since the reference.
        half_width_ns: (n,) float64, how far off each `y_ns` may be.
    """

    x_ns: Doubles
    y_ns: Doubles
    half_width_ns: Doubles

    def __len__(self) -> int:
        return len(self.x_ns)

    def take(self, rows: npt.NDArray[np.bool_]) -> Points:
        """Return the chosen points."""
        return Points(self.x_ns[rows], self.y_ns[rows], self.half_width_ns[rows])


@dataclass(frozen=True, slots=True)
class Line:
    """``y = intercept_ns + drift * x``.

    Attributes:
        intercept_ns: host minus device at the reference.
        drift: relative to the nominal rate.
        uncertainty_ns: bound on the line's error over the points' span, for a device clock of constant rate; where points
            contradict the line by more than their widths, the contradiction is added.
        contradiction_ns: how far the worst point is off the line, beyond its own width.
        n_contradicting: points that were left out because they contradict the others.
    """

    intercept_ns: float
    drift: float
    uncertainty_ns: float
    contradiction_ns: float
    n_contradicting: int


def points_of(bursts: Sequence[Burst], reference: Burst, rate: Rate) -> Points:
    """Turn bursts into small numbers, relative to one of them."""
    ticks = [burst.ticks - reference.ticks for burst in bursts]
    host_ns = [burst.middle_ns - reference.middle_ns for burst in bursts]
    # whole parts are subtracted as integers: the difference of two long times is then exact
    y_ns = [float(host - rate.whole * tick) - rate.rest * tick for host, tick in zip(host_ns, ticks, strict=True)]
    return Points(
        np.array([rate.duration_ns(tick) for tick in ticks]),
        np.array(y_ns),
        np.array([max(burst.half_width_ns, _NARROWEST_NS) for burst in bursts]),
    )


def fit_line(points: Points) -> Line:
    """Fit a line, weighted by the brackets; a burst that contradicts the others does not pull it.

    Args:
        points: at least two, not all at one `x_ns`.
    """
    line = _least_squares(points, points)
    if line.contradiction_ns <= TOLERANCE_NS or (len(points) < 4 and not steps_in(points)):
        return line
    # some reading is wrong, or a clock was set: start from what most of them say
    drift = _usual_drift(_slopes(points))
    residual_ns = points.y_ns - drift * points.x_ns
    # the lower median of the neighbours' differences is noise, not the jump, also where there are only two of them
    tolerance_ns = TOLERANCE_NS + 3 * float(np.quantile(np.abs(np.diff(residual_ns)), 0.5, method="lower"))
    agree = np.abs(residual_ns - _most_common(residual_ns, tolerance_ns)) <= points.half_width_ns + tolerance_ns
    return _least_squares(points.take(agree), points) if np.ptp(points.x_ns[agree]) > 0 else line


def _most_common(values: Doubles, tolerance: float) -> float:
    """Return the value with the most others within the tolerance; of several, the smallest."""
    ordered = np.sort(values)
    near = np.searchsorted(ordered, ordered + tolerance, "right") - np.searchsorted(
        ordered, ordered - tolerance, "left"
    )
    return float(ordered[np.argmax(near)])


def _usual_drift(slopes: Doubles) -> float:
    # of two slopes the smaller one is the clock's, and the larger one holds the jump
    return float(np.median(slopes)) if len(slopes) > 2 else float(min(slopes, key=abs))


def steps_in(points: Points) -> list[float]:
    """Return the sizes, in ns, of jumps between neighbours that no drift or slew explains.

    Two points show none: a jump and a drift look the same.
    """
    if len(points) < 3:
        return []
    drift = _usual_drift(_slopes(points))
    elapsed_ns = np.diff(points.x_ns)
    jumps_ns = np.diff(points.y_ns) - drift * elapsed_ns
    widths_ns = points.half_width_ns[1:] + points.half_width_ns[:-1]
    allowed_ns = 2 * widths_ns + TOLERANCE_NS + FASTEST_SLEW * np.abs(elapsed_ns)
    return [float(jump) for jump in jumps_ns[np.abs(jumps_ns) > allowed_ns]]


def _slopes(points: Points) -> Doubles:
    elapsed_ns = np.diff(points.x_ns)
    moved_ns = np.diff(points.y_ns)
    return np.divide(moved_ns, elapsed_ns, out=np.zeros_like(moved_ns), where=elapsed_ns != 0)


def _least_squares(used: Points, every: Points) -> Line:
    weight, middle_ns, spread = _moments(used)
    drift = float((weight * (used.x_ns - middle_ns) * used.y_ns).sum() / spread)
    intercept_ns = float((weight * used.y_ns).sum()) - drift * middle_ns
    residual_ns = np.abs(every.y_ns - intercept_ns - drift * every.x_ns)
    contradiction_ns = max(0.0, float((residual_ns - every.half_width_ns).max()))
    uncertainty_ns = _bound_ns(used, every) + contradiction_ns
    return Line(intercept_ns, drift, uncertainty_ns, contradiction_ns, len(every) - len(used))


def _bound_ns(used: Points, every: Points) -> float:
    """Return the greatest error that the widths allow, over the span of all points.

    The line's value at `x` is a sum of the `y` of the points, each times a coefficient; each `y` is off by its half width at
    most. The sum of the absolute products is convex in `x`, so its maximum is at an end.
    """
    weight, middle_ns, spread = _moments(used)
    ends_ns = np.array([[every.x_ns.min()], [every.x_ns.max()]])
    coefficients = weight * (1 + (ends_ns - middle_ns) * (used.x_ns - middle_ns) / spread)
    return float((np.abs(coefficients) * used.half_width_ns).sum(axis=1).max())


def _moments(points: Points) -> tuple[Doubles, float, float]:
    weight = points.half_width_ns**-2.0
    weight /= weight.sum()
    middle_ns = float((weight * points.x_ns).sum())
    spread = float((weight * (points.x_ns - middle_ns) ** 2).sum())
    return weight, middle_ns, spread
