"""`nest`: the innermost enclosing event of every event, row by row, without a loop over events.

torch keeps a stack per thread and takes one event at a time, in its event tree (torch/csrc/profiler/collection.cpp) and in
its `EventList` (torch/autograd/profiler_util.py). Here the stack's depth is counted for all events at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from devprof.link.columns import Longs, codes_of

__all__ = ["Nesting", "nest", "nesting"]

_NEAR = 4
"""So many places before an event its parent is looked for at once; most are there."""

_CLIMBS = 8
"""So often the events whose parent is further away climb from one that encloses much to the one around it."""

_FOREVER = np.iinfo(np.int64).max
_ROOM = 2**62
"""Rows are set one behind the other in time where that fits; the sum of two times then still fits int64."""


class Nesting(NamedTuple):
    """How n events stand in each other.

    Attributes:
        parent: (n,) int64, index of the innermost event around each, -1: none.
        crosses: whether any event starts inside another one of its row and ends after it.
    """

    parent: Longs
    crosses: bool


def nest(start_ns: Longs, end_ns: Longs, row: Longs, *, entered_in_order: bool = True) -> Longs:
    """Return the innermost enclosing event of each event on its row.

    The rule. The events of a row are taken by start, and of equal starts in the order given, which is that of entering. The
    parent of an event is the last one before it that lasts until its end or longer. So an event that crosses out of another
    one is not its child, and neither is what comes after; of equal spans the earlier one is the parent. An instant (no
    duration, or a negative one) is nobody's parent; at the last tick of an event it is inside.

    Any depth, any number of rows and any crossings cost at most n log n; events that nest, nearly in order, cost least.

    Args:
        start_ns: (n,) int64.
        end_ns: (n,) int64.
        row: (n,) int64, any numbers; events on different rows never nest.
        entered_in_order: False where the order given means nothing (events of a file): of equal starts the longest is then
            the outer one.

    Returns:
        (n,) int64, index of the parent, -1: none.
    """
    return nesting(start_ns, end_ns, row, entered_in_order=entered_in_order).parent


def nesting(start_ns: Longs, end_ns: Longs, row: Longs, *, entered_in_order: bool = True) -> Nesting:
    """Return the parents of events, and whether any cross; as `nest`."""
    n = len(start_ns)
    if n == 0:
        return Nesting(np.empty(0, dtype=np.int64), False)
    ranks = _ranks(row)
    start, end = _on_one_axis(start_ns, np.maximum(start_ns, end_ns), ranks)
    order = _order(start, end, ranks, entered_in_order)
    if order is None:
        return _nested(start, end, ranks)
    above, crosses = _nested(start[order], end[order], ranks[order])
    parent = np.empty(n, dtype=np.int64)
    parent[order] = np.where(above >= 0, order[above], -1)
    return Nesting(parent, crosses)


def _ranks(row: Longs) -> Longs:
    """Number the rows from 0 without gaps."""
    (codes,) = codes_of(row)
    occurs = np.zeros(int(codes.max()) + 1, dtype=np.bool_)
    occurs[codes] = True
    return (np.cumsum(occurs) - 1)[codes]


def _on_one_axis(start: Longs, end: Longs, ranks: Longs) -> tuple[Longs, Longs]:
    """Set the rows one behind the other in time, so that events of two rows never meet."""
    n_rows = int(ranks.max()) + 1
    if n_rows == 1:
        return start, end
    low, high = int(start.min()), int(end.max())
    if (high - low + 1) * n_rows >= _ROOM:  # a time far off; the order of times is all that counts
        every, number = np.unique(np.concatenate([start, end]), return_inverse=True)
        (start, end), low, high = np.split(number, 2), 0, len(every)
    shift = ranks * (high - low + 1) - low
    return start + shift, end + shift


def _order(start: Longs, end: Longs, ranks: Longs, entered_in_order: bool) -> Longs | None:
    """Return the order of entering on the axis; None: the events are in it."""
    order = None
    if (start[1:] < start[:-1]).any():
        # numpy sorts 16-bit numbers by radix; what is left to do within the rows is then little
        top = int(ranks.max())
        order = np.argsort(ranks.astype(np.uint16) if top < 2**16 else ranks, kind="stable")
        by_row = start[order]
        if (by_row[1:] < by_row[:-1]).any():
            order = order[np.argsort(by_row, kind="stable")]
    if entered_in_order:
        return order
    ordered = start if order is None else start[order]
    return np.lexsort((-end, start)) if (ordered[1:] == ordered[:-1]).any() else order


def _nested(start: Longs, end: Longs, ranks: Longs) -> Nesting:
    """Nest events in the order of entering. Parents are looked for among the events that last."""
    lasts = end > start
    if lasts.all():
        return _nested_among(start, end, ranks)
    lasting, instants = np.flatnonzero(lasts), np.flatnonzero(~lasts)
    parent = np.empty(len(start), dtype=np.int64)
    parent[lasting], crosses = _nested_among(start[lasting], end[lasting], ranks[lasting])
    before = np.searchsorted(lasting, instants)
    parent[instants] = _last_reaching(end[lasting], before, end[instants])
    return Nesting(np.where(parent >= 0, lasting[parent], -1) if len(lasting) else parent, crosses)


def _nested_among(start: Longs, end: Longs, ranks: Longs) -> Nesting:
    parent = _last_running(start, end)
    crossing = end[parent] < end
    crossing &= parent >= 0  # of -1, the last one's end was looked at
    crosses = bool(crossing.any())
    if crosses:
        crossed = np.zeros(int(ranks.max()) + 1, dtype=np.bool_)
        crossed[ranks[crossing]] = True
        again = np.flatnonzero(crossed[ranks])
        parent[again] = _last_reaching(end, again, end[again])
    return Nesting(parent, crosses)


def _last_running(start: Longs, end: Longs) -> Longs:
    """Return the last event before each that still ran when it started, -1: none; for events of which none crosses another.

    The first event on a row that crosses out of another gets that one, which ends too early; what follows on that row may be
    wrong. Most parents are a few places away, and are found for all events at once; the others enclose much, and so are few.
    """
    n = len(start)
    back = np.zeros(n, dtype=np.uint8)
    for distance in range(min(_NEAR, n - 1), 0, -1):
        np.copyto(back[distance:], distance, where=end[:-distance] > start[distance:])
    far = np.flatnonzero(back == 0)
    enclosing = np.flatnonzero(end[: -_NEAR - 1] > start[_NEAR + 1 :])
    above = _last_running_among(start, end, enclosing, far)
    if above is None:
        return _by_depth(start, end)
    parent = np.arange(n)
    parent -= back
    parent[far] = above
    return parent


def _last_running_among(start: Longs, end: Longs, enclosing: Longs, far: Longs) -> Longs | None:
    """Return the last of the enclosing events that still ran when each of the far ones started, -1: none.

    Returns:
        None where that takes too many steps, as behind something deep.
    """
    if not len(enclosing):
        return np.full(len(far), -1, dtype=np.int64)
    around = _by_depth(start[enclosing], end[enclosing])
    until, since = np.append(end[enclosing], _FOREVER), start[far]  # the last place is for -1
    at = np.searchsorted(enclosing, far) - 1
    climbing = np.flatnonzero(until[at] <= since)
    for _ in range(_CLIMBS):
        if not len(climbing):
            return np.append(enclosing, -1)[at]
        at[climbing] = around[at[climbing]]
        climbing = climbing[until[at[climbing]] <= since[climbing]]
    return None


def _by_depth(start: Longs, end: Longs) -> Longs:
    """Return the same as `_last_running`, at the same cost however deep events stand in each other.

    An event's depth is how many started before it, less how many had ended by its start. Within a depth, the first child of a
    parent comes right behind it, and the others have the parent of the one before.
    """
    n = len(start)
    depth = np.arange(n) - np.searchsorted(np.sort(end), start, "right")
    by_depth = np.argsort(depth.astype(np.uint16) if n and int(depth.max()) < 2**16 else depth, kind="stable")
    before = np.concatenate([[-1], depth[:-1]])
    level = depth[by_depth]
    first_child = np.where(before[by_depth] == level - 1, np.arange(n), 0)
    above = by_depth[np.maximum.accumulate(first_child)] - 1
    above[level == 0] = -1
    parent = np.empty(n, dtype=np.int64)
    parent[by_depth] = above
    return parent


def _last_reaching(end: Longs, stop: Longs, wanted: Longs) -> Longs:
    """Return the last place before `stop` where `end` is at least `wanted`, -1: none; for many questions at once.

    A tree of maxima over 2, 4, 8, ... places is climbed to the left until a maximum reaches, and then descended to the right.

    Args:
        end: (n,) int64.
        stop: (m,) int64, 0 to n.
        wanted: (m,) int64.
    """
    levels = _maxima(end)
    found = np.full(len(stop), -1, dtype=np.int64)
    level_of = np.zeros(len(stop), dtype=np.int64)
    asking, block = np.arange(len(stop)), stop.copy()
    for level, maxima in enumerate(levels):
        odd = np.flatnonzero(block & 1)
        hit = odd[maxima[block[odd] - 1] >= wanted[asking[odd]]]
        found[asking[hit]], level_of[asking[hit]] = block[hit] - 1, level
        block >>= 1
        block[hit] = 0
        still = block > 0
        asking, block = asking[still], block[still]
    for level in range(len(levels) - 1, 0, -1):
        below = np.flatnonzero(level_of == level)
        right = 2 * found[below] + 1
        found[below] = right - (levels[level - 1][right] < wanted[below])
        level_of[below] -= 1
    return found


def _maxima(values: Longs) -> list[Longs]:
    """Return the maxima of 1, 2, 4, ... values, full blocks only."""
    levels = [values]
    while len(levels[-1]) > 1:
        last = levels[-1][: len(levels[-1]) // 2 * 2]
        levels.append(np.maximum(last[::2], last[1::2]))
    return levels
