"""Slices on one row that run into each other: on a stream that works in order there are none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from devprof.link.columns import WORK, Bools, Longs, bounds_of, classes_of, codes_of, longs, split
from devprof.model import ActivityBatch

__all__ = ["RowOverlaps", "crossings", "overlapping_rows", "places_of", "rows_by_place"]


@dataclass(frozen=True, slots=True, eq=False)
class RowOverlaps:
    """Device work that shares its row (device and resource) with other work at the same time.

    Attributes:
        overrun: per batch, (n,) bool: work that still ran when the next one on its row started.
        crossing: per batch, (n,) bool: work that started inside another on its row and ended after it; a viewer cannot nest it.
        n_overrun: how many overrun.
        n_crossing: how many cross.
    """

    overrun: tuple[Bools, ...]
    crossing: tuple[Bools, ...]
    n_overrun: int
    n_crossing: int


def overlapping_rows(batches: Sequence[ActivityBatch]) -> RowOverlaps:
    """Find device work that overlaps on its row.

    Work that merely touches (one ends when the next starts) does not overlap; a negative duration counts as none.

    Args:
        batches: all batches of one plugin in one session, on one clock.
    """
    bounds = bounds_of(batches)
    work = np.flatnonzero(classes_of(batches) == WORK)
    start, end = (longs(batches, column)[work] for column in ("start", "end"))
    end = np.maximum(start, end)
    overrun, crossing = (np.zeros(bounds[-1], dtype=np.bool_) for _ in range(2))
    device, resource = (longs(batches, column)[work] for column in ("device", "resource"))
    for rows in rows_by_place(places_of(device, resource)):
        order = rows[_in_time(start[rows], end[rows])]
        still = end[order[:-1]] > start[order[1:]]
        if still.any():
            overrun[work[order[:-1]]] = still
            nested = rows[np.lexsort((-end[rows], start[rows]))]
            crossing[work[nested]] = crossings(start[nested], end[nested])
    n_overrun, n_crossing = int(np.count_nonzero(overrun)), int(np.count_nonzero(crossing))
    return RowOverlaps(tuple(split(overrun, bounds)), tuple(split(crossing, bounds)), n_overrun, n_crossing)


def places_of(device: Longs, resource: Longs) -> Longs:
    """Number the (device, resource) pairs: (n,) int64 each, equal codes for equal pairs."""
    device_codes, resource_codes = codes_of(device)[0], codes_of(resource)[0]
    if len(device_codes) == 0:
        return device_codes
    return device_codes * (int(resource_codes.max()) + 1) + resource_codes


def rows_by_place(places: Longs) -> Iterator[Longs]:
    """Yield the rows of each place, in the order of their numbers."""
    if len(places) == 0:
        return
    if (places == places[0]).all():
        yield np.arange(len(places))
        return
    top = int(places.max())
    # numpy sorts 16-bit numbers by radix, ten times faster than wide ones
    narrow = places.astype(np.uint16) if top < 2**16 else places
    order = np.argsort(narrow, kind="stable")
    ends = np.flatnonzero(np.diff(places[order])) + 1
    yield from np.split(order, ends)


def crossings(start: Longs, end: Longs) -> Bools:
    """Say which intervals of one row start inside an earlier one and end after it.

    Interval j crosses an earlier one if that one's end lies between j's start and j's end. So: put the ends in order, and
    ask whether among the ends strictly inside j one belongs to an interval before j. That is the least position over a range,
    which a table of ranges of 1, 2, 4, ... answers for all j at once.

    Args:
        start: (n,) int64, ascending; of equal starts the longest first.
        end: (n,) int64, not before `start`.

    Returns:
        (n,) bool.
    """
    running = np.maximum.accumulate(end)
    crossing = np.zeros(len(start), dtype=np.bool_)
    # only inside another interval is there anything to ask
    asked = np.flatnonzero(np.concatenate([[False], start[1:] < running[:-1]]))
    if len(asked) == 0:
        return crossing
    by_end = np.argsort(end, kind="stable")
    ends = end[by_end]
    begin = np.searchsorted(ends, start[asked], "right")
    stop = np.searchsorted(ends, end[asked], "left")
    some = stop > begin
    asked, begin, stop = asked[some], begin[some], stop[some]
    if len(asked):
        crossing[asked] = _least_in_ranges(by_end, begin, stop) < asked
    return crossing


def _least_in_ranges(values: Longs, begin: Longs, stop: Longs) -> Longs:
    """Return the least of ``values[begin:stop]`` for many ranges that are not empty."""
    level_of = np.frexp(stop - begin)[1] - 1  # the greatest power of two within the range
    least = np.empty(len(begin), dtype=np.int64)
    table, level = values, 0
    while True:
        here = np.flatnonzero(level_of == level)
        least[here] = np.minimum(table[begin[here]], table[stop[here] - (1 << level)])
        if level >= int(level_of.max()):
            return least
        table = np.minimum(table[: -(1 << level)], table[1 << level :])
        level += 1


def _in_time(start: Longs, end: Longs) -> Longs:
    """Order intervals by start, of equal starts the shortest first, so that an instant touches what starts with it."""
    if (start[1:] > start[:-1]).all():
        return np.arange(len(start))
    return np.lexsort((end, start))
