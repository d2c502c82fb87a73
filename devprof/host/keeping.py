"""`Keeper`: which chunks of a session with limits are kept, and what becomes of the others.

A chunk is a `Queue`: some blocks of one thread with everything that belongs to them, their texts too, so that nothing stays of
one that is let go. A thread fills one chunk after the other; the keeper gets each when it is full.
"""

from __future__ import annotations

import itertools
import logging
import threading
import weakref
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from devprof.host.gate import BLOCK_SIZE
from devprof.host.queues import OPEN, Block, Queue, ThreadQueues, seal_all
from devprof.model.reasons import LET_GO, OVER_LIMIT
from devprof.store.limits import Limits, WhenFull

if TYPE_CHECKING:
    from devprof.host.letting_go import Remains
    from devprof.store.totals import Totals

__all__ = ["Gone", "Keeper", "KeptQueues"]

log = logging.getLogger("devprof.host")

_MOST_BLOCKS = 16
"""Blocks in a chunk: letting it go stops its thread for a tenth of a millisecond."""
_MOST_ROW_BYTES = 1 << 18
"""Bytes of memory reports, inputs and sequence numbers in a chunk."""
_RANGE_BYTES = 28
_LABEL_BYTES = 200
_QUEUE_BYTES = 2048
_MEMORY_ROW_BYTES = 64


@dataclass(slots=True)
class _Chunk:
    """A full queue, what it comes to, and when the last of its events ended; None: that is not known, or some are open."""

    queue: Queue
    records: int
    size_bytes: int
    ended_ticks: int | None = None


@dataclass(frozen=True, slots=True)
class Gone:
    """What is known of events that are not kept.

    Attributes:
        dropped: how many, by reason.
        through_ticks: the latest start of an event that was let go, `OPEN` where none was.
        full_ticks: start of the first event for which there was no room; None: there was room for all.
        totals: sums over what was let go, of the owner's own; None: none are wanted.
    """

    dropped: Counter[str]
    through_ticks: int
    full_ticks: int | None
    totals: Totals | None


class _Life:
    """Held by a thread alone: gone when the thread is."""

    __slots__ = ("__weakref__", "key")

    def __init__(self, key: int) -> None:
        self.key = key


