"""Streams: when they work, when they are idle, and why."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from devprof.analysis.answer import Answer
from devprof.analysis.intervals import Longs, covered_at, length_ns, union
from devprof.analysis.work import by_group, launch_of, work
from devprof.store import Trace

__all__ = ["CAUSES", "idle_gaps", "stream_usage"]

CAUSES = ("host wait", "launch latency", "dependency", "between work", "unknown")
"""Why a stream was idle before a piece of work:

- host wait: nothing was queued; the host had not begun to launch the work.
- launch latency: the host was launching it, or it was on its way.
- dependency: it was queued behind the work before it, and other work of the device ran meanwhile.
- between work: it was queued behind the work before it, and the device did nothing else.
- unknown: its launch is not in the trace.
"""


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
    events = work(trace)
    found = [_gaps_of_row(trace, events[positions]) for _, positions in by_group(trace.row[events])]
    after, start_ns = (np.concatenate([*part, np.empty(0, np.int64)]) for part in zip(*found, strict=True)) if found else (
        np.empty(0, np.int64), np.empty(0, np.int64)
    )  # fmt: skip
    end_ns = trace.start_ns[after]
    return Gaps(after, start_ns, end_ns, _causes(trace, events, after, start_ns, end_ns))


def stream_usage(trace: Trace) -> Answer:
    """Return how each stream spent the time from its first to its last work.

    Columns: ``device``, ``stream``, ``count`` of its work, ``span_ns``, ``busy_ns``, ``busy_share``, and for each cause of
    idleness ``idle_CAUSE_ns``.
    """
    events = work(trace)
    gaps = idle_gaps(trace)
    rows = []
    for row, positions in by_group(trace.row[events]):
        here = events[positions]
        busy = union(trace.start_ns[here], trace.end_ns[here])
        span_ns = int(busy[1][-1] - busy[0][0]) if len(busy[0]) else 0
        mine = trace.row[gaps.after] == row
        causes = {f"idle_{cause.replace(' ', '_')}_ns": int(gaps.by_cause[cause][mine].sum()) for cause in CAUSES}
        usage = {"span_ns": span_ns, "busy_ns": length_ns(busy), "busy_share": length_ns(busy) / max(span_ns, 1)}
        stream = trace.rows[row]
        rows.append(
            {"device": trace.places[stream.place].title, "stream": stream.name, "count": len(here), **usage, **causes}
        )
    names = rows[0] if rows else ("device", "stream", "count", "span_ns", "busy_ns", "busy_share")
    return Answer("streams", {name: [row[name] for row in rows] for name in names})


def _gaps_of_row(trace: Trace, events: Longs) -> tuple[Longs, Longs]:
    """Return, for one stream, the event after each gap and the time at which the work before it was over."""
    order = events[np.argsort(trace.start_ns[events], kind="stable")]
    over_ns = np.maximum.accumulate(np.maximum(trace.end_ns[order], trace.start_ns[order]))
    idle = np.flatnonzero(trace.start_ns[order[1:]] > over_ns[:-1])
    return order[1:][idle], over_ns[:-1][idle]


def _causes(trace: Trace, events: Longs, after: Longs, start_ns: Longs, end_ns: Longs) -> dict[str, Longs]:
    launch = launch_of(trace, after)
    known = launch >= 0
    launched_ns = np.where(known, trace.start_ns[launch], end_ns)
    host_wait = np.where(known, np.clip(launched_ns, start_ns, end_ns) - start_ns, 0)
    rest = end_ns - start_ns - host_wait
    late = known & (launched_ns > start_ns)
    elsewhere = _others_busy(trace, events, after, start_ns, end_ns)
    queued = np.where(known & ~late, rest, 0)
    dependency = np.minimum(queued, elsewhere)
    return {
        "host wait": host_wait,
        "launch latency": np.where(late, rest, 0),
        "dependency": dependency,
        "between work": queued - dependency,
        "unknown": np.where(known, 0, rest),
    }


def _others_busy(trace: Trace, events: Longs, after: Longs, start_ns: Longs, end_ns: Longs) -> Longs:
    """Return how much of each gap any stream of the same device was busy; the gap's own stream was not."""
    busy = np.zeros(len(after), dtype=np.int64)
    places = trace.place
    for place, positions in by_group(places[events]):
        here = events[positions]
        mine = places[after] == place
        device = union(trace.start_ns[here], trace.end_ns[here])
        busy[mine] = covered_at(device, start_ns[mine], end_ns[mine])
    return busy
