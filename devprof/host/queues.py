"""Where a thread keeps what it records: blocks of ranges, and packed rows of everything that only some ranges have.

A block's columns are lists while its thread fills it (a list takes a number faster than an array does) and packed numbers once
it is full, so that no Python object is kept per range.
"""

from __future__ import annotations

import itertools
import struct
import threading
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from devprof.host.gate import BLOCK_SIZE, next_ids
from devprof.host.signatures import Signatures

__all__ = ["OPEN", "Block", "BlockNow", "Numbered", "Queue", "ThreadQueues", "pack_columns", "seal_all"]

OPEN = -1
"""In a block: a time that has not come."""

Column = list[int] | memoryview  # of int64 or int32

_longs = struct.Struct(f"{BLOCK_SIZE}q").pack
_ints = struct.Struct(f"{BLOCK_SIZE}i").pack


class Block:
    """Ranges of one thread, in the order of entering; a range's id is `first_id` plus its place.

    Attributes:
        next: the first free place.
        first_id: id of the range in place 0.
        starts, ends: ticks, `OPEN` where there are none yet; `ends` is None once the session is over.
        parents: id of the range around each, 0: none.
        labels: what each is called, a number of `names`.
        names: the queue's numbers of labels.
        clock: reads the session's ticks.
        queue: whose block it is.
    """

    __slots__ = ("clock", "ends", "first_id", "labels", "names", "next", "parents", "queue", "starts")

    def __init__(self, queue: Queue) -> None:
        self.next = 0
        self.first_id = next_ids()
        self.starts: Column = [OPEN] * BLOCK_SIZE
        self.ends: Any = [OPEN] * BLOCK_SIZE  # a list, a memoryview or None: whoever writes is told by the TypeError
        self.parents: Column = [0] * BLOCK_SIZE
        self.labels: Column = [0] * BLOCK_SIZE
        self.names = queue.labels.numbers
        self.clock: Callable[[], int] = queue.clock
        self.queue = queue


def pack_columns(block: Block, ends: Sequence[int], count: int = BLOCK_SIZE) -> tuple[bytes, bytes, bytes, bytes]:
    """Return starts, ends and parents as native int64 and labels as native int32, the first `count` of each."""
    if count >= BLOCK_SIZE:
        return _longs(*block.starts), _longs(*ends), _longs(*block.parents), _ints(*block.labels)
    longs, ints = struct.Struct(f"{count}q").pack, struct.Struct(f"{count}i").pack
    starts, parents, labels = block.starts[:count], block.parents[:count], block.labels[:count]
    return longs(*starts), longs(*ends[:count]), longs(*parents), ints(*labels)


def seal(block: Block, count: int = BLOCK_SIZE) -> None:
    """Pack a block that nobody enters any more; under the queue's lock: another thread may be ending one of the ranges."""
    starts, ends, parents, labels = pack_columns(block, block.ends, count)
    block.starts = memoryview(bytearray(starts)).cast("q")
    block.ends = memoryview(bytearray(ends)).cast("q")
    block.parents = memoryview(bytearray(parents)).cast("q")
    block.labels = memoryview(bytearray(labels)).cast("i")


def seal_all(queue: Queue, *, is_over: bool) -> None:
    """Pack every block of a queue that its thread fills no more; a signal handler may have left one behind that is not full.

    Args:
        queue: the queue.
        is_over: its thread is gone, so blocks may be cut to what is in them. Else it may be entering a range at this moment.
    """
    with queue.lock:
        for block in queue.blocks:
            if isinstance(block.ends, list):
                seal(block, min(block.next, BLOCK_SIZE) if is_over else BLOCK_SIZE)


BlockNow = tuple[Block, tuple[bytes, bytes, bytes, bytes] | None]
"""A block, and its packed columns where it is still being filled."""


def _columns_now(block: Block) -> tuple[bytes, bytes, bytes, bytes] | None:
    ends = block.ends
    return pack_columns(block, ends, min(block.next, BLOCK_SIZE)) if isinstance(ends, list) else None


class Numbered:
    """Numbers for distinct values, given out in any order and never twice."""

    __slots__ = ("_counter", "numbers")

    def __init__(self) -> None:
        self.numbers: dict[Any, int] = {}
        self._counter = itertools.count()

    def copied(self) -> Numbered:
        """Return what has been numbered so far, for another thread."""
        copy = Numbered()
        copy.numbers = dict(self.numbers)
        return copy

    def number(self, value: Hashable) -> int:
        """Return the number of `value`; a new one where it is new."""
        found = self.numbers.get(value)
        # a signal handler may add another in between: then its number is not ours, whatever the length says
        return self.numbers.setdefault(value, next(self._counter)) if found is None else found


