"""What is left of chunks that are let go: ranges that are still open, sums, how far the gap reaches. Chunks in a file."""

from __future__ import annotations

import struct
from collections import deque
from dataclasses import dataclass
from typing import Any, cast

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

__all__ = ["MAX_OPEN", "Remains", "label_totals", "spilled"]

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
        columns = [_columns(block) for block in queue.blocks]
        latest = [int(starts.max()) for starts, _, _ in columns if len(starts)]
        if queue.memory:
            latest.append(int(np.frombuffer(bytes(queue.memory), np.int64)[::MEMORY_WORDS].max()))
        self.through_ticks = max([self.through_ticks, *latest])
        # counted here: when the chunk was full, its thread may still have been entering a range of it
        n_gone = sum(len(starts) for starts, _, _ in columns) + len(queue.memory) // (8 * MEMORY_WORDS)
        for block, (starts, ends, labels) in zip(queue.blocks, columns, strict=True):
            # what lasts longer than all that is gone is what later ranges are in
            lasting = (starts != OPEN) & ((ends == OPEN) | (ends > self.through_ticks))
            self._open += [_Open(queue, block, at) for at in np.flatnonzero(lasting).tolist()]
            n_gone -= int(np.count_nonzero(lasting))
            gone = (starts != OPEN) & ~lasting
            if self.totals is not None:
                label_totals(self.totals, queue.labels, labels[gone], (ends - starts)[gone])
        return n_gone + self._let_go_ended()

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


def _columns(block: Block) -> tuple[Longs, Longs, npt.NDArray[np.int32]]:
    """Return starts, ends and labels of a block that is sealed."""
    count = min(block.next, BLOCK_SIZE)
    starts, ends, labels = cast("tuple[memoryview, ...]", (block.starts, block.ends, block.labels))
    return (
        np.frombuffer(starts, np.int64, count),
        np.frombuffer(ends, np.int64, count),
        np.frombuffer(labels, np.int32, count),
    )


def _one_row(one: _Open) -> tuple[bytes, bytes, bytes, bytes]:
    block, at = one.block, one.at
    start, end, parent = (_long(number) for number in (block.starts[at], one.end, block.parents[at]))
    return start, end, parent, _int(block.labels[at])
