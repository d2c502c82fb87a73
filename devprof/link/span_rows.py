"""Put the spans of one place on as few rows as keep them nested or apart."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator, Sequence, Set

import numpy as np

from devprof.link.columns import Bools, Longs
from devprof.link.overlaps import crossings
from devprof.model import ResourceInfo

__all__ = ["cut_for_widening", "edges_at", "lanes_of", "name_extra_rows"]

_EXTRA_ROW_BASE = 2**30
"""First id of an added row: above any stream number, within the 32 bits that torch keeps."""


def cut_for_widening(start: Longs, end: Longs, held: tuple[Bools, Bools] | None = None) -> tuple[Longs, Longs]:
    """Make room for the 1 ns that Kineto adds to both ends of a span.

    Two spans that touch, or are 1 ns apart, would overlap once they are widened. There the end is cut by 1 ns and, if they
    touch, the start too: what is written is then what was measured. Equal times are cut alike, so nested spans stay nested.
    A span shorter than 2 ns is left as it is; `lanes_of` moves it where it is in the way.

    Args:
        start: (n,) int64, ns, spans of one place.
        end: (n,) int64, ns, not before `start`.
        held: for the starts and for the ends, (n,) bool: other work on the place is right beside it (`edges_at`).
    """
    long = end - start >= 2
    starts, ends = np.sort(start[long]), np.sort(end[long])
    # the nearest start at or after each end, and whether an end is exactly at each start
    following = np.append(starts, np.iinfo(np.int64).max)[np.searchsorted(starts, end)]
    cut_end = following - end <= 1
    cut_start = np.append(ends, np.iinfo(np.int64).max)[np.searchsorted(ends, start)] == start
    if held is not None:
        cut_start, cut_end = cut_start | held[0], cut_end | held[1]
    return start + (long & cut_start), end - (long & cut_end)


def edges_at(times: Longs, edges: Longs) -> Bools:
    """Say which times are edges too; there are few times and many edges.

    Args:
        times: (n,) int64.
        edges: (m,) int64, in any order.

    Returns:
        (n,) bool.
    """
    few = np.sort(times)  # equal ones all lead to the first of them
    if len(few) == 0:
        return np.zeros(0, dtype=np.bool_)
    at = np.minimum(np.searchsorted(few, edges), len(few) - 1)
    hit = np.zeros(len(few), dtype=np.bool_)
    hit[at[few[at] == edges]] = True
    return hit[np.searchsorted(few, times)]


def lanes_of(start: Longs, end: Longs) -> Longs:
    """Number the row of each span: 0 for the place's own, further ones where spans cross.

    Args:
        start: (n,) int64, ascending; of equal starts the longest first, of equal spans the outer one.
        end: (n,) int64, not before `start`.

    Returns:
        (n,) int64.
    """
    lanes = np.zeros(len(start), dtype=np.int64)
    if not crossings(start, end).any():
        return lanes
    rows = _Lanes()
    for row, (begin, stop) in enumerate(zip(start.tolist(), end.tolist(), strict=True)):
        lanes[row] = rows.place(begin, stop)
    return lanes


class _Lanes:
    """Rows being filled from left to right.

    An interval is nested into one of the first lanes, or into the one that was used last, where its outer one may be; else it
    takes a lane where everything has ended. Looking through all lanes would find a few nestings more, and take hours where
    thousands of ranges are open at once.
    """

    _SEARCHED = 4

    def __init__(self) -> None:
        self._open_ends: list[list[int]] = []
        self._last = 0
        self._ending: list[tuple[int, int]] = []

    def place(self, begin: int, stop: int) -> int:
        self._last = self._nested(begin, stop)
        return self._last

    def _nested(self, begin: int, stop: int) -> int:
        searched = range(min(self._SEARCHED, len(self._open_ends)))
        for lane in searched:
            if self._fits(lane, begin, stop):
                self._open_ends[lane].append(stop)
                return lane
        if self._last >= self._SEARCHED and self._fits(self._last, begin, stop) and self._open_ends[self._last]:
            self._open_ends[self._last].append(stop)
            return self._last
        return self._free(begin, stop)

    def _fits(self, lane: int, begin: int, stop: int) -> bool:
        ends = self._open_ends[lane]
        while ends and ends[-1] <= begin:
            ends.pop()
        return not ends or stop <= ends[-1]

    def _free(self, begin: int, stop: int) -> int:
        lane = len(self._open_ends)
        if self._ending and self._ending[0][0] <= begin:
            _, lane = heapq.heappop(self._ending)
            self._open_ends[lane] = [stop]
        else:
            self._open_ends.append([stop])
        if lane >= self._SEARCHED:
            heapq.heappush(self._ending, (stop, lane))
        return lane


def name_extra_rows(
    wanted: Sequence[tuple[int, int, int]], taken: Set[tuple[int, int]], *, what: str = " annotations"
) -> dict[tuple[int, int, int], ResourceInfo]:
    """Give each added row an id of its own and a name.

    Args:
        wanted: (device, resource, lane) of each added row, lane from 1.
        taken: (device, resource) pairs in use.
        what: what stands on the rows, for their names.
    """
    rows: dict[tuple[int, int, int], ResourceInfo] = {}
    free_ids: dict[int, Iterator[int]] = {}
    for device, resource, lane in wanted:
        free = next(free_ids.setdefault(device, _free_ids(device, taken)))
        name = f"stream {resource}{what} {lane + 1}" if what else f"stream {resource} ({lane + 1})"
        rows[device, resource, lane] = ResourceInfo(free, device, name, sort_index=resource)
    return rows


def _free_ids(device: int, taken: Set[tuple[int, int]]) -> Iterator[int]:
    return (free for free in itertools.count(_EXTRA_ROW_BASE) if (device, free) not in taken)
