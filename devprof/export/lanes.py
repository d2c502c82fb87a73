"""Which lane of its row a slice stands on, so that no two slices on one track cross.

Two slices cross where one starts inside the other and ends after it. The format has no picture for that: a viewer drops or
shortens one of them. A row whose slices nest needs one lane, and that is found out without a loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from devprof.export.fitting import best_fit
from devprof.store import Trace

__all__ = ["Lanes", "assign_lanes"]

Longs = npt.NDArray[np.int64]

_AT_ONCE = 1 << 16  # events looked at together; bounds the memory
_MOST_PARTS = 64  # of a large trace, so that it is not gone through too often


@dataclass(frozen=True, slots=True, eq=False)
class Lanes:
    """The lanes of a trace.

    Attributes:
        events: (k,) int64, ascending: events that stand on another lane than the first of their row.
        lane: (k,) int64, their lanes, from 1.
        count: (rows,) int64, how many lanes each row has, at least 1.
        ahead: (j,) int64: events to be written before all others, in this order. They start together with a slice that
            stands before them in the trace and lies inside them; a viewer nests such slices by their order in the file.
    """

    events: Longs
    lane: Longs
    count: Longs
    ahead: Longs


class _Slices(NamedTuple):
    """Slices in order of row, then start, of equal starts the longest first; `lane` is -1 where it is not known yet."""

    row: Longs
    start: Longs
    end: Longs
    event: Longs
    lane: Longs

    def at(self, chosen: npt.NDArray[Any] | slice) -> _Slices:
        return _Slices(*(column[chosen] for column in self))


@dataclass(slots=True)
class _Found:
    count: Longs
    events: list[Longs] = field(default_factory=list)
    lane: list[Longs] = field(default_factory=list)
    ahead: list[Longs] = field(default_factory=list)


def assign_lanes(trace: Trace, is_slice: npt.NDArray[np.bool_]) -> Lanes:
    """Give every slice of a trace a lane.

    Args:
        trace: n events.
        is_slice: (256,) bool, by number of `ActivityType`: which events are slices; others need no lane.
    """
    found = _Found(np.ones(len(trace.rows), dtype=np.int64))
    none = np.empty(0, dtype=np.int64)
    still_open = _Slices(none, none, none, none, none)
    for events in _parts_in_time(trace.start_ns):
        chosen = events[is_slice[trace.activity_type[events]]]
        if len(chosen) == 0:
            continue
        slices = _in_order(trace, chosen, still_open)
        _note_order(slices, found)
        slices = _with_lanes(trace, slices, found)
        still_open = slices.at(slices.end > slices.start.max())  # whatever comes starts after that
    events = _joined(found.events)
    order = np.argsort(events, kind="stable")
    return Lanes(events[order], _joined(found.lane)[order], found.count, _joined(found.ahead))


def _parts_in_time(start_ns: Longs) -> Iterator[Longs]:
    """Yield all events in parts, each after the one before it in time: (m,) int64, ascending within a part."""
    n = len(start_ns)
    parts = min(-(-n // _AT_ONCE), _MOST_PARTS)
    sample = np.sort(start_ns[:: max(1, n // (64 * parts))]) if parts > 1 else start_ns[:0]
    cuts = np.unique(sample[:: max(1, -(-len(sample) // max(parts, 1)))][1:])
    low: int | None = None
    for high in [*cuts.tolist(), None]:
        inside = np.ones(n, dtype=np.bool_) if low is None else start_ns >= low
        if high is not None:
            inside &= start_ns < high
        yield np.flatnonzero(inside)
        low = high


def _in_order(trace: Trace, events: Longs, still_open: _Slices) -> _Slices:
    start = trace.start_ns[events]
    end = np.maximum(start, trace.end_ns[events])
    fresh = _Slices(trace.row[events].astype(np.int64), start, end, events, np.full(len(events), -1))
    joined = _Slices(*(np.concatenate(pair) for pair in zip(still_open, fresh, strict=True)))
    order = np.lexsort((~joined.end, joined.start))  # ~end: descending, without overflow
    return joined.at(order[_sorted_small(joined.row[order])])


def _note_order(slices: _Slices, found: _Found) -> None:
    """Note slices that the trace has after shorter ones which start together with them."""
    row, start, _, event, _ = slices.at(slices.lane < 0)  # those of earlier parts have been looked at
    late = np.zeros(len(row), dtype=np.bool_)
    together = (row[1:] == row[:-1]) & (start[1:] == start[:-1])
    late[:-1] = together & (event[1:] < event[:-1])  # equal slices are still in the trace's order
    if not late.any():
        return
    run = np.concatenate([[0], np.cumsum(~together)])
    last_late = np.full(int(run[-1]) + 1, -1)
    last_late[run[late]] = np.flatnonzero(late)  # the last one of a run holds
    found.ahead.append(event[np.arange(len(row)) <= last_late[run]])


def _with_lanes(trace: Trace, slices: _Slices, found: _Found) -> _Slices:
    """Return the slices with their lanes; those that do not stand on the first one are noted."""
    fresh = slices.lane < 0
    lane = np.maximum(slices.lane, 0)
    for row in np.unique(slices.row[_misfits(slices) | (lane > 0)]).tolist():
        low, high = np.searchsorted(slices.row, row, "left"), np.searchsorted(slices.row, row, "right")
        _, start, end, event, known = slices.at(slice(int(low), int(high)))
        lane[low:high] = best_fit(start, end, event, trace.parent[event], known)
        found.count[row] = max(int(found.count[row]), int(lane[low:high].max()) + 1)
    moved = fresh & (lane > 0)
    found.events.append(slices.event[moved])
    found.lane.append(lane[moved])
    return slices._replace(lane=lane)


def _misfits(slices: _Slices) -> npt.NDArray[np.bool_]:
    """Mark slices that do not nest with those of their row: of each row on which any cross, at least one.

    Starts and ends in order of time are brackets. Where all slices nest, the bracket that closes what a slice opened is its
    own; so the times of the two are compared. A slice without length crosses nothing and is left out.
    """
    solid = np.flatnonzero(slices.end > slices.start)
    row, start, end = slices.row[solid], slices.start[solid], slices.end[solid]
    misfit = np.zeros(len(slices.row), dtype=np.bool_)
    if ((end[:-1] > start[1:]) & (row[:-1] == row[1:])).any():
        opened, closed = _brackets(row, start, end)
        misfit[solid[opened]] = end[opened] != end[closed]
    return misfit


def _brackets(row: Longs, start: Longs, end: Longs) -> tuple[Longs, Longs]:
    """Pair brackets, as a parser would: (m,) int64 each, the slice that a bracket opens and the one that its partner closes."""
    n = len(row)
    order = np.argsort(np.concatenate([end, start]), kind="stable")  # ends come first where a start has the same time
    order = order[_sorted_small(np.concatenate([row, row])[order])]
    opens = order >= n
    level = np.cumsum(np.where(opens, 1, -1))
    level -= opens  # how many are open around it: the same for both brackets of a pair
    opened, closed = order[opens] - n, order[~opens]
    return opened[_sorted_small(level[opens])], closed[_sorted_small(level[~opens])]


def _sorted_small(numbers: Longs) -> Longs:
    """Return the stable order of numbers from 0 on, which mostly fit 16 bits: numpy sorts those ten times faster."""
    fits = len(numbers) == 0 or int(numbers.max()) < 2**16
    return np.argsort(numbers.astype(np.uint16) if fits else numbers, kind="stable")


def _joined(parts: list[Longs]) -> Longs:
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)
