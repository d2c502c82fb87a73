"""The clock of a recorded session: its records on the recording's time axis, and a device clock that runs again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from devprof.clock import Fit
from devprof.contract import ClockDomain
from devprof.errors import DevprofError
from devprof.link import apply_window, join_launches
from devprof.model import ActivityBatch
from devprof.replay.recording import RecordedSession

__all__ = ["VIRTUAL", "RunningClock", "in_window", "on_axis"]

VIRTUAL = ClockDomain("replay", 1e9, virtual=True)
"""The clock of a session that is replayed with exact times: ns since the start of the recorded window."""

_BURST_GAP_NS = 1_000_000


def on_axis(session: RecordedSession) -> list[ActivityBatch]:
    """Return the batches with times on the recording's axis, as devprof converts them; unusable ticks are left out."""
    domain = session.domain
    ticking = [batch for batch in session.batches if domain is not None and batch.clock == domain.name]
    if domain is None or not ticking:
        return list(session.batches)
    try:
        fit = Fit.from_samples(session.samples, domain, session_start_ns=session.window_start_ns or None)
    except DevprofError:
        return [batch for batch in session.batches if batch.clock != domain.name]
    return [
        batch.with_times(fit.to_unix_ns(batch.start), fit.to_unix_ns(batch.end))
        if batch.clock == domain.name
        else batch
        for batch in session.batches
    ]


def in_window(session: RecordedSession, batches: list[ActivityBatch]) -> tuple[list[ActivityBatch], dict[str, int]]:
    """Return what is in the recorded window, and how many records are not, by reason; a virtual clock had no window."""
    if not session.window_end_ns or (session.domain is not None and session.domain.virtual):
        return batches, {}
    join = join_launches(batches)
    window = apply_window(batches, join, session.window_start_ns, session.window_end_ns)
    return window.apply(batches, join)[0], dict(window.dropped)


@dataclass(frozen=True, slots=True)
class RunningClock:
    """The relation of the recorded device clock to the host's, to be read at any time.

    Attributes:
        host_ns: (n,) float64, times of the recorded readings on the recording's axis, relative to `origin_ns`.
        ticks: (n,) float64, what was read, relative to `origin_ticks`.
        origin_ns, origin_ticks: so that doubles are exact enough.
        ticks_per_ns: rate before the first and behind the last reading.
    """

    host_ns: npt.NDArray[np.float64]
    ticks: npt.NDArray[np.float64]
    origin_ns: int
    origin_ticks: int
    ticks_per_ns: float

    @classmethod
    def of(cls, session: RecordedSession) -> RunningClock | None:
        """Make the clock of a session; None where it had none, or no reading of it."""
        if session.domain is None or not session.samples:
            return None
        best = [
            min(burst, key=lambda one: one[1]) for burst in _bursts(session)
        ]  # of each burst the reading with the narrowest bracket
        origin_ns, _, origin_ticks = best[0]
        host = np.array([host_ns - origin_ns for host_ns, _, _ in best], np.float64)
        ticks = np.array([reading - origin_ticks for _, _, reading in best], np.float64)
        rate = session.domain.ticks_per_second / 1e9
        if len(best) > 1 and host[-1] > host[0]:
            rate = float(ticks[-1] - ticks[0]) / float(host[-1] - host[0])
        return cls(host, ticks, origin_ns, origin_ticks, rate)

    def read(self, at_ns: int) -> int:
        """Return the ticks at a time of the recording's axis."""
        since = float(at_ns - self.origin_ns)
        if since <= self.host_ns[0]:
            ticks = self.ticks[0] + (since - self.host_ns[0]) * self.ticks_per_ns
        elif since >= self.host_ns[-1]:
            ticks = self.ticks[-1] + (since - self.host_ns[-1]) * self.ticks_per_ns
        else:
            ticks = np.interp(since, self.host_ns, self.ticks)
        return self.origin_ticks + round(float(ticks))


def _bursts(session: RecordedSession) -> Sequence[list[tuple[int, int, int]]]:
    bursts: list[list[tuple[int, int, int]]] = []
    for sample in session.samples:
        width_ns = sample.host_after_ns - sample.host_before_ns
        reading = (sample.host_before_ns + width_ns // 2, width_ns, sample.device_ticks)
        if bursts and reading[0] - bursts[-1][-1][0] <= _BURST_GAP_NS:
            bursts[-1].append(reading)
        else:
            bursts.append([reading])
    return bursts
