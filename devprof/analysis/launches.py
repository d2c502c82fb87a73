"""From the launch on the host to the work on the device: how long it takes, and how much is queued."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from devprof.analysis.answer import Answer, Column
from devprof.analysis.columns import Longs, distinct
from devprof.analysis.segments import apart, begins, sorted_within
from devprof.analysis.work import launches_of, n_work, places_of
from devprof.store import Trace

__all__ = ["launch_latency", "queue_length"]

Ints = npt.NDArray[np.int32]
Waits = tuple[Ints, Longs, Longs]
"""Row, time of entering and of leaving a queue, ns."""
Changes = tuple[Ints, Longs, Ints]
"""Row, time in ns, and how much is queued from then on; by row and time."""
_PART = 1 << 15


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
        **_spread(latency_ns, first, count),
        "early": early[found],
    }
    lost = n_work(trace) - len(events)
    notes = (f"{lost} device records without a known launch are left out",) if lost else ()
    return Answer("launch latency", columns, notes)


def _spread(values: Longs, first: Longs, count: Longs) -> dict[str, Column]:
    """Return figures of groups of sorted values.

    Args:
        values: of all groups, each group's in order.
        first: (g,) where each group begins.
        count: (g,) how many it has, at least one.
    """
    low, high = values[first + (count - 1) // 2], values[first + count // 2]
    return {
        "min_ns": values[first],
        "median_ns": low + (high - low) // 2,  # of an even number half way between the middle two
        "p95_ns": values[first + ((count - 1) * 0.95).astype(np.int64)],
        "max_ns": values[first + count - 1],
    }


def queue_length(trace: Trace) -> Answer:
    """Return how many launched pieces of work each stream had not begun yet: one row per change.

    Columns: ``row`` (index of the stream's row), ``time_ns`` (Unix ns), ``queued`` (from that time on).
    """
    parts = [_waits(trace, slice(begin, begin + _PART)) for begin in range(0, len(trace), _PART)]
    n_rows = len(trace.rows)
    some = [part for part in parts if len(part[0])]
    low = min((int(enter_ns.min()) for _, enter_ns, _ in some), default=0)
    high = max((int(leave_ns.max()) for _, _, leave_ns in some), default=0)
    shift = apart(low, high, n_rows, factor=2)
    found = _far_apart(some) if shift is None else _lifted(some, shift)
    return Answer("queue length", dict(zip(("row", "time_ns", "queued"), found, strict=True)))


def _waits(trace: Trace, part: slice) -> Waits:
    """Return of a part of the trace, for each piece of work that had to wait: its row, when it was launched, when it began."""
    launch, at = launches_of(trace, part)
    row, enter_ns, leave_ns = trace.row[part].take(at), trace.start_ns.take(launch), trace.start_ns[part].take(at)
    real = leave_ns > enter_ns
    return (row, enter_ns, leave_ns) if real.all() else (row[real], enter_ns[real], leave_ns[real])


def _lifted(parts: Sequence[Waits], shift: Longs) -> Changes:
    """Return the changes of all queues; by one sort over times, of which each row's are lifted above those of the one before.

    The lowest bit of what is sorted says whether something enters; of what happens at once, leaving is first.

    Args:
        parts: what waited.
        shift: (rows,) by how much to lift.
    """
    n = sum(len(row) for row, _, _ in parts)
    key, count, at = np.empty(2 * n, dtype=np.int64), np.zeros(len(shift), dtype=np.int64), 0
    for row, enter_ns, leave_ns in parts:
        lift = shift.take(row)
        count += np.bincount(row, minlength=len(shift))
        leaving, entering = key[at : at + len(row)], key[n + at : n + at + len(row)]
        np.left_shift(lift + leave_ns, 1, out=leaving)
        np.left_shift(lift + enter_ns, 1, out=entering)
        entering |= 1
        at += len(row)
    key.sort(kind="stable")  # two runs of each row, most often
    return _counted(key, shift, np.cumsum(2 * count))


def _counted(key: Longs, shift: Longs, ends: Longs) -> Changes:
    """Count what is in each queue, in parts that stay in the processor's cache; the times are written over the keys.

    Args:
        key: (2 n,) int64, sorted.
        shift: (rows,) int64.
        ends: (rows,) int64, where the keys of each row end.
    """
    rows, queued = np.empty(len(key), dtype=np.int32), np.empty(len(key), dtype=np.int32)
    written = begin = 0
    for row, end in enumerate(ends.tolist()):
        waiting = 0
        while begin < end:
            stop = min(begin + _PART, end)
            change = (key[begin:stop] & 1).astype(np.int32)
            change += change
            change -= 1
            change[0] += waiting
            length = np.cumsum(change, dtype=np.int32)
            waiting = int(length[-1])
            time_ns = key[begin:stop] >> 1
            last = np.append(time_ns[1:] != time_ns[:-1], stop == end or key[stop] >> 1 != time_ns[-1])
            time_ns -= shift[row]
            if not last.all():
                time_ns, length = time_ns[last], length[last]
            into = slice(written, written + len(time_ns))
            rows[into], key[into], queued[into] = row, time_ns, length
            begin, written = stop, into.stop
    return rows[:written], key[:written], queued[:written]


def _far_apart(parts: Sequence[Waits]) -> Changes:
    """Return the same as `_lifted` where times are so far apart that there is no room to lift them."""
    row, enter_ns, leave_ns = (np.concatenate([part[side] for part in parts]) for side in range(3))
    rows, time_ns, enters = np.tile(row, 2), np.concatenate([leave_ns, enter_ns]), np.repeat([-1, 1], len(row))
    order = np.lexsort((enters, time_ns, rows))
    rows, time_ns = rows[order], time_ns[order]
    last = np.append(begins(rows)[1:] | (time_ns[1:] != time_ns[:-1]), True)
    queued = np.cumsum(enters[order])  # what enters a stream leaves it: the next one begins with 0
    return rows[last], time_ns[last], queued[last].astype(np.int32)


def _launched(trace: Trace) -> tuple[Longs, Longs]:
    """Return the device work that has a launch, and its launches: (m,) int64 each, indices of events."""
    launch, events = launches_of(trace, slice(None))
    return events, launch.astype(np.int64)
