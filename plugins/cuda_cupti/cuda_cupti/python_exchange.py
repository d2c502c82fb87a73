"""`PythonExchange`: an `Exchange` in Python, where the native one is not built. Its functions need the GIL."""

from __future__ import annotations

import ctypes
import itertools
import mmap
from collections import Counter, deque
from queue import SimpleQueue
from typing import Any

from cuda_cupti.binding import BufferCompleted, BufferRequested
from cuda_cupti.exchange import BUFFER_BYTES, INTERRUPTED, KEPT_BUFFERS, READY_BUFFERS, BufferState, FilledBuffer

__all__ = ["Buffer", "BufferPool", "PythonExchange"]


class Buffer:
    """One block of memory, aligned to a page.

    Attributes:
        address: its first byte.
        state: whose it is.
        number: of the latest loan, from 1.
        decoded: number of the latest loan that a decoder was given.
        given_up: nobody waits for it any more.
        valid_bytes: how much of it CUPTI filled, while it is FILLED.
    """

    __slots__ = ("_memory", "address", "decoded", "given_up", "number", "state", "valid_bytes")

    def __init__(self, size_bytes: int) -> None:
        """Take memory from the system, which gives it cleared.

        Raises:
            OSError: there is none.
        """
        self._memory = mmap.mmap(-1, size_bytes)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self.state = BufferState.FREE
        self.number = self.decoded = 0
        self.given_up = False
        self.valid_bytes = 0

    def valid(self) -> memoryview:
        """Return the bytes that CUPTI filled, to be released before the buffer is given back."""
        return memoryview(self._memory)[: self.valid_bytes]

    def clear(self) -> None:
        """Set to 0 what CUPTI filled."""
        ctypes.memset(self.address, 0, self.valid_bytes)
        self.valid_bytes = 0


class BufferPool:
    """All buffers of the process. Takes no lock: `lend` and `take_back` run inside CUPTI, on threads of its choice.

    Attributes:
        size_bytes: size of each buffer.
        loans: buffers that were lent so far.
        strange: completions of memory that was never lent, or was given back before.
        refused: requests for which there was no memory.
    """

    def __init__(self, size_bytes: int = BUFFER_BYTES) -> None:
        """Make an empty pool.

        Args:
            size_bytes: size of each buffer, whole pages.
        """
        self.size_bytes = size_bytes
        self.loans = 0
        self.strange = 0
        self.refused = 0
        self._free: deque[Buffer] = deque()
        self._all: dict[int, Buffer] = {}
        self._numbers = itertools.count(1)

    def reserve(self, n: int) -> None:
        """Have at least n buffers ready. Not inside CUPTI.

        Raises:
            OSError: there is no memory.
        """
        while len(self._free) < n:
            self._free.append(self._new())

    def lend(self) -> Buffer | None:
        """Give a cleared buffer to CUPTI; None where there is no memory for one. Inside CUPTI, any thread."""
        try:
            buffer = self._free.popleft()
        except IndexError:
            try:
                buffer = self._new()
            except (OSError, MemoryError):
                self.refused += 1
                return None
        buffer.number = self.loans = next(self._numbers)
        buffer.given_up = False
        buffer.state = BufferState.LENT
        return buffer

    def take_back(self, address: int, valid_bytes: int) -> Buffer | None:
        """Take a buffer from CUPTI, with what it holds; None for one that is not lent. Inside CUPTI, any thread."""
        buffer = self._all.get(address)
        if buffer is None or buffer.state is not BufferState.LENT:
            self.strange += 1
            return None
        buffer.valid_bytes = min(valid_bytes, self.size_bytes)
        buffer.state = BufferState.FILLED
        return buffer

    def give_back(self, buffer: Buffer) -> None:
        """Clear a decoded buffer, for the next request; nothing where it is no decoder's. Not inside CUPTI."""
        if buffer.state is not BufferState.FILLED:
            return
        buffer.clear()
        buffer.state = BufferState.FREE
        self._free.append(buffer)

    def trim(self, n: int) -> None:
        """Return the memory of free buffers beyond n to the system. Not inside CUPTI."""
        while len(self._free) > n:
            try:
                buffer = self._free.pop()
            except IndexError:  # CUPTI was quicker
                return
            del self._all[buffer.address]

    def outstanding(self, loans: int) -> list[Buffer]:
        """Return the buffers of the first so many loans that CUPTI holds, without those that were given up."""
        return [
            one
            for one in list(self._all.values())
            if one.state is BufferState.LENT and not one.given_up and one.number <= loans
        ]

    def states(self) -> Counter[BufferState]:
        """Count the buffers by owner."""
        return Counter(one.state for one in list(self._all.values()))

    def _new(self) -> Buffer:
        buffer = Buffer(self.size_bytes)
        self._all[buffer.address] = buffer
        return buffer


