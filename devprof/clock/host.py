"""`HostClock`: from the host's ticks to Unix nanoseconds, for one session.

torch takes 1001 pairs of readings at start and stop and uses the median rate between them
(`ApproximateClockToUnixTimeConverter`, c10/util/ApproximateClock.cpp). Here the ticks are nanoseconds already, so only the
distance between the two clocks is measured: times keep their differences whatever happens to the system's clock, and what
happened to it is found at the stop.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from devprof.clock.line import FASTEST_SLEW, TOLERANCE_NS
from devprof.errors import CaptureError

__all__ = ["HostClock"]

_PAIRS = 64
"""Pairs of readings in one go: some 30 us, after which a narrower bracket is rare."""

_COARSE_NS = 1_000
"""A clock that counts in longer steps than this cannot order launches."""


@dataclass(frozen=True, slots=True)
class _Anchor:
    """The tightest of some pairs: at `ticks` the system's clock read `unix_ns`, give or take `uncertainty_ns`."""

    ticks: int
    unix_ns: int
    uncertainty_ns: int
    steps_ns: tuple[int, int]
    n_backwards: int

    @property
    def offset_ns(self) -> int:
        return self.unix_ns - self.ticks


class HostClock:
    """The ticks of a host recording, as Unix ns. Made by `started`, completed by `finish`; reading it is safe on any thread.

    Unix time here is the ticks plus what the tightest pair of readings at the start lay apart. It is the same clock for the
    host's own events and for plugins, so that none of them sees a step of the system's clock.
    """

    def __init__(self, ticks: Callable[[], int], unix_ns: Callable[[], int], name: str, n_pairs: int) -> None:
        self._ticks, self._unix_ns, self._name, self._n_pairs = ticks, unix_ns, name, n_pairs
        self._start = _anchor(ticks, unix_ns, n_pairs)
        self._end: _Anchor | None = None
        self._offset_ns = self._start.offset_ns

    @classmethod
    def started(
        cls,
        ticks: Callable[[], int] = time.perf_counter_ns,
        unix_ns: Callable[[], int] = time.time_ns,
        *,
        name: str = "perf_counter_ns",
        n_pairs: int = _PAIRS,
    ) -> HostClock:
        """Take the readings at the start of a session, on the thread that calls.

        Args:
            ticks: the host's clock, in nanoseconds from any origin, never set.
            unix_ns: the system's clock, Unix ns.
            name: what the ticks are called.
            n_pairs: pairs of readings to take here and at the stop.

        Raises:
            CaptureError: the ticks ran backwards in every pair.
        """
        return cls(ticks, unix_ns, name, n_pairs)

    def now_ns(self) -> int:
        """Return the time now, Unix ns."""
        return self._ticks() + self._offset_ns

    def to_unix_ns(self, ticks: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Convert ticks to Unix ns: (n,) int64 each. Exact, so that differences stay what they were."""
        return ticks + np.int64(self._offset_ns)

    def finish(self) -> None:
        """Take the readings at the stop, which show whether a clock was moved meanwhile. No time is changed by it.

        Raises:
            CaptureError: the ticks ran backwards in every pair.
        """
        self._end = _anchor(self._ticks, self._unix_ns, self._n_pairs)

    @property
    def moved_ns(self) -> int:
        """How far the system's clock moved against the ticks from start to stop; 0 where that is less than can be told."""
        if self._end is None:
            return 0
        moved_ns = self._end.offset_ns - self._start.offset_ns
        return moved_ns if abs(moved_ns) > self._within_ns(self._end) else 0

    @property
    def uncertainty_ns(self) -> int:
        """Bound on the difference between a converted time and the system's clock at that time."""
        if self._end is None:
            return self._start.uncertainty_ns
        return max(self._start.uncertainty_ns, abs(self.moved_ns) + self._end.uncertainty_ns)

    @property
    def doubts(self) -> tuple[str, ...]:
        """Why times may be wrong, one sentence each."""
        anchors = [anchor for anchor in (self._start, self._end) if anchor is not None]
        return (*self._backwards(anchors), *self._coarse(), *self._moved())

    def describe(self) -> dict[str, object]:
        """Return the clock as JSON values, for a trace's facts."""
        return {
            "clock": self._name,
            "reference_ticks": self._start.ticks,
            "reference_unix_ns": self._start.unix_ns,
            "uncertainty_ns": self.uncertainty_ns,
            "moved_ns": self.moved_ns,
            "finished": self._end is not None,
            "samples": self._n_pairs * (1 if self._end is None else 2),
            "warnings": list(self.doubts),
        }

    def _within_ns(self, end: _Anchor) -> float:
        return self._start.uncertainty_ns + end.uncertainty_ns + TOLERANCE_NS

    def _backwards(self, anchors: Sequence[_Anchor]) -> list[str]:
        count = sum(anchor.n_backwards for anchor in anchors)
        return [f"{self._name} went back {count} time(s) while it was read"] if count else []

    def _coarse(self) -> list[str]:
        clocks = zip((self._name, "the system's clock"), self._start.steps_ns, strict=True)
        return [
            f"{name} counts in steps of {step_ns / 1e3:.1f} us or so: shorter times and their order are guesses"
            for name, step_ns in clocks
            if step_ns > _COARSE_NS
        ]

    def _moved(self) -> list[str]:
        moved_ns = self.moved_ns
        if not moved_ns or self._end is None:
            return []
        elapsed_ns = self._end.ticks - self._start.ticks
        if abs(moved_ns) <= FASTEST_SLEW * elapsed_ns + self._within_ns(self._end):
            rate = f" in {elapsed_ns / 1e9:.1f} s" if elapsed_ns > 0 else ""
            how = f"drifted by {moved_ns / 1e3:+.1f} us{rate}: it was slewed, or the two run at different rates"
        else:
            how = f"jumped by {moved_ns / 1e3:+.1f} us: it was set, or the machine slept"
        return [f"the system's clock {how}; times in the trace go on as they began"]


def _anchor(ticks: Callable[[], int], unix_ns: Callable[[], int], n_pairs: int) -> _Anchor:
    readings = [(ticks(), unix_ns(), ticks()) for _ in range(n_pairs)]
    usable = [reading for reading in readings if reading[2] >= reading[0]]
    if not usable:
        raise CaptureError(
            f"the host's ticks ran backwards in all of {n_pairs} readings, so nothing can be timed; "
            "expected a clock that is never set, such as time.perf_counter_ns"
        )
    before, unix, after = min(usable, key=lambda reading: reading[2] - reading[0])
    steps_ns = _steps_of([t for first, _, last in usable for t in (first, last)], [u for _, u, _ in usable])
    # both readings are floors, so either may be up to a step old
    uncertainty_ns = math.ceil((after - before) / 2) + max(steps_ns)
    return _Anchor(before + (after - before) // 2, unix, uncertainty_ns, steps_ns, n_pairs - len(usable))


def _steps_of(*clocks: Sequence[int]) -> tuple[int, int]:
    """Return the steps in which two clocks count, as far as their readings tell: all are whole steps apart.

    A clock that did not move while the other one did counts in steps that are no shorter than that.
    """
    steps = [math.gcd(*(after - before for before, after in itertools.pairwise(readings))) for readings in clocks]
    spans = [max(readings) - min(readings) for readings in clocks]
    return steps[0] or spans[1], steps[1] or spans[0]
