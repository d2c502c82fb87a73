"""Arrows: from a launch to its work, and those that a plugin drew itself.

Kineto's rules (libkineto/src/output_json.cpp, torch/csrc/profiler/collection.cpp): both ends carry one key; a key has one
start; the start of an arrow to a device is on the host's record, never on the device's; an end is inside its slice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from devprof.link.columns import WORK, Bools, Longs, codes_of, longs, stitch
from devprof.link.join import LaunchJoin
from devprof.model import ActivityBatch, kLinkAsyncCpuGpu

__all__ = ["Arrows", "draw_arrows"]


@dataclass(frozen=True, slots=True, eq=False)
class Arrows:
    """Ends of arrows, per record.

    Attributes:
        flow_id: (n,) int64, 0: none.
        flow_type: (n,) uint8, `kLinkFwdBwd` or `kLinkAsyncCpuGpu`.
        flow_start: (n,) uint8, 1 where the arrow leaves.
        next_id: first number that is still free.
        n_duplicate_starts: starts of a plugin's arrow that were left out, because an earlier one holds its key.
        n_loose_ends: ends of a plugin's arrows that were left out, because the other end is missing.
    """

    flow_id: Longs
    flow_type: npt.NDArray[np.uint8]
    flow_start: npt.NDArray[np.uint8]
    next_id: int
    n_duplicate_starts: int = 0
    n_loose_ends: int = 0


def draw_arrows(batches: Sequence[ActivityBatch], join: LaunchJoin, number: Longs, next_id: int) -> Arrows:
    """Give every record its end of an arrow, or none.

    A launch with device work starts an arrow that ends on each of that work's records; waits have none. A record for which
    the plugin set a flow takes part in that flow only.

    Args:
        batches: the batches to link.
        join: their join.
        number: (n,) int64, number of each record; an arrow from a launch takes the launch's.
        next_id: first number that is free; arrows of the plugin's own are numbered from there.
    """
    given = longs(batches, "flow_id")
    arrows = Arrows(
        np.zeros(len(join), dtype=np.int64),
        np.zeros(len(join), dtype=np.uint8),
        np.zeros(len(join), dtype=np.uint8),
        next_id,
    )
    explicit = np.flatnonzero(given)
    ends = (join.launch >= 0) & (join.classes == WORK)
    starts = join.has_work
    if len(explicit):
        ends[explicit] = False
        ends &= given[join.launch] == 0
        starts = np.zeros(len(join), dtype=np.bool_)
        starts[join.launch[ends]] = True
    touched = ends | starts
    np.multiply(number, touched, out=arrows.flow_id)
    np.multiply(touched, np.uint8(kLinkAsyncCpuGpu), out=arrows.flow_type)
    arrows.flow_start[:] = starts
    return _draw_explicit(batches, join, explicit, arrows) if len(explicit) else arrows


def _draw_explicit(batches: Sequence[ActivityBatch], join: LaunchJoin, rows: Longs, arrows: Arrows) -> Arrows:
    kind = longs(batches, "flow_type")[rows].copy()
    kind[kind == 0] = kLinkAsyncCpuGpu
    is_start = stitch(batches, "flow_start")[rows] != 0
    (key,) = codes_of(longs(batches, "flow_id")[rows])
    key = key * 256 + kind
    start_of, n_duplicates = _starts(batches, join, rows, key, is_start)
    drawn = start_of >= 0
    (codes,) = codes_of(start_of[drawn])
    # numbered without gaps, so that the numbers of a session stay within int32
    occurs = np.zeros(int(codes.max()) + 1 if len(codes) else 0, dtype=np.bool_)
    occurs[codes] = True
    rank = np.cumsum(occurs) - 1
    kept = rows[drawn]
    arrows.flow_id[kept] = arrows.next_id + rank[codes]
    arrows.flow_type[kept] = kind[drawn]
    arrows.flow_start[kept] = is_start[drawn]
    n_loose = int(np.count_nonzero(~drawn)) - n_duplicates
    next_id = arrows.next_id + int(np.count_nonzero(occurs))
    return Arrows(arrows.flow_id, arrows.flow_type, arrows.flow_start, next_id, n_duplicates, n_loose)


def _starts(
    batches: Sequence[ActivityBatch], join: LaunchJoin, rows: Longs, key: Longs, is_start: Bools
) -> tuple[Longs, int]:
    """Return, for each explicit end, the position of its arrow's start in `rows` or -1, and the number of duplicate starts.

    A plugin may use a key again later (a counter that wraps, an id per queue), so a key is not one arrow. An end belongs to
    the start on its own launch, if that has the same key. Of the rest, an arrow begins at the first start, and again at each
    start that follows an end; ends belong to the arrow that was begun last.
    """
    position = np.full(len(join), -1, dtype=np.int64)
    position[rows] = np.arange(len(rows))
    launch = join.launch[rows]
    start_of = np.where(is_start | (launch < 0), -1, position[launch])
    own = start_of >= 0
    own[own] = is_start[start_of[own]] & (key[start_of[own]] == key[own])
    start_of[~own] = -1
    # what the launch does not decide, time does
    taken = np.zeros(len(rows), dtype=np.bool_)
    taken[start_of[own]] = True
    rest = np.flatnonzero(~own & ~taken)
    n_duplicates = _by_time(longs(batches, "start")[rows[rest]], key[rest], is_start[rest], rest, start_of)
    has_end = np.zeros(len(rows), dtype=np.bool_)
    has_end[start_of[(start_of >= 0) & ~is_start]] = True
    start_of[is_start] = np.where(has_end[is_start], np.flatnonzero(is_start), -1)
    return start_of, n_duplicates


def _by_time(start_ns: Longs, key: Longs, is_start: Bools, rest: Longs, start_of: Longs) -> int:
    """Attach ends to starts of their key in the order of time; write to `start_of`, return the number of duplicates."""
    if len(rest) == 0:
        return 0
    order = np.lexsort((~is_start, start_ns, key))
    key, is_start = key[order], is_start[order]
    same_key = np.concatenate([[False], key[1:] == key[:-1]])
    after_start = np.concatenate([[False], is_start[:-1]]) & same_key
    begins = is_start & ~after_start
    place = np.arange(len(order))
    key_begin = np.maximum.accumulate(np.where(same_key, 0, place))
    arrow = np.maximum.accumulate(np.where(begins, place, -1))
    # an end before the first start of its key is skewed, and belongs to that start
    following = np.minimum.accumulate(np.where(begins, place, len(order))[::-1])[::-1]
    arrow = np.where(arrow >= key_begin, arrow, following)
    lost = arrow == len(order)
    lost[~lost] = key[arrow[~lost]] != key[~lost]
    ends = ~is_start & ~lost
    start_of[rest[order[ends]]] = rest[order[arrow[ends]]]
    return _duplicates(is_start, begins, arrow, ends)


def _duplicates(is_start: Bools, begins: Bools, arrow: Longs, ends: Bools) -> int:
    has_end = np.zeros(len(arrow), dtype=np.bool_)
    has_end[arrow[ends]] = True
    more = is_start & ~begins
    return int(np.count_nonzero(has_end[arrow[more]]))
