"""What each host thread was doing at any time: its innermost event."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from devprof.analysis.intervals import Longs, union
from devprof.analysis.work import events_of_roles
from devprof.link import nest
from devprof.model import ActivityType, Role, kLinkFwdBwd
from devprof.store import Trace

__all__ = ["HostTiles", "threads_that_work_for_each_other"]


_SHOWN = np.zeros(256, dtype=np.bool_)
_SHOWN[[kind for kind in ActivityType if kind.role in (Role.OP, Role.ANNOTATION, Role.LAUNCH, Role.OVERHEAD)]] = True
_SHOWN[ActivityType.PYTHON_FUNCTION] = True


class HostTiles:
    """Host threads cut into tiles, at each of which one event, or none, is innermost.

    Attributes:
        time_ns: (m,) int64, where tiles begin, Unix ns; ascending within a row.
        event: (m,) int64, index of the innermost event from there on, -1: none.
        first: (rows + 1,) int64, first tile of each row.
    """

    def __init__(self, trace: Trace) -> None:
        events = _host_events(trace)
        start, end, row = trace.start_ns[events], trace.end_ns[events], trace.row[events].astype(np.int64)
        above = nest(start, end, row)
        parent = np.where(above >= 0, events[above] if len(events) else above, -1)
        index = np.arange(len(events))
        # at one time what ends comes first, the inner before the outer; then what begins, the outer before the inner
        keys = (
            np.concatenate([-index, index]),
            np.concatenate([-start, -end]),
            np.repeat([0, 1], len(events)),
            np.concatenate([end, start]),
            np.concatenate([row, row]),
        )
        order = np.lexsort(keys)
        time, rows = keys[3][order], keys[4][order]
        innermost = np.concatenate([parent, events])[order]
        last = np.append((time[1:] != time[:-1]) | (rows[1:] != rows[:-1]), True)[: len(order)]
        self.time_ns: Longs = time[last]
        self.event: Longs = innermost[last]
        self.first: Longs = np.searchsorted(rows[last], np.arange(len(trace.rows) + 1))
        self._trace = trace
        self._busy_ends: dict[int, Longs] = {}

    def before(self, row: int, time_ns: int) -> int:
        """Return the tile of a row in which the instant before a time lies, -1: before its first event."""
        begin, stop = int(self.first[row]), int(self.first[row + 1])
        at = begin + int(np.searchsorted(self.time_ns[begin:stop], time_ns, "left")) - 1
        return at if at >= begin else -1

    def busy_end(self, row: int, time_ns: int) -> int | None:
        """Return the latest time, up to one that is given, at which a row's ops and calls had come to an end."""
        if row not in self._busy_ends:
            ours = events_of_roles(self._trace, Role.OP, Role.LAUNCH)
            ours = ours[self._trace.row[ours] == row]
            self._busy_ends[row] = union(self._trace.start_ns[ours], self._trace.end_ns[ours])[1]
        ends = self._busy_ends[row]
        at = int(np.searchsorted(ends, time_ns, "right")) - 1
        return int(ends[at]) if at >= 0 else None


def threads_that_work_for_each_other(trace: Trace) -> dict[int, list[int]]:
    """Return, for each host row, the rows whose work is a part of its program or it of theirs.

    Those are known by backward ops, from which an arrow leads to a forward op of another row, or whose sequence number one has.
    """
    pairs = {*_by_arrows(trace), *_by_sequence(trace)}
    partners: dict[int, list[int]] = {}
    for one, other in sorted(pairs | {(b, a) for a, b in pairs}):
        if one != other:
            partners.setdefault(one, []).append(other)
    return partners


def _host_events(trace: Trace) -> Longs:
    return np.flatnonzero(_SHOWN[trace.activity_type] & ~trace.on_device & (trace.end_ns > trace.start_ns))


def _by_arrows(trace: Trace) -> set[tuple[int, int]]:
    ends = np.flatnonzero((trace.flow_type == kLinkFwdBwd) & (trace.flow_id != 0))
    leaves = trace.flow_start[ends] == 1
    return _pairs(trace, ends[leaves], ends[~leaves], trace.flow_id)


def _by_sequence(trace: Trace) -> set[tuple[int, int]]:
    sequence, forward = trace.items.get("Sequence number"), trace.items.get("Fwd thread id")
    if sequence is None or forward is None or sequence.values.dtype != np.int64:
        return set()
    backward = np.zeros(len(trace), dtype=np.bool_)
    backward[forward.events[forward.values != 0]] = True
    events = sequence.events[sequence.values >= 0]
    number = sequence.dense(len(trace), -1) * max(len(trace.places), 1) + trace.place.astype(np.int64)
    return _pairs(trace, events[~backward[events]], events[backward[events]], number)


def _pairs(trace: Trace, left: Longs, right: Longs, number: npt.NDArray[np.int64]) -> set[tuple[int, int]]:
    """Return the rows of events that have a number in common."""
    left = left[np.argsort(number[left], kind="stable")]
    if not len(left) or not len(right):
        return set()
    at = np.minimum(np.searchsorted(number[left], number[right]), len(left) - 1)
    same = number[left[at]] == number[right]
    rows = np.unique(np.stack([trace.row[left[at[same]]], trace.row[right[same]]], axis=1), axis=0)
    return {(int(one), int(other)) for one, other in rows}
