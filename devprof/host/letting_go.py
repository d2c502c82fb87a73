"""What is left of chunks that are let go: ranges that are still open, sums, how far the gap reaches. Chunks in a file."""

from __future__ import annotations

import struct
from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from devprof.host.columns import Closed
from devprof.host.gate import BLOCK_SIZE
from devprof.host.memory import MEMORY_WORDS
from devprof.host.queues import OPEN, Block, Numbered, Queue, seal_all
from devprof.host.scopes import RecordScope
from devprof.model import ActivityType
from devprof.store.spill import SpillFile
from devprof.store.totals import Totals

__all__ = ["MAX_OPEN", "Remains", "ended_ticks", "label_totals", "spilled"]

Longs = npt.NDArray[np.int64]

MAX_OPEN = 4096
"""Ranges that are remembered although their chunk is gone, because others are in them; the oldest are let go then."""

_long, _int = struct.Struct("q").pack, struct.Struct("i").pack

_USER = int(ActivityType.USER_ANNOTATION)
_OP = int(ActivityType.CPU_OP)


@dataclass(slots=True)
class _Open:
    """A range of a chunk that was let go, which lasted longer than everything that is gone."""

    queue: Queue
    block: Block
    at: int

    @property
    def end(self) -> int:
        ends = self.block.ends
        return OPEN if ends is None else int(ends[self.at])


class Remains:
    """What is left of the chunks that were let go. The keeper's lock is held.

    Attributes:
        through_ticks: the latest start of an event that is gone, `OPEN` where none is: up to there, what is kept has gaps.
        totals: sums over ranges that are gone, in ticks, where they are wanted.
    """

    def __init__(self, *, with_totals: bool) -> None:
        self.through_ticks = OPEN
        self.totals = Totals() if with_totals else None
        self._open: deque[_Open] = deque()

    def take(self, queue: Queue) -> int:
        """Take over what is to be remembered of a chunk; return how many events are gone with it, and before."""
        seal_all(queue, is_over=False)
        counts = [min(block.next, BLOCK_SIZE) for block in queue.blocks]
        starts = _joined([block.starts for block in queue.blocks], counts, np.int64)
        ends = _joined([block.ends for block in queue.blocks], counts, np.int64)
        self._see(starts, queue)
        # what lasts longer than all that is gone is what later ranges are in; one without a start is no range yet
        lasting = np.flatnonzero((ends > self.through_ticks) | ((ends == OPEN) & (starts != OPEN)))
        if len(lasting):
            first = np.cumsum([0, *counts])
            for at in lasting.tolist():
                number = int(np.searchsorted(first, at, side="right")) - 1
                self._open.append(_Open(queue, queue.blocks[number], at - int(first[number])))
        if self.totals is not None:
            labels = _joined([block.labels for block in queue.blocks], counts, np.int32)
            gone = starts != OPEN
            gone[lasting] = False
            label_totals(self.totals, queue.labels, labels[gone], (ends - starts)[gone])
        # counted here: when the chunk was full, its thread may still have been entering a range of it
        n_memory = len(queue.memory) // (8 * MEMORY_WORDS)
        return len(starts) + n_memory - len(lasting) + self._let_go_ended()

    def _see(self, starts: Longs, queue: Queue) -> None:
        """Know how far the gap reaches."""
        if len(starts):
            self.through_ticks = max(self.through_ticks, int(starts.max()))
        if queue.memory:
            ticks = np.frombuffer(bytes(queue.memory), np.int64)[::MEMORY_WORDS]
            self.through_ticks = max(self.through_ticks, int(ticks.max()))

    def open_ranges(self) -> list[tuple[Queue, list[Closed]]]:
        """Return the ranges that are remembered, each thread's in the order of entering, as queues and what is in them."""
        found: dict[int, tuple[Queue, list[Closed]]] = {}
        for one in list(self._open):
            if one.block.ends is not None:
                _, closed = found.setdefault(id(one.queue), (one.queue, []))
                closed.append((one.block.first_id + one.at, 1, _one_row(one)))
        return list(found.values())

    def close(self) -> None:
        """Take the ends, so that late exits are noticed."""
        for one in self._open:
            one.block.ends = None
        self._open.clear()

    def _let_go_ended(self) -> int:
        """Forget ranges that ended before all that is kept, and the oldest where there are too many."""
        stay: deque[_Open] = deque()
        gone = 0
        too_many = len(self._open) - MAX_OPEN
        for number, one in enumerate(self._open):
            end = one.end
            if (end != OPEN and end <= self.through_ticks) or number < too_many:
                gone += 1
                if end != OPEN and self.totals is not None:
                    label = np.array([one.block.labels[one.at]], np.int32)
                    duration = np.array([end - int(one.block.starts[one.at])], np.int64)
                    label_totals(self.totals, one.queue.labels, label, duration)
            else:
                stay.append(one)
        self._open = stay
        return gone


