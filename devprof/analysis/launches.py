"""From the launch on the host to the work on the device: how long it takes, and how much is queued."""

from __future__ import annotations

import numpy as np

from devprof.analysis.answer import Answer
from devprof.analysis.intervals import Longs
from devprof.analysis.work import by_group, launch_of, work
from devprof.store import Trace

__all__ = ["launch_latency", "queue_length"]


def launch_latency(trace: Trace) -> Answer:
    """Return the time from the start of a launch to the start of its work, per device and name of the launch.

    One launch may cause much work; each piece counts. Columns: ``device``, ``launch``, ``count``, ``min_ns``, ``median_ns``,
    ``p95_ns``, ``max_ns``, ``early`` (work that starts before its launch: clocks that disagree).
    """
    events, launch = _launched(trace)
    latency_ns = trace.start_ns[events] - trace.start_ns[launch]
    group = trace.place[events].astype(np.int64) * max(len(trace.strings), 1) + trace.name[launch]
    rows = []
    for number, positions in by_group(group):
        some = latency_ns[positions]
        least, median, p95, most = np.percentile(some, [0, 50, 95, 100], method="lower").tolist()
        place, name = divmod(number, max(len(trace.strings), 1))
        facts = {"device": trace.places[place].title, "launch": trace.strings[name], "count": len(some)}
        spread = {"min_ns": least, "median_ns": median, "p95_ns": p95, "max_ns": most}
        rows.append({**facts, **spread, "early": int(np.count_nonzero(some < 0))})
    names = ("device", "launch", "count", "min_ns", "median_ns", "p95_ns", "max_ns", "early")
    lost = len(work(trace)) - len(events)
    notes = (f"{lost} device records without a known launch are left out",) if lost else ()
    return Answer("launch latency", {name: [row[name] for row in rows] for name in names}, notes)


def queue_length(trace: Trace) -> Answer:
    """Return how many launched pieces of work each stream had not begun yet: one row per change.

    Columns: ``row`` (index of the stream's row), ``time_ns`` (Unix ns), ``queued`` (from that time on).
    """
    events, launch = _launched(trace)
    rows, times, queued = [], [], []
    for row, positions in by_group(trace.row[events]):
        enter_ns, leave_ns = trace.start_ns[launch[positions]], trace.start_ns[events[positions]]
        real = leave_ns > enter_ns
        time_ns = np.concatenate([enter_ns[real], leave_ns[real]])
        change = np.repeat([1, -1], np.count_nonzero(real))
        order = np.lexsort((change, time_ns))  # of what happens at one time, work that begins comes first
        last = np.append(np.diff(time_ns[order]) != 0, True)[: len(order)]
        times.append(time_ns[order][last])
        queued.append(np.cumsum(change[order])[last])
        rows.append(np.full(len(times[-1]), row))
    none: list[Longs] = [np.empty(0, dtype=np.int64)]
    columns = {"row": rows, "time_ns": times, "queued": queued}
    return Answer("queue length", {name: np.concatenate(parts or none) for name, parts in columns.items()})


def _launched(trace: Trace) -> tuple[Longs, Longs]:
    events = work(trace)
    launch = launch_of(trace, events)
    return events[launch >= 0], launch[launch >= 0]