class Keeper:
    """The chunks of one session, of all threads. Usable from any thread.

    Attributes:
        lock: held while chunks are taken and let go. Reentrant: a signal handler may enter a range at any time.
        remains: what is left of chunks that were let go.
        notes: sentences for the reader.
    """

    def __init__(self, limits: Limits) -> None:
        """Keep nothing yet."""
        from devprof.host.letting_go import Remains  # numpy is loaded where limits are asked for, not for every range

        self.lock = threading.RLock()
        self.remains: Remains = Remains(with_totals=limits.when_full is WhenFull.TOTALS)
        self.notes: list[str] = []
        self._limits = limits
        self._dropped: Counter[str] = Counter()
        self._full_ticks: int | None = None
        self._keys = itertools.count()
        self._lives: dict[int, weakref.ref[_Life]] = {}
        self._dead: deque[int] = deque()
        self._current: dict[int, Queue] = {}
        self._chunks: deque[_Chunk] = deque()
        self._n_spilled = 0  # chunks, from the first on
        self._records = self._size_bytes = 0  # in memory
        self._spill: object = None

    # -- for the threads that record ----------------------------------------------------------------------------------

    def begin(self, queue: Queue) -> _Life:
        """Take the first chunk of a thread. The thread holds what is returned: when that is gone, so is the thread."""
        life = _Life(next(self._keys))
        key, dead = life.key, self._dead
        with self.lock:
            self._lives[key] = weakref.ref(life, lambda _: dead.append(key))  # no lock there: it may come at any moment
            self._current[key] = queue
            self._take_of_the_dead()
        return life

    def is_enough(self, queue: Queue) -> bool:
        """Say whether a queue, whose last block is full, is a whole chunk."""
        limits, blocks = self._limits, _MOST_BLOCKS
        # what threads fill is beside what is kept: all of them together take a quarter of the limit
        if limits.max_records is not None:
            blocks = min(blocks, limits.max_records // (4 * BLOCK_SIZE * max(len(self._current), 1)))
        if limits.max_bytes is not None:
            blocks = min(blocks, limits.max_bytes // (4 * _RANGE_BYTES * BLOCK_SIZE * max(len(self._current), 1)))
        return len(queue.blocks) >= max(blocks, 1) or _row_bytes(queue) >= _MOST_ROW_BYTES

    def next_chunk(self, life: _Life, queue: Queue) -> None:
        """Take a thread's next chunk, and retire the one before."""
        with self.lock:
            before, self._current[life.key] = self._current.get(life.key), queue
            if before is not None and before is not queue:
                self._retire(before, is_over=False)
            self._take_of_the_dead()

    # -- for whoever wants to see -------------------------------------------------------------------------------------

    def queues(self) -> list[Queue]:
        """Return the chunks that are kept, those of each thread in their order; the last of each may still be filled."""
        with self.lock:
            self._take_of_the_dead()
            return [*(chunk.queue for chunk in self._chunks), *self._current.values()]

    def queues_since(self, ticks: int) -> tuple[list[Queue], int]:
        """Return the chunks with events that had not ended before a time, and how many events are in the others."""
        from devprof.host.letting_go import ended_ticks

        with self.lock:
            self._take_of_the_dead()
            late, early = [], 0
            for chunk in self._chunks:
                if chunk.ended_ticks is None:
                    chunk.ended_ticks = ended_ticks(chunk.queue)
                if chunk.ended_ticks is not None and chunk.ended_ticks < ticks:
                    early += chunk.records
                else:
                    late.append(chunk.queue)
            return [*late, *self._current.values()], early

    def gone(self) -> Gone:
        """Return what is known of the others."""
        with self.lock:
            remains = self.remains
            totals = None if remains.totals is None else remains.totals.copied()
            return Gone(Counter(self._dropped), remains.through_ticks, self._full_ticks, totals)

    def close(self) -> None:
        """Forget everything; exits that come from now on are late."""
        with self.lock:
            self.remains.close()
            self._chunks.clear()
            self._current.clear()
            self._lives.clear()

    # -- inside -------------------------------------------------------------------------------------------------------

    def _take_of_the_dead(self) -> None:
        while self._dead:
            key = self._dead.popleft()
            self._lives.pop(key, None)
            queue = self._current.pop(key, None)
            if queue is not None:
                self._retire(queue, is_over=True)

    def _retire(self, queue: Queue, *, is_over: bool) -> None:
        seal_all(queue, is_over=is_over)
        chunk = _Chunk(queue, *_measured(queue))
        if not chunk.records:
            return
        if self._limits.when_full is WhenFull.STOP and self._is_too_much_with(chunk):
            self._leave_out(chunk)
            return
        self._chunks.append(chunk)
        self._records += chunk.records
        self._size_bytes += chunk.size_bytes
        if self._limits.when_full is WhenFull.SPILL:
            self._spill_oldest()
        elif self._limits.when_full is not WhenFull.STOP:
            self._let_go_oldest()

    def _is_too_much_with(self, chunk: _Chunk) -> bool:
        return self._full_ticks is not None or self._limits.exceeded(
            self._records + chunk.records, self._size_bytes + chunk.size_bytes
        )

    def _leave_out(self, chunk: _Chunk) -> None:
        self._dropped[OVER_LIMIT] += chunk.records
        known = [self._full_ticks, *(int(block.starts[0]) for block in chunk.queue.blocks[:1]), chunk.queue.clock()]
        self._full_ticks = min(ticks for ticks in known if ticks is not None and ticks != OPEN)
        empty(chunk.queue)

    def _let_go_oldest(self) -> None:
        while self._chunks and self._limits.exceeded(self._records, self._size_bytes):
            chunk = self._chunks.popleft()
            self._records -= chunk.records
            self._size_bytes -= chunk.size_bytes
            self._dropped[LET_GO] += self.remains.take(chunk.queue)
            empty(chunk.queue)

    def _spill_oldest(self) -> None:
        from devprof.host.letting_go import spilled
        from devprof.store.spill import SpillFile

        while self._n_spilled < len(self._chunks) and self._limits.exceeded(self._records, self._size_bytes):
            chunk = self._chunks[self._n_spilled]
            try:
                if not isinstance(self._spill, SpillFile):
                    self._spill = SpillFile(self._limits.spill_dir)
                spilled(chunk.queue, self._spill)
            except OSError as error:
                self._disk_failed(error)
                return
            self._n_spilled += 1
            self._records -= chunk.records
            self._size_bytes -= chunk.size_bytes

    def _disk_failed(self, error: OSError) -> None:
        """Go on as with `WhenFull.STOP`: what is kept stays."""
        note = f"The host's events could not be spilled to a file ({error}); further ones were left out."
        log.warning("%s", note)
        self.notes.append(note)
        self._limits = Limits(self._limits.max_records, self._limits.max_bytes)


class KeptQueues(ThreadQueues):
    """As `ThreadQueues`, with a keeper: after some blocks a thread goes on with a queue of its own again."""

    __slots__ = ("_keeper",)

    life: _Life | None = None

    def __init__(self, clock: Callable[[], int], record_shapes: bool, keeper: Keeper, first_id: int) -> None:
        self._keeper = keeper
        super().__init__(clock, record_shapes, [], first_id)

    def here(self) -> Queue:
        """Return this thread's queue; a new one where the memory reports of the one before are many."""
        queue = self.queue
        if queue is None:
            queue = self.queue = Queue(self._clock, self._record_shapes)
            self.life = self._keeper.begin(queue)
        elif len(queue.memory) >= _MOST_ROW_BYTES:
            queue = self._next_queue()
            self.block = queue.grow()
        return queue

    def next_block(self) -> Block:
        """Return this thread's next block, in its queue or in a new one."""
        while True:
            queue = self.here()
            if queue.blocks and queue.blocks[-1].next >= BLOCK_SIZE and self._keeper.is_enough(queue):
                queue = self._next_queue()
            block = queue.grow()
            if queue is self.queue:
                self.block = block
                return block
            # a signal handler has begun another chunk meanwhile, and this block stays empty

    def _next_queue(self) -> Queue:
        queue = self.queue = Queue(self._clock, self._record_shapes)
        if self.life is None:  # a signal handler's, in the middle of making the first
            self.life = self._keeper.begin(queue)
        else:
            self._keeper.next_chunk(self.life, queue)
        return queue


def empty(queue: Queue) -> None:
    """Forget what is in a chunk. Ranges of it that are open still hold their block."""
    with queue.lock:
        queue.blocks = []
        queue.sequences, queue.inputs = bytearray(), bytearray()
        queue.elsewhere, queue.memory = bytearray(), bytearray()


def _measured(queue: Queue) -> tuple[int, int]:
    """Return how many events a chunk holds, and about how many bytes they take."""
    ranges = sum(min(block.next, BLOCK_SIZE) for block in queue.blocks)
    memory = len(queue.memory) // _MEMORY_ROW_BYTES
    labels = sum(_LABEL_BYTES + len(key if isinstance(key, str) else key[0]) for key in queue.labels.numbers)
    return ranges + memory, _QUEUE_BYTES + _RANGE_BYTES * ranges + _row_bytes(queue) + labels


def _row_bytes(queue: Queue) -> int:
    return len(queue.sequences) + len(queue.inputs) + len(queue.elsewhere) + len(queue.memory)
