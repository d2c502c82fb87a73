"""`Fit`: from the ticks of a device's clock to Unix nanoseconds.

Method, as in Kineto's and torch's converters (libkineto/src/ApproximateClock.cpp): paired readings at the start and the stop
of a capture, one line through them. Here the readings are bracketed, so the error has a bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from devprof.clock.bursts import Burst, bursts_of
from devprof.clock.line import TOLERANCE_NS, Line, Points, fit_line, points_of, steps_in
from devprof.clock.rate import Rate
from devprof.clock.sampling import READINGS
from devprof.contract import ClockDomain, ClockSample
from devprof.errors import CaptureError, UsageError

__all__ = ["Fit"]

_SUSPICIOUS_DRIFT = 1e-3
"""Crystals are off by less than a tenth of this."""

_CROOKED_NS = 10 * TOLERANCE_NS
"""Contradiction that a reader of the trace should know of."""

_WIDEST_TICK = 2**63


@dataclass(frozen=True, slots=True)
class Fit:
    """A device's clock, as a line in Unix time. Made by `from_samples`.

    Attributes:
        domain: the clock.
        reference_ticks: a tick of the device's clock.
        reference_ns: the Unix time of that tick.
        rate: ns per tick.
        drift: how much faster the host's clock ran than the device's nominal rate says: 1e-6 is one microsecond per second.
        uncertainty_ns: bound on the error of a converted time between the first and the last sample, if the device's clock
            ran at a constant rate; 0 for a virtual clock, whose times are exact by definition.
        n_samples: readings given.
        n_bursts: bursts that they form.
        warnings: what is doubtful, one sentence each.
    """

    domain: ClockDomain
    reference_ticks: int
    reference_ns: int
    rate: Rate
    drift: float
    uncertainty_ns: int
    n_samples: int
    n_bursts: int
    warnings: tuple[str, ...] = ()

    @classmethod
    def from_samples(
        cls, samples: Sequence[ClockSample], domain: ClockDomain, *, session_start_ns: int | None = None
    ) -> Fit:
        """Fit a clock.

        A virtual clock is anchored: its first sample is the session's start, and it runs at its nominal rate.

        Args:
            samples: bracketed readings in the order in which they were taken: a burst at the start, one at the stop, and any
                number in between.
            domain: the clock that they are of.
            session_start_ns: where to anchor a virtual clock, Unix ns; by default the first sample's own time.

        Raises:
            CaptureError: there is no usable sample.
            UsageError: the domain's rate is not positive, or a reading does not fit int64.
        """
        if not (math.isfinite(domain.ticks_per_second) and domain.ticks_per_second > 0):
            raise UsageError(
                f"clock {domain.name!r} states {domain.ticks_per_second} ticks per second; expected more than 0"
            )
        rate = Rate.nominal(domain.ticks_per_second)
        bursts, warnings = bursts_of(samples, rate)
        if not bursts:
            raise CaptureError(
                f"clock {domain.name!r} has no usable sample ({len(samples)} taken), so its ticks have no time; "
                "a session with a clock_domain() needs a sample_clock() that works"
            )
        if any(not -_WIDEST_TICK <= sample.device_ticks < _WIDEST_TICK for sample in samples):
            raise UsageError(
                f"clock {domain.name!r} was read beyond int64, which batches cannot hold; wrap or shift its ticks"
            )
        if domain.virtual:
            return _anchored(samples, domain, session_start_ns, bursts)
        return _fitted(len(samples), domain, rate, bursts, warnings)

    def to_unix_ns(self, ticks: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Convert ticks to Unix ns.

        Args:
            ticks: shape (n,), int64.

        Returns:
            Shape (n,), int64. Order is kept; rounding is to the nearest ns.
        """
        return self.rate.apply(ticks, self.reference_ticks, self.reference_ns)

    def describe(self) -> dict[str, object]:
        """Return the fit as JSON values, for a trace's provenance."""
        return {
            "clock": self.domain.name,
            "virtual": self.domain.virtual,
            "ticks_per_second": self.domain.ticks_per_second,
            "reference_ticks": self.reference_ticks,
            "reference_unix_ns": self.reference_ns,
            "drift_ppm": self.drift * 1e6,
            "uncertainty_ns": self.uncertainty_ns,
            "samples": self.n_samples,
            "bursts": self.n_bursts,
            "warnings": list(self.warnings),
        }


def _anchored(
    samples: Sequence[ClockSample], domain: ClockDomain, session_start_ns: int | None, bursts: list[Burst]
) -> Fit:
    anchor_ns = samples[0].host_before_ns if session_start_ns is None else session_start_ns
    rate = Rate.nominal(domain.ticks_per_second)
    return Fit(domain, samples[0].device_ticks, anchor_ns, rate, 0.0, 0, len(samples), len(bursts))


def _fitted(n_samples: int, domain: ClockDomain, rate: Rate, bursts: list[Burst], warnings: list[str]) -> Fit:
    reference = bursts[len(bursts) // 2]
    points = points_of(bursts, reference, rate)
    # start and stop of a session under a millisecond are one burst, in which no drift has time to matter
    line, doubts = _line(points, is_short=bursts[0].size > READINGS)
    return Fit(
        domain=domain,
        reference_ticks=reference.ticks,
        reference_ns=reference.middle_ns + round(line.intercept_ns),
        rate=rate.drifted(line.drift),
        drift=line.drift,
        # a record's tick is as coarse as a sample's, and its time is rounded
        uncertainty_ns=math.ceil(line.uncertainty_ns + float(rate) / 2) + 1,
        n_samples=n_samples,
        n_bursts=len(bursts),
        warnings=(*warnings, *doubts),
    )


def _line(points: Points, *, is_short: bool) -> tuple[Line, list[str]]:
    if len(points) == 1:
        doubts = ["one burst of samples only: the nominal rate is used, and drift is unknown"]
        return _flat(points), [] if is_short else doubts
    if np.ptp(points.x_ns) == 0:
        return _flat(points), ["the device's clock stood still between samples: is it running?"]
    line = fit_line(points)
    if line.drift <= -1:
        return _flat(points), [
            "the device's clock runs against the host's: the nominal rate is used, times are guesses"
        ]
    return line, _doubts(points, line)


def _flat(points: Points) -> Line:
    """Return the nominal rate through the reference, where the points allow no slope."""
    spread_ns = float(np.abs(points.y_ns).max())
    return Line(0.0, 0.0, float(points.half_width_ns.max()) + spread_ns, spread_ns, 0)


def _doubts(points: Points, line: Line) -> list[str]:
    doubts = [
        f"a clock was set between two samples: the host's jumped by {jump_ns / 1e3:+.1f} us against the device's"
        for jump_ns in steps_in(points)
    ]
    if line.contradiction_ns > _CROOKED_NS and not doubts:
        off_us = line.contradiction_ns / 1e3
        doubts.append(f"the samples lie off the line by up to {off_us:.1f} us: a clock was slewed, set or is unsteady")
    if line.n_contradicting:
        doubts.append(f"{line.n_contradicting} of {len(points)} bursts contradict the others and do not count")
    # in a short session the samples' own widths make a drift
    within_widths = 2 * float(points.half_width_ns.max()) / float(np.ptp(points.x_ns))
    if abs(line.drift) > _SUSPICIOUS_DRIFT + within_widths:
        doubts.append(
            f"the device's clock is {line.drift * 1e6:+.0f} ppm off its nominal rate: "
            "ticks_per_second is wrong, or a clock was set during the session"
        )
    return doubts
