"""Sets of intervals: unions, intersections, and how long they are."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["Intervals", "common", "covered_at", "length_ns", "union"]

Longs = npt.NDArray[np.int64]
Intervals = tuple[Longs, Longs]
"""Starts and ends, ns, ascending and apart from each other."""


def union(start_ns: Longs, end_ns: Longs) -> Intervals:
    """Return the union of intervals, in any order and overlapping as they like; those that touch are joined.

    Args:
        start_ns, end_ns: (n,) int64; an interval that ends before it starts counts as empty.
    """
    real = end_ns > start_ns
    start, end = (start_ns, end_ns) if real.all() else (start_ns[real], end_ns[real])
    if len(start) == 0:
        return start, end
    if (start[1:] < start[:-1]).any():
        order = np.argsort(start, kind="stable")
        start, end = start[order], end[order]
    reached = np.maximum.accumulate(end)
    first = np.append(0, np.flatnonzero(start[1:] > reached[:-1]) + 1)
    return start[first], reached[np.append(first[1:], len(start)) - 1]


def length_ns(intervals: Intervals) -> int:
    """Return the sum of the lengths."""
    return int((intervals[1] - intervals[0]).sum())


def common(one: Intervals, other: Intervals) -> Intervals:
    """Return what two unions have in common."""
    if not len(one[0]) or not len(other[0]):
        return one[0][:0], one[1][:0]
    # each interval of one meets a run of neighbours in the other
    begin = np.searchsorted(other[1], one[0], "right")
    stop = np.searchsorted(other[0], one[1], "left")
    count = np.maximum(stop - begin, 0)
    mine = np.repeat(np.arange(len(count)), count)
    theirs = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count) + np.repeat(begin, count)
    return np.maximum(one[0][mine], other[0][theirs]), np.minimum(one[1][mine], other[1][theirs])


def covered_at(intervals: Intervals, start_ns: Longs, end_ns: Longs) -> Longs:
    """Return how much of each interval a union covers: (n,) int64, ns.

    Args:
        intervals: a union.
        start_ns, end_ns: (n,) int64, the intervals asked about.
    """
    return _covered_before(intervals, end_ns) - _covered_before(intervals, start_ns)


def _covered_before(intervals: Intervals, time_ns: Longs) -> Longs:
    start, end = intervals
    if len(start) == 0 or len(time_ns) == 0:
        return np.zeros(len(time_ns), dtype=np.int64)
    total = np.append(0, np.cumsum(end - start))
    at = np.searchsorted(start, time_ns, "right")
    # before the first one there is none to be inside of
    end_before = np.append(min(int(start[0]), int(time_ns.min())), end)
    return total[at] - np.maximum(end_before[at] - time_ns, 0)
