"""Put the spans of one place on as few rows as keep them nested or apart."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from devprof.link.columns import Longs
from devprof.link.overlaps import crossings
from devprof.model import ResourceInfo

__all__ = ["cut_for_widening", "lanes_of", "name_extra_rows"]

_EXTRA_ROW_BASE = 2**30
"""First id of an added row: above any stream number, within the 32 bits that torch keeps."""


def cut_for_widening(start: Longs, end: Longs) -> tuple[Longs, Longs]:
    """Make room for the 1 ns that Kineto adds to both ends of a span.

    Two spans that touch, or are 1 ns apart, would overlap once they are widened. There the end is cut by 1 ns and, if they
    touch, the start too: what is written is then what was measured. Equal times are cut alike, so nested spans stay nested.
    A span shorter than 2 ns is left as it is; `lanes_of` moves it where it is in the way.

    Args:
        start: (n,) int64, ns, spans of one place.
        end: (n,) int64, ns, not before `start`.
    """
    long = end - start >= 2
    starts, ends = np.sort(start[long]), np.sort(end[long])
    # the nearest start at or after each end, and whether an end is exactly at each start
    following = np.append(starts, np.iinfo(np.int64).max)[np.searchsorted(starts, end)]
    cut_end = long & (following - end <= 1)
    same = np.append(ends, np.iinfo(np.int64).max)[np.searchsorted(ends, start)]
    cut_start = long & (same == start)
    return start + cut_start, end - cut_end


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
    open_ends: list[list[int]] = []
    for row, (begin, stop) in enumerate(zip(start.tolist(), end.tolist(), strict=True)):
        lanes[row] = _first_free(open_ends, begin, stop)
    return lanes


def _first_free(open_ends: list[list[int]], begin: int, stop: int) -> int:
    """Return the first lane where the interval is apart from, or within, what is open; open it there."""
    for lane, ends in enumerate(open_ends):
        while ends and ends[-1] <= begin:
            ends.pop()
        if not ends or stop <= ends[-1]:
            ends.append(stop)
            return lane
    open_ends.append([stop])
    return len(open_ends) - 1


def name_extra_rows(
    wanted: Sequence[tuple[int, int, int]], taken: set[tuple[int, int]]
) -> dict[tuple[int, int, int], ResourceInfo]:
    """Give each added row an id of its own and a name.

    Args:
        wanted: (device, resource, lane) of each added row, lane from 1.
        taken: (device, resource) pairs in use.
    """
    rows: dict[tuple[int, int, int], ResourceInfo] = {}
    for device, resource, lane in wanted:
        free = next(_free_ids(device, taken))
        taken.add((device, free))
        name = f"stream {resource} annotations {lane + 1}"
        rows[device, resource, lane] = ResourceInfo(free, device, name, sort_index=resource)
    return rows


def _free_ids(device: int, taken: set[tuple[int, int]]) -> Iterator[int]:
    return (free for free in itertools.count(_EXTRA_ROW_BASE) if (device, free) not in taken)