class PythonExchange:
    """Implements `cuda_cupti.exchange.Exchange`. The functions take no lock: what they do is one step each under the GIL.

    Attributes:
        requested, completed: as there.
        pool: the buffers.
    """

    def __init__(self, pool: BufferPool | None = None) -> None:
        """Make the functions, which nobody calls yet."""
        self.pool = pool or BufferPool()
        self.requested: Any = BufferRequested(self._requested)
        self.completed: Any = BufferCompleted(self._completed)
        self._items: SimpleQueue[tuple[Buffer, int] | int] = SimpleQueue()  # a buffer with the number of its loan
        self._late: list[Buffer] = []
        self._open = False

    @property
    def strange(self) -> int:
        """Completions of memory that was not lent, or was given back before."""
        return self.pool.strange

    @property
    def refused(self) -> int:
        """Requests of a session for which there was no memory."""
        return self.pool.refused

    @property
    def loans(self) -> int:
        """How many buffers were lent so far."""
        return self.pool.loans

    def begin(self) -> None:
        """Start a session; see `Exchange.begin`.

        Raises:
            OSError: there is no memory for buffers.
        """
        while self._late:
            self.pool.give_back(self._late.pop())
        while not self._items.empty():  # a session that was not decoded to its end
            if not isinstance(item := self._items.get(), int):
                self.pool.give_back(item[0])
        self.pool.reserve(READY_BUFFERS)
        self._open = True

    def end(self) -> None:
        """End the session; see `Exchange.end`."""
        self._open = False

    def trim(self) -> None:
        """Return memory to the system; see `Exchange.trim`."""
        self.pool.trim(KEPT_BUFFERS)

    def next(self) -> Buffer | int:
        """Wait for a completed buffer or a signal."""
        while not isinstance(item := self._items.get(), int):
            buffer, loan = item
            if buffer.decoded < loan:  # else it is there a second time, because of an interrupt
                buffer.decoded = loan
                return buffer
        return item

    def post(self, signal: int) -> None:
        """Send a signal."""
        self._items.put(signal)

    def give_back(self, buffer: FilledBuffer) -> None:
        """Clear a decoded buffer, for the next request."""
        if isinstance(buffer, Buffer):
            self.pool.give_back(buffer)

    def outstanding(self, loans: int) -> int:
        """Return how many buffers CUPTI holds; see `Exchange.outstanding`."""
        return len(self.pool.outstanding(loans))

    def give_up(self, loans: int) -> None:
        """Wait for buffers no more; see `Exchange.give_up`."""
        for buffer in self.pool.outstanding(loans):
            buffer.given_up = True

    def states(self) -> Counter[BufferState]:
        """Count the buffers by owner."""
        return self.pool.states()

    # -- inside CUPTI -------------------------------------------------------------------------------------------------

    def _requested(self, buffer: Any, size_bytes: Any, most_records: Any) -> None:
        lent, interrupted = None, False
        try:
            lent = self._lend()
        except BaseException:  # noqa: BLE001  # a user's Ctrl-C, on their thread, which ctypes would swallow
            interrupted = True
            lent = lent or self._lend()
        most_records[0] = 0  # as many as fit
        size_bytes[0] = 0 if lent is None else self.pool.size_bytes
        buffer[0] = None if lent is None else lent.address
        if interrupted:
            self._pass_on_interrupt()

    def _completed(self, context: object, stream: int, address: int | None, size_bytes: int, valid_bytes: int) -> None:
        buffer, passed = None, False
        try:
            buffer = self.pool.take_back(address or 0, valid_bytes)
            self._pass_on(buffer)
            passed = True
        except BaseException:  # noqa: BLE001  # as above
            buffer = buffer or self.pool.take_back(address or 0, valid_bytes)
            if not passed:  # or it has been, and nobody could say so: `next` gives it out once
                self._pass_on(buffer)
            self._pass_on_interrupt()

    def _lend(self) -> Buffer | None:
        return self.pool.lend() if self._open else None

    def _pass_on(self, buffer: Buffer | None) -> None:
        if buffer is None:
            return
        if self._open:
            self._items.put((buffer, buffer.number))
        else:
            self._late.append(buffer)

    def _pass_on_interrupt(self) -> None:
        if self._open:
            self._items.put(INTERRUPTED)
