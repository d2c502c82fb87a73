"""Which lane of its row a slice stands on, so that no two slices on one track cross.

Two slices cross where one starts inside the other and ends after it. The format has no picture for that: a viewer drops or
shortens one of them. A row whose slices nest needs one lane, and that is found out without a loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from devprof.export.fitting import fitted
from devprof.link.overlaps import crossings
from devprof.store import Trace

__all__ = ["Lanes", "assign_lanes", "parts_in_time", "sorted_small"]

Longs = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_NONE = np.empty(0, dtype=np.int64)

_AT_ONCE = 1 << 16  # events looked at together; bounds the memory
_MOST_DOUBLINGS = 32  # a tree of so many events is not deeper than 2 to that
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

    def of(self, events: Longs) -> Longs:
        """Return the lanes of some events, given by their indices: (m,) int64."""
        if len(self.events) == 0:
            return np.zeros(len(events), dtype=np.int64)
        at = np.minimum(np.searchsorted(self.events, events), len(self.events) - 1)
        return np.where(self.events[at] == events, self.lane[at], 0)


class _Slices(NamedTuple):
    """Slices in order of row, then start, of equal starts the longest first; `fresh`: not of an earlier part."""

    row: Longs
    start: Longs
    end: Longs
    event: Longs
    fresh: Bools

    def at(self, chosen: npt.NDArray[Any] | slice) -> _Slices:
        row, start, end, event, fresh = self
        return _Slices(row[chosen], start[chosen], end[chosen], event[chosen], fresh[chosen])


def assign_lanes(trace: Trace, is_slice: Bools, looked_at: Bools | None = None) -> Lanes:
    """Give every slice of a trace a lane.

    Slices that cross none stay on the first lane, or with their parent where that moves.

    Args:
        trace: n events.
        is_slice: (256,) bool, by number of `ActivityType`: which events are slices; others need no lane.
        looked_at: (rows,) bool: rows whose slices may cross, or come in another order than that of their starts; None: any.
    """
    if looked_at is not None and not looked_at.any():
        return Lanes(_NONE, _NONE, np.ones(len(trace.rows), dtype=np.int64), _NONE)
    crossing, ahead = [_NONE], [_NONE]
    still_open = _Slices(_NONE, _NONE, _NONE, _NONE, np.empty(0, dtype=np.bool_))
    for events in parts_in_time(trace.start_ns):
        chosen = events[is_slice[trace.activity_type[events]]]
        chosen = chosen if looked_at is None else chosen[looked_at[trace.row[chosen]]]
        if len(chosen) == 0:
            continue
        slices = _in_order(trace, chosen, still_open)
        ahead.append(_out_of_order(slices))
        crossing.extend(_crossing(slices))
        still_open = slices.at(slices.end > slices.start.max())  # whatever comes starts after that
        still_open.fresh[:] = False
    events, lane = _fitted_by_row(trace, np.unique(np.concatenate(crossing)))
    count = np.ones(len(trace.rows), dtype=np.int64)
    np.maximum.at(count, trace.row[events], lane + 1)
    return Lanes(*_with_followers(trace, events, lane, is_slice), count, np.concatenate(ahead))


def parts_in_time(start_ns: Longs) -> Iterator[Longs]:
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
    fresh = _Slices(trace.row[events].astype(np.int64), start, end, events, np.ones(len(events), dtype=np.bool_))
    joined = _Slices(*map(np.concatenate, zip(still_open, fresh, strict=True)))  # type: ignore[arg-type]  # column by column
    by_row = joined.at(sorted_small(joined.row))
    if _is_sorted(by_row):  # as most rows of most traces are
        return by_row
    order = np.lexsort((~joined.end, joined.start))  # ~end: descending, without overflow
    return joined.at(order[sorted_small(joined.row[order])])


def _is_sorted(slices: _Slices) -> bool:
    row, start, end, _, _ = slices
    later = (start[1:] > start[:-1]) | (start[1:] == start[:-1]) & (end[1:] <= end[:-1])
    return bool((later | (row[1:] != row[:-1])).all())


def _out_of_order(slices: _Slices) -> Longs:
    """Return slices that the trace has after shorter ones which start together with them, and what must stay before them."""
    row, start, _, event, _ = slices.at(slices.fresh)
    late = np.zeros(len(row), dtype=np.bool_)
    together = (row[1:] == row[:-1]) & (start[1:] == start[:-1])
    late[:-1] = together & (event[1:] < event[:-1])  # equal slices are still in the trace's order
    if not late.any():
        return _NONE
    run = np.concatenate([[0], np.cumsum(~together)])
    last_late = np.full(int(run[-1]) + 1, -1)
    last_late[run[late]] = np.flatnonzero(late)  # the last one of a run holds
    held: Longs = event[np.arange(len(row)) <= last_late[run]]
    return held


def _crossing(slices: _Slices) -> Iterator[Longs]:
    """Yield the events that cross others of their row, row by row."""
    for row in np.unique(slices.row[_misfits(slices)]).tolist():
        low, high = np.searchsorted(slices.row, row, "left"), np.searchsorted(slices.row, row, "right")
        _, start, end, event, _ = slices.at(slice(int(low), int(high)))
        yield event[crossings(start, end)]
        backward = np.lexsort((start, ~end))  # the same with time turned round finds the other one of each pair
        yield event[backward[crossings(~end[backward], ~start[backward])]]


def _fitted_by_row(trace: Trace, events: Longs) -> tuple[Longs, Longs]:
    """Give the slices that cross others their lanes: (k,) events, ascending, and their lanes."""
    row, start = trace.row[events].astype(np.int64), trace.start_ns[events]
    end = np.maximum(start, trace.end_ns[events])
    order = np.lexsort((~end, start, row))
    lane = np.zeros(len(events), dtype=np.int64)
    for one in np.split(order, np.flatnonzero(np.diff(row[order])) + 1):
        lane[one] = fitted(start[one], end[one], events[one], trace.parent[events[one]].astype(np.int64))
    return events, lane


def _with_followers(trace: Trace, crossing: Longs, lane: Longs, is_slice: Bools) -> tuple[Longs, Longs]:
    """Return all events that are not on the first lane, with their lanes: what moved, and what lies inside it in the tree."""
    if not lane.any():
        return _NONE, _NONE
    lane_of = np.zeros(len(trace), dtype=np.int32)
    lane_of[crossing] = lane
    above = trace.parent.copy()  # the nearest one above that crosses others, or itself
    above[crossing] = crossing
    for _ in range(_MOST_DOUBLINGS):
        further = (above >= 0) & (above[above] != above)
        if not further.any():
            break
        above[further] = above[above[further]]
    inside = np.flatnonzero((above >= 0) & is_slice[trace.activity_type])
    around = above[inside]
    inside = inside[
        (lane_of[around] > 0)
        & (trace.row[around] == trace.row[inside])
        & (trace.start_ns[around] <= trace.start_ns[inside])
        & (np.maximum(trace.start_ns, trace.end_ns)[around] >= np.maximum(trace.start_ns, trace.end_ns)[inside])
    ]
    return inside, lane_of[above[inside]].astype(np.int64)


def _misfits(slices: _Slices) -> Bools:
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
    order = order[sorted_small(np.concatenate([row, row])[order])]
    opens = order >= n
    level = np.cumsum(np.where(opens, 1, -1))
    level -= opens  # how many are open around it: the same for both brackets of a pair
    opened, closed = order[opens] - n, order[~opens]
    return opened[sorted_small(level[opens])], closed[sorted_small(level[~opens])]


def sorted_small(numbers: Longs) -> Longs:
    """Return the stable order of numbers from 0 on, which mostly fit 16 bits: numpy sorts those ten times faster."""
    fits = len(numbers) == 0 or int(numbers.max()) < 2**16
    return np.argsort(numbers.astype(np.uint16) if fits else numbers, kind="stable")
