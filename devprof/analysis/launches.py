"""From the launch on the host to the work on the device: how long it takes, and how much is queued."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from devprof.analysis.answer import Answer, Column
from devprof.analysis.columns import Longs, distinct
from devprof.analysis.segments import apart, begins, sorted_within
from devprof.analysis.work import launch_of, places_of, work
from devprof.store import Trace

__all__ = ["launch_latency", "queue_length"]

Rows = npt.NDArray[np.int32]
_PARTS = {"min_ns": 0.0, "median_ns": 0.5, "p95_ns": 0.95, "max_ns": 1.0}


def launch_latency(trace: Trace) -> Answer:
    """Return the time from the start of a launch to the start of its work, per device and name of the launch.

    One launch may cause much work; each piece counts. Columns: ``device``, ``launch``, ``count``, ``min_ns``, ``median_ns``,
    ``p95_ns``, ``max_ns``, ``early`` (work that starts before its launch: clocks that disagree).
    """
    events, launch = _launched(trace)
    names, group = distinct(trace.name[launch], len(trace.strings))
    n_names, n_groups = max(len(names), 1), len(trace.places) * len(names)
    group += places_of(trace, events).astype(np.int64) * n_names
    latency_ns = trace.start_ns[events] - trace.start_ns[launch]
    early = np.bincount(group[latency_ns < 0], minlength=n_groups)
    latency_ns = sorted_within(group, latency_ns, n_groups)
    count = np.bincount(group, minlength=n_groups)
    first = np.cumsum(count) - count
    found = np.flatnonzero(count)
    count, first = count[found], first[found]
    columns: dict[str, Column] = {
        "device": [trace.places[place].title for place in (found // n_names).tolist()],
        "launch": [trace.strings[name] for name in names[found % n_names].tolist()],
        "count": count,
        **{key: latency_ns[first + ((count - 1) * part).astype(np.int64)] for key, part in _PARTS.items()},
        "early": early[found],
    }
    lost = len(work(trace)) - len(events)
    notes = (f"{lost} device records without a known launch are left out",) if lost else ()
    return Answer("launch latency", columns, notes)


def queue_length(trace: Trace) -> Answer:
    """Return how many launched pieces of work each stream had not begun yet: one row per change.

    Columns: ``row`` (index of the stream's row), ``time_ns`` (Unix ns), ``queued`` (from that time on).
    """
    events, launch = _launched(trace)
    row, time_ns, change = _changes(trace.row[events], trace.start_ns[launch], trace.start_ns[events], len(trace.rows))
    queued = np.cumsum(change, dtype=np.int64)  # what enters a stream leaves it: the next one begins with 0
    last = np.append(begins(row)[1:] | (time_ns[1:] != time_ns[:-1]), True)[: len(row)]
    at = np.flatnonzero(last)
    return Answer("queue length", {"row": row[at], "time_ns": time_ns[at], "queued": queued[at]})


def _changes(
    row: Rows, enter_ns: Longs, leave_ns: Longs, n_rows: int
) -> tuple[Longs, Longs, npt.NDArray[np.integer[Any]]]:
    """Return, by row and time, when something enters (1) or leaves (-1) a queue; of what happens at once, leaving is first.

    What does not leave after it entered is left out.
    """
    real = leave_ns > enter_ns
    if not real.all():
        row, enter_ns, leave_ns = row[real], enter_ns[real], leave_ns[real]
    n = len(row)
    low, high = (int(enter_ns.min()), int(leave_ns.max())) if n else (0, 0)
    shift = apart(low, high, n_rows, factor=2)
    if shift is None:
        rows, time_ns, enters = np.tile(row, 2), np.concatenate([leave_ns, enter_ns]), np.repeat([-1, 1], n)
        order = np.lexsort((enters, time_ns, rows))
        return rows[order].astype(np.int64), time_ns[order], enters[order]
    key = np.empty(2 * n, dtype=np.int64)
    lift = shift[row]
    np.add(lift, leave_ns, out=key[:n])
    np.add(lift, enter_ns, out=key[n:])
    key <<= 1
    key[n:] |= 1
    key.sort(kind="stable")  # two runs of each row, most often
    change = (key & 1).astype(np.int8)
    change += change
    change -= 1
    key >>= 1
    in_order = np.repeat(np.arange(n_rows), 2 * np.bincount(row, minlength=n_rows))
    key -= shift[in_order]
    return in_order, key, change


def _launched(trace: Trace) -> tuple[Longs, Longs]:
    events = work(trace)
    launch = launch_of(trace, events)
    return events[launch >= 0], launch[launch >= 0]
