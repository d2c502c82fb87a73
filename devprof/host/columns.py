"""From blocks and packed rows to columns. No Python object is made per range."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from devprof.host.gate import BLOCK_SIZE
from devprof.host.queues import OPEN, Block, BlockNow, Queue, pack_columns

__all__ = ["Closed", "Found", "Longs", "Lookup", "RangeColumns", "close", "copied", "gathered_rows", "range_columns"]

Longs = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class RangeColumns:
    """Every range of a session, thread by thread, each thread's in the order of entering. ``n`` ranges, ``b`` blocks.

    Attributes:
        start_ticks, end_ticks: (n,) int64; an end may be `OPEN`.
        parent_id: (n,) int64, 0: none.
        label: (n,) int32, number of the label in its queue.
        queue: (n,) int32, whose queue it is in.
        id: (n,) int64.
        half_entered: how many were being entered when recording stopped; they are left out.
    """

    start_ticks: Longs
    end_ticks: Longs
    parent_id: Longs
    label: npt.NDArray[np.int32]
    queue: npt.NDArray[np.int32]
    id: Longs
    half_entered: int


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """Rows of ids that were looked up: `known` says which were found (bool), `rows` where."""

    known: npt.NDArray[np.bool_]
    rows: npt.NDArray[np.int64]


Packed = bytes | bytearray | memoryview
Closed = tuple[int, int, tuple[Packed, Packed, Packed, Packed]]
"""First id, number of ranges, and packed columns of a block."""


def close(queue: Queue) -> list[Closed]:
    """Take the blocks from the queue and their ends from the blocks, so that late exits are noticed; return what is in them."""
    closed = []
    with queue.lock:
        blocks, queue.blocks = queue.blocks, []  # a range that is left open for long must not keep them all
        for block in blocks:
            ends, block.ends = block.ends, None
            count = min(block.next, BLOCK_SIZE)
            if ends is not None and count:
                closed.append((block.first_id, count, _packed(block, ends)))
    return closed


def copied(blocks: Sequence[BlockNow], since_ticks: int) -> tuple[list[Closed], int]:
    """Return what is in blocks of a session that goes on, and how many ranges were left out.

    Args:
        blocks: the blocks.
        since_ticks: full blocks whose ranges all ended before are left out.
    """
    found: list[Closed] = []
    left_out = 0
    for block, packed in blocks:
        count = min(block.next, BLOCK_SIZE)
        if packed is not None:
            found.append((block.first_id, len(packed[0]) // 8, packed))
            continue
        ends = block.ends
        if ends is None or not count:
            continue
        ended = np.frombuffer(ends, np.int64, count)
        if ended.min() > OPEN and ended.max() < since_ticks:
            left_out += count
            continue
        starts, _, parents, labels = _packed(block, ends)
        found.append((block.first_id, count, (starts, ended.tobytes(), parents, labels)))
    return found, left_out


def _packed(block: Block, ends: Any) -> tuple[Packed, Packed, Packed, Packed]:
    if isinstance(ends, list):
        return pack_columns(block, ends)
    return block.starts, ends, block.parents, block.labels  # type: ignore[return-value]  # sealed, with the ends


def range_columns(queues: Sequence[Sequence[Closed]]) -> RangeColumns:
    """Put the blocks of all queues one after the other."""
    blocks = [(number, *block) for number, blocks in enumerate(queues) for block in blocks]
    counts = np.array([count for _, _, count, _ in blocks], dtype=np.int64)
    first = np.array([first_id for _, first_id, _, _ in blocks], dtype=np.int64)
    owner = np.array([number for number, *_ in blocks], dtype=np.int32)
    starts, ends, parents = (
        _joined(((columns[k], count) for _, _, count, columns in blocks), np.int64) for k in range(3)
    )
    labels = _joined(((columns[3], count) for _, _, count, columns in blocks), np.int32)
    place = np.arange(len(starts), dtype=np.int64) - np.repeat(np.cumsum(counts) - counts, counts)
    columns = RangeColumns(
        starts, ends, parents, labels, np.repeat(owner, counts), np.repeat(first, counts) + place, half_entered=0
    )
    return _without_half_entered(columns)


def _joined(parts: Iterable[tuple[Packed, int]], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    arrays = [np.frombuffer(packed, dtype=dtype, count=count) for packed, count in parts]
    return np.concatenate(arrays) if arrays else np.zeros(0, dtype=dtype)


def _without_half_entered(columns: RangeColumns) -> RangeColumns:
    entered = columns.start_ticks != OPEN
    missing = len(entered) - int(np.count_nonzero(entered))
    if not missing:
        return columns
    return RangeColumns(
        columns.start_ticks[entered],
        columns.end_ticks[entered],
        columns.parent_id[entered],
        columns.label[entered],
        columns.queue[entered],
        columns.id[entered],
        missing,
    )


def gathered_rows(packed: Iterable[bytearray], width: int) -> tuple[Longs, npt.NDArray[np.int32]]:
    """Return the rows of all queues, shape (m, width) int64, and (m,) int32: whose they are.

    Args:
        packed: the rows of each queue.
        width: int64 per row.
    """
    # copies: a thread that is late may still append to its bytearray, which numpy's view would forbid
    parts = [np.frombuffer(bytes(rows), dtype=np.int64).reshape(-1, width) for rows in packed]
    owner = np.repeat(np.arange(len(parts), dtype=np.int32), [len(part) for part in parts])
    return np.concatenate(parts) if parts else np.zeros((0, width), dtype=np.int64), owner


class Lookup:
    """Finds the rows of range ids. Ids of one block follow each other, so only their starts are sorted."""

    def __init__(self, id: Longs) -> None:
        self._id = id
        is_first = np.ones(len(id), dtype=np.bool_)
        is_first[1:] = np.diff(id) != 1
        self._rows = np.flatnonzero(is_first)
        order = np.argsort(id[self._rows], kind="stable")
        self._rows = self._rows[order]
        self._firsts = id[self._rows]

    def find(self, wanted: Longs) -> Found:
        """Return where each id is."""
        if not len(self._firsts):
            return Found(np.zeros(len(wanted), dtype=np.bool_), np.zeros(len(wanted), dtype=np.int64))
        run = np.maximum(np.searchsorted(self._firsts, wanted, side="right") - 1, 0)
        rows = np.clip(self._rows[run] + (wanted - self._firsts[run]), 0, len(self._id) - 1)
        return Found(self._id[rows] == wanted, rows)