def ended_ticks(queue: Queue) -> int | None:
    """Return when the last event of a full chunk ended; None where a range is open."""
    seal_all(queue, is_over=False)
    counts = [min(block.next, BLOCK_SIZE) for block in queue.blocks]
    ends = _joined([block.ends for block in queue.blocks], counts, np.int64)
    if len(ends) and ends.min() == OPEN:
        return None
    memory = np.frombuffer(bytes(queue.memory), np.int64)[::MEMORY_WORDS]
    return max(int(ends.max(initial=0)), int(memory.max(initial=0)))


def label_totals(totals: Totals, labels: Numbered, label: npt.NDArray[np.int32], duration: Longs) -> None:
    """Add ranges to sums.

    Args:
        totals: the sums, in ticks.
        labels: of the ranges' queue.
        label: (n,) number of each range's label.
        duration: (n,) ticks.
    """
    keys: dict[int, Any] = {number: key for key, number in list(labels.numbers.items())}
    size = max(keys, default=-1) + 1
    names, kinds = [""] * size, np.full(size, _OP, np.uint8)
    for number, key in keys.items():
        is_text = isinstance(key, str)
        names[number] = key if is_text else key[0]
        if is_text or key[1] == RecordScope.USER_SCOPE:
            kinds[number] = _USER
    totals.add(names, label, kinds[label], duration)


def spilled(queue: Queue, file: SpillFile) -> None:
    """Move a chunk's columns and rows into a file; its ranges may still be left there.

    Raises:
        OSError: the disk is full; nothing has changed.
    """
    seal_all(queue, is_over=False)
    with queue.lock:
        parts: list[Any] = []
        for block in queue.blocks:
            parts += [block.starts, block.ends, block.parents, block.labels]
        rows = [queue.sequences, queue.inputs, queue.memory]
        views = iter(file.put([*parts, *rows]))
        for block in queue.blocks:
            before = block.ends
            block.starts, block.ends, block.parents = (next(views).cast("q") for _ in range(3))
            block.labels = next(views).cast("i")
            _bring_ends(before, block.ends)
        changed: Any = queue
        # nothing is appended to these any more: the chunk is full
        changed.sequences, changed.inputs, changed.memory = views


def _bring_ends(before: Any, now: Any) -> None:
    """Bring over the ends of ranges that were left while the file was written."""
    old, new = np.frombuffer(before, np.int64), np.frombuffer(now, np.int64)
    late = (new == OPEN) & (old != OPEN)
    new[late] = old[late]


def _joined(columns: list[Any], counts: list[int], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return one column of blocks that are sealed, the first `count` of each."""
    parts = [np.frombuffer(column, dtype, count) for column, count in zip(columns, counts, strict=True)]
    return np.concatenate(parts) if parts else np.zeros(0, dtype)


def _one_row(one: _Open) -> tuple[bytes, bytes, bytes, bytes]:
    block, at = one.block, one.at
    start, end, parent = (_long(number) for number in (block.starts[at], one.end, block.parents[at]))
    return start, end, parent, _int(block.labels[at])
