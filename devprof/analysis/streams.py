"""Streams: when they work, when they are idle, and why."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from devprof.analysis.answer import Answer, Column
from devprof.analysis.intervals import Longs
from devprof.analysis.segments import begins, order_within, run_sums, running_max
from devprof.analysis.work import by_group, launch_of, places_of, work
from devprof.store import Trace

__all__ = ["CAUSES", "idle_gaps", "stream_usage"]

CAUSES = ("host wait", "launch latency", "dependency", "between work", "unknown")
"""Why a stream was idle before a piece of work:

- host wait: nothing was queued; the host had not begun to launch the work.
- launch latency: the host was launching it, or it was on its way.
- dependency: it was queued behind the work before it, and other work of the device ran meanwhile; also where its stream was
  free and its call over for more than 0.1 ms, as no launch is on its way for so long.
- between work: it was queued behind the work before it, and the device did nothing else.
- unknown: its launch is not in the trace.
"""


_ON_ITS_WAY_NS = 100_000
_NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True, eq=False)
class Gaps:
    """Idle times of streams, between two pieces of work; m of them.

    Attributes:
        after: (m,) int64, event whose start ends the gap.
        start_ns, end_ns: (m,) int64, Unix ns.
        by_cause: for each of `CAUSES`, (m,) int64, ns; they add up to the gap.
    """

    after: Longs
    start_ns: Longs
    end_ns: Longs
    by_cause: dict[str, Longs]


def idle_gaps(trace: Trace) -> Gaps:
    """Return the idle times of every stream, with their causes. The time before its first and after its last work is none."""
    return _gaps_of(trace, _streams_of(trace))


def stream_usage(trace: Trace) -> Answer:
    """Return how each stream spent the time from its first to its last work.

    Columns: ``device``, ``stream``, ``count`` of its work, ``span_ns``, ``busy_ns``, ``busy_share``, and for each cause of
    idleness ``idle_CAUSE_ns``.
    """
    streams = _streams_of(trace)
    gaps = _gaps_of(trace, streams)
    bounds = np.append(np.flatnonzero(begins(streams.row)), len(streams.row))
    rows = streams.row[bounds[:-1]]
    gap_bounds = np.append(np.searchsorted(trace.row[gaps.after], rows), len(gaps.after))
    span_ns, busy_ns = _spans_ns(streams, bounds[:-1]), run_sums(_busy_ns(streams), bounds)
    stream = [trace.rows[row] for row in rows.tolist()]
    columns: dict[str, Column] = {
        "device": [trace.places[one.place].title for one in stream],
        "stream": [one.name.strip() or str(one.id) for one in stream],
        "count": np.diff(bounds),
        "span_ns": span_ns,
        "busy_ns": busy_ns,
        "busy_share": busy_ns / np.maximum(span_ns, 1),
    }
    for cause, spent_ns in gaps.by_cause.items():
        columns[f"idle_{cause.replace(' ', '_')}_ns"] = run_sums(spent_ns, gap_bounds)
    return Answer("streams", columns)


@dataclass(frozen=True, slots=True, eq=False)
class _Streams:
    """Device work by stream, and by start within one; m pieces.

    Attributes:
        events: (m,) int64, event indices.
        row: (m,) int32, ascending.
        start_ns, end_ns: (m,) int64, Unix ns.
        over_ns: (m,) int64, when it and all before it on its stream were over.
    """

    events: Longs
    row: npt.NDArray[np.int32]
    start_ns: Longs
    end_ns: Longs
    over_ns: Longs


def _streams_of(trace: Trace) -> _Streams:
    events = work(trace)
    n_rows = len(trace.rows)
    events = events[order_within(trace.row[events], trace.start_ns[events], n_rows)]
    row, start_ns, end_ns = trace.row[events], trace.start_ns[events], trace.end_ns[events]
    return _Streams(events, row, start_ns, end_ns, running_max(row, np.maximum(start_ns, end_ns), n_rows))


def _busy_ns(streams: _Streams) -> Longs:
    """Return what each piece of work adds to the time in which its stream is busy."""
    free_ns = streams.start_ns.copy()  # when the stream is free for it
    same = ~begins(streams.row)[1:]
    np.maximum(free_ns[1:], streams.over_ns[:-1], out=free_ns[1:], where=same)
    busy_ns = np.subtract(streams.end_ns, free_ns, out=free_ns)
    return np.maximum(busy_ns, 0, out=busy_ns)


def _spans_ns(streams: _Streams, first: Longs) -> Longs:
    """Return the time from the start of a stream's first work to the end of its last, of that which takes time at all."""
    if len(first) == 0:
        return first
    real = streams.end_ns > streams.start_ns
    began_ns = np.minimum.reduceat(np.where(real, streams.start_ns, _NEVER), first)
    over_ns = np.maximum.reduceat(np.where(real, streams.end_ns, -_NEVER), first)
    return np.where(began_ns < _NEVER, over_ns - np.minimum(began_ns, over_ns), 0)


