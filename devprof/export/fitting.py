"""Lanes for slices of one row that cross each other.

Two ways: where few slices cross, the longest ones stay together and what is short moves, which is what a reader wants to see.
Where many do, they come in the order of their starts, which needs the fewest lanes and hardly any time for each.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from heapq import heappop, heappush

import numpy as np
import numpy.typing as npt

__all__ = ["by_start", "fitted", "longest_first"]

Longs = npt.NDArray[np.int64]

_MOST_FOR_LONGEST_FIRST = 30_000
_MOST_TRIES = 2_000_000


def fitted(start: Longs, end: Longs, event: Longs, parent: Longs) -> Longs:
    """Give every slice a lane on which no two cross.

    A slice takes the lane of its parent where it fits there.

    Args:
        start, end: (n,) int64, ascending by start, of equal starts the longest first; none ends before it starts.
        event, parent: (n,) int64, the slices' own numbers, and those of their parents in the tree.

    Returns:
        (n,) int64, lanes from 0.
    """
    times = np.argsort(np.concatenate([end, start]), kind="stable")
    at_once = int(np.cumsum(np.where(times >= len(start), 1, -1)).max(initial=0))
    few = len(start) <= _MOST_FOR_LONGEST_FIRST and len(start) * at_once <= _MOST_TRIES
    return (longest_first if few else by_start)(start, end, event, parent)


def longest_first(start: Longs, end: Longs, event: Longs, parent: Longs) -> Longs:
    """As `fitted`: the longest slices choose first, each the first lane on which it crosses none of those before it."""
    order = np.argsort(start - end, kind="stable")
    columns = (column[order].tolist() for column in (start, end, event, parent))
    bounds: list[list[int]] = []  # by lane: all starts and ends on it, ascending
    lane_of: dict[int, int] = {}
    found = []
    for first, last, own, above in zip(*columns, strict=True):
        tried = lane_of.get(above, 0)
        lane = tried if _fits(bounds, tried, first, last) else 0
        while not _fits(bounds, lane, first, last):
            lane += 1
        if lane == len(bounds):
            bounds.append([])
        insort(bounds[lane], first)
        insort(bounds[lane], last)
        lane_of[own] = lane
        found.append(lane)
    lanes = np.empty(len(order), dtype=np.int64)
    lanes[order] = found
    return lanes


def _fits(bounds: list[list[int]], lane: int, start: int, end: int) -> bool:
    """Say whether a slice crosses none on a lane; those are no shorter, so that one with a bound inside it is not inside."""
    if lane >= len(bounds):
        return True
    after = bisect_right(bounds[lane], start)
    return after == len(bounds[lane]) or bounds[lane][after] >= end


def by_start(start: Longs, end: Longs, event: Longs, parent: Longs) -> Longs:
    """As `fitted`: in order of start, each on the lane of the shortest open slice around it, else on a free one."""
    row = _Row()
    columns = (start.tolist(), end.tolist(), event.tolist(), parent.tolist())
    return np.array([row.place(*one) for one in zip(*columns, strict=True)], dtype=np.int64)


class _Row:
    """What is open on each lane of a row, while slices come in order of their starts."""

    def __init__(self) -> None:
        self._open: list[list[tuple[int, int]]] = []  # by lane: (end, event), the innermost last
        self._innermost: list[tuple[int, int]] = []  # (end, lane) of the innermost open slice of each lane, ascending
        self._free: list[int] = []  # lanes with nothing on them, a heap
        self._lane_of: dict[int, int] = {}  # lanes of what is open, by event

    def place(self, start: int, end: int, event: int, parent: int) -> int:
        """Put a slice on a lane, and return which."""
        self._close_until(start)
        lane = self._around(end, parent)
        if lane >= 0:
            innermost = (self._open[lane][-1][0], lane)
            del self._innermost[bisect_left(self._innermost, innermost)]
        elif self._free:
            lane = heappop(self._free)
        else:
            lane = len(self._open)
            self._open.append([])
        self._open[lane].append((end, event))
        insort(self._innermost, (end, lane))
        self._lane_of[event] = lane
        return lane

    def _around(self, end: int, parent: int) -> int:
        """Return the lane of an open slice that lasts until `end`, -1: there is none."""
        lane = self._lane_of.get(parent, -1)
        if lane >= 0 and self._open[lane][-1][0] >= end:
            return lane
        at = bisect_left(self._innermost, (end, -1))
        return self._innermost[at][1] if at < len(self._innermost) else -1

    def _close_until(self, time: int) -> None:
        while self._innermost and self._innermost[0][0] <= time:
            _, lane = self._innermost.pop(0)
            lane_open = self._open[lane]
            while lane_open and lane_open[-1][0] <= time:
                del self._lane_of[lane_open.pop()[1]]
            if lane_open:
                insort(self._innermost, (lane_open[-1][0], lane))
            else:
                heappush(self._free, lane)