class Queue:
    """Everything that one thread records in one session. Written by that thread, read once when recording stops.

    Attributes:
        clock: reads the session's ticks.
        blocks: blocks of ranges in the order of their making.
        labels: what ranges are called: a text for a user range, else (text, scope, overload name).
        sequences: rows of (range id, sequence number, forward thread id), int64.
        inputs: rows of (range id, number of the signature), int64.
        elsewhere: rows of (range id, native id of the thread where it ended), int64.
        memory: rows of `devprof.host.memory`.
        devices: (device, backend) in the memory rows, as given.
        signatures: what inputs look like; None where they are not recorded.
        native_id: native id of the thread.
        lock: held while a block is sealed, and by another thread that ends one of this thread's ranges.
    """

    __slots__ = (
        "_thread",
        "blocks",
        "clock",
        "devices",
        "elsewhere",
        "inputs",
        "labels",
        "lock",
        "memory",
        "native_id",
        "sequences",
        "signatures",
    )

    def __init__(self, clock: Callable[[], int], record_shapes: bool) -> None:
        self.clock = clock
        self.blocks: list[Block] = []
        self.labels, self.devices = Numbered(), Numbered()
        self.sequences, self.inputs, self.elsewhere, self.memory = bytearray(), bytearray(), bytearray(), bytearray()
        self.signatures = Signatures() if record_shapes else None
        self.native_id = threading.get_native_id()
        # `current_thread()` would make up a thread object for one that Python did not start, and `enumerate()` takes a lock
        self._thread = threading._active.get(threading.get_ident())  # type: ignore[attr-defined]
        self.lock = threading.RLock()

    @property
    def thread_name(self) -> str:
        """What the thread is called now, or was when it ended; empty where Python did not start it."""
        return "" if self._thread is None else str(self._thread.name)

    def blocks_now(self) -> list[BlockNow]:
        """Return the blocks, on any thread: those that are sealed as they are, a copy of what is in the one being filled."""
        with self.lock:
            return [(block, _columns_now(block)) for block in self.blocks]

    def copied(self) -> Queue:
        """Return a queue with the same texts and rows and without blocks, for another thread to read."""
        copy = Queue.__new__(Queue)
        copy.clock, copy.native_id, copy._thread = self.clock, self.native_id, self._thread
        copy.blocks, copy.lock = [], threading.RLock()
        copy.labels, copy.devices = self.labels.copied(), self.devices.copied()
        copy.sequences, copy.inputs = bytearray(self.sequences), bytearray(self.inputs)
        copy.elsewhere, copy.memory = bytearray(self.elsewhere), bytearray(self.memory)
        copy.signatures = None if self.signatures is None else self.signatures.copied()
        return copy

    def grow(self) -> Block:
        """Seal the block that is full, and return a new one."""
        if self.blocks:
            with self.lock:
                if isinstance(self.blocks[-1].ends, list):
                    seal(self.blocks[-1])
        block = Block(self)
        self.blocks.append(block)
        return block


class ThreadQueues(threading.local):
    """One session's queues: each thread finds its own `queue` and `block`, made when it first looks.

    A signal handler or a finalizer may enter a range while they are being made: it finds None, and makes them itself.

    Attributes:
        block: the block that this thread fills.
        queue: this thread's queue.
        everything: the queues of all threads, also of those that ended.
        first_id: less than every id of this session, and more than those of earlier ones.
    """

    __slots__ = ("_clock", "_record_shapes", "everything", "first_id")  # slots are the same for all threads

    block: Block | None = None
    queue: Queue | None = None

    def __init__(self, clock: Callable[[], int], record_shapes: bool, everything: list[Queue], first_id: int) -> None:
        # called again in each thread, with the same arguments
        self._clock, self._record_shapes = clock, record_shapes
        self.everything = everything
        self.first_id = first_id
        if self.block is None:
            self.next_block()

    def here(self) -> Queue:
        """Return this thread's queue."""
        if self.queue is None:
            queue = Queue(self._clock, self._record_shapes)
            self.everything.append(queue)
            self.queue = queue
        return self.queue

    def next_block(self) -> Block:
        """Return this thread's next block, the one before being full."""
        block = self.block = self.here().grow()
        return block