def _gaps_of(trace: Trace, streams: _Streams) -> Gaps:
    late = ~begins(streams.row)
    late[1:] &= streams.start_ns[1:] > streams.over_ns[:-1]
    at = np.flatnonzero(late)
    after, start_ns, end_ns = streams.events[at], streams.over_ns[at - 1], streams.start_ns[at]
    return Gaps(after, start_ns, end_ns, _causes(trace, streams, at, start_ns, end_ns))


def _causes(trace: Trace, streams: _Streams, at: Longs, start_ns: Longs, end_ns: Longs) -> dict[str, Longs]:
    """Share out gaps to their causes.

    Args:
        trace: the trace.
        streams: its device work.
        at: (m,) int64, positions in `streams` of the work that ends each gap.
        start_ns, end_ns: (m,) int64, the gaps.
    """
    launch = launch_of(trace, streams.events[at])
    unknown = np.flatnonzero(launch < 0)
    called_ns = trace.end_ns[launch] if len(launch) else launch.copy()
    before_ns = trace.start_ns[launch] if len(launch) else launch.copy()
    before_ns -= start_ns  # from the start of the gap to the launch
    before_ns[unknown] = 1
    queued = np.flatnonzero(before_ns <= 0)
    host_wait = np.maximum(before_ns, 0, out=before_ns)
    rest = end_ns - start_ns
    np.minimum(host_wait, rest, out=host_wait)
    host_wait[unknown] = 0
    rest -= host_wait
    dependency, between, untold = (np.zeros_like(rest) for _ in range(3))
    elsewhere = _others_busy(trace, streams, at[queued], start_ns[queued])
    dependency[queued] = np.minimum(rest[queued], elsewhere)
    between[queued] = rest[queued] - dependency[queued]
    untold[unknown] = rest[unknown]
    launching = rest
    launching[queued] = launching[unknown] = 0
    slow = np.flatnonzero(np.minimum(launching, end_ns - called_ns) > _ON_ITS_WAY_NS)
    if len(slow):
        called_ns = np.maximum(called_ns[slow], start_ns[slow])
        dependency[slow] = np.minimum(launching[slow], _others_busy(trace, streams, at[slow], called_ns))
        launching[slow] -= dependency[slow]
    spent = (host_wait, launching, dependency, between, untold)
    return dict(zip(CAUSES, spent, strict=True))


def _others_busy(trace: Trace, streams: _Streams, at: Longs, start_ns: Longs) -> Longs:
    """Return how much of each gap any stream of the same device was busy; the gap's own stream was not.

    Args:
        trace: the trace.
        streams: its device work.
        at: (k,) int64, positions in `streams` of the work that ends each gap.
        start_ns: (k,) int64, when each gap begins.
    """
    busy = np.zeros(len(at), dtype=np.int64)
    places = places_of(trace, streams.events)
    for place, mine in by_group(places[at]):
        here = np.flatnonzero(places == place)
        work = at[mine]
        if len(here) < len(places):
            work = np.searchsorted(here, work)
            device = _Busy(streams.start_ns[here], streams.end_ns[here])
        else:
            device = _Busy(streams.start_ns, streams.end_ns)
        busy[mine] = device.before_work(work) - device.before(start_ns[mine])
    return busy


class _Busy:
    """How long a device had been busy at any time."""

    def __init__(self, start_ns: Longs, end_ns: Longs) -> None:
        """Take its work.

        Args:
            start_ns, end_ns: (m,) int64, in any order.
        """
        self._order = np.argsort(start_ns, kind="stable")
        self._start_ns, end = start_ns[self._order], end_ns[self._order]
        self._over_ns = np.maximum.accumulate(end)  # when each piece and all that began before it were over
        free_ns = self._start_ns.copy()
        np.maximum(free_ns[1:], self._over_ns[:-1], out=free_ns[1:])
        self._total_ns = np.cumsum(np.maximum(end - free_ns, 0))  # of each piece and all that began before it

    def before_work(self, work: Longs) -> Longs:
        """Return how long it had been busy when some pieces began: (k,) int64, ns.

        Args:
            work: (k,) int64, indices of pieces as they were given.
        """
        at = np.empty(len(self._order), dtype=np.int64)
        at[self._order] = np.arange(len(at))
        at = at[work]
        return self._at(at - 1, self._start_ns[at])

    def before(self, time_ns: Longs) -> Longs:
        """Return how long it had been busy at some times: (k,) int64, ns."""
        return self._at(np.searchsorted(self._start_ns, time_ns, "left") - 1, time_ns)

    def _at(self, begun: Longs, time_ns: Longs) -> Longs:
        """Return the same, where the last piece that had begun is known, -1: none."""
        spent = self._total_ns[begun]  # what began before a time covers all from there to where it is over
        spent -= np.maximum(self._over_ns[begun] - time_ns, 0)
        spent[begun < 0] = 0
        return spent
