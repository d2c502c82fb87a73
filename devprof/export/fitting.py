"""Lanes for the slices of one row, some of which cross."""

from __future__ import annotations

from bisect import bisect_left, insort
from heapq import heappop, heappush

import numpy as np
import numpy.typing as npt

__all__ = ["best_fit"]

Longs = npt.NDArray[np.int64]


def best_fit(start: Longs, end: Longs, event: Longs, parent: npt.NDArray[np.int32], lane: Longs) -> Longs:
    """Give every slice of a row a lane on which it lies inside all that is open there.

    It takes the lane of its parent where it fits there, else that of the shortest open slice around it, else the first lane
    on which nothing is open.

    Args:
        start, end: (n,) int64, ascending by start, of equal starts the longest first.
        event, parent: (n,) the slices' own numbers, and those of their parents in the tree.
        lane: (n,) int64, lanes that are known already, and -1; those known come first.

    Returns:
        (n,) int64, lanes from 0.
    """
    row = _Row()
    columns = (start.tolist(), end.tolist(), event.tolist(), parent.tolist(), lane.tolist())
    return np.array([row.place(*slice_) for slice_ in zip(*columns, strict=True)], dtype=np.int64)


class _Row:
    """What is open on each lane of a row, while slices come in order of their starts."""

    def __init__(self) -> None:
        self._open: list[list[tuple[int, int]]] = []  # by lane: (end, event), the innermost last
        self._innermost: list[tuple[int, int]] = []  # (end, lane) of the innermost open slice of each lane, ascending
        self._free: list[int] = []  # lanes with nothing on them, a heap
        self._lane_of: dict[int, int] = {}  # lanes of what is open, by event

    def place(self, start: int, end: int, event: int, parent: int, known: int) -> int:
        """Put a slice on a lane, and return which."""
        self._close_until(start)
        lane = known if known >= 0 else self._choose(end, parent)
        while lane >= len(self._open):
            heappush(self._free, len(self._open))
            self._open.append([])
        if self._open[lane]:
            innermost = (self._open[lane][-1][0], lane)
            del self._innermost[bisect_left(self._innermost, innermost)]
        else:
            self._free.remove(lane) if known >= 0 else heappop(self._free)
        self._open[lane].append((end, event))
        insort(self._innermost, (end, lane))
        self._lane_of[event] = lane
        return lane

    def _choose(self, end: int, parent: int) -> int:
        beside = self._lane_of.get(parent, -1)
        if beside >= 0 and self._open[beside][-1][0] >= end:
            return beside
        around = bisect_left(self._innermost, (end, -1))
        if around < len(self._innermost):
            return self._innermost[around][1]
        return self._free[0] if self._free else len(self._open)

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
