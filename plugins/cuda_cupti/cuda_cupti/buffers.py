"""The buffers that CUPTI fills, each with an owner at every moment.

    FREE --request--> LENT --completion--> FILLED --decoded, cleared--> FREE

A LENT buffer is CUPTI's: nobody else reads, clears or frees it, also not after the session, because CUPTI may write to it until
it hands it back, and that may be never.
"""

from __future__ import annotations

import ctypes
import mmap
from collections import Counter, deque
from enum import Enum

__all__ = ["BUFFER_BYTES", "Buffer", "BufferPool", "BufferState"]

BUFFER_BYTES = 4 << 20
"""Size of a buffer: about 19,000 kernels. Kineto's choice too. CUPTI takes one per thread that makes CUDA calls."""


class BufferState(Enum):
    """Whose a buffer is."""

    FREE = "free"
    """The pool's: cleared, to be lent."""
    LENT = "lent"
    """CUPTI's."""
    FILLED = "filled"
    """The decoder's."""


class Buffer:
    """One block of memory, aligned to a page.

    Attributes:
        address: its first byte.
        state: whose it is.
        session: number of the session that it was lent in.
        valid_bytes: how much of it CUPTI filled, while it is FILLED.
    """

    __slots__ = ("_memory", "address", "session", "state", "valid_bytes")

    def __init__(self, size_bytes: int) -> None:
        """Take memory from the system, which gives it cleared.

        Raises:
            OSError: there is none.
        """
        self._memory = mmap.mmap(-1, size_bytes)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self.state = BufferState.FREE
        self.session = 0
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
        strange: completions of memory that was never lent, or was given back before.
        refused: requests for which there was no memory.
    """

    def __init__(self, size_bytes: int = BUFFER_BYTES) -> None:
        """Make an empty pool.

        Args:
            size_bytes: size of each buffer, whole pages.
        """
        self.size_bytes = size_bytes
        self.strange = 0
        self.refused = 0
        self._free: deque[Buffer] = deque()
        self._all: dict[int, Buffer] = {}

    def reserve(self, n: int) -> None:
        """Have at least n buffers ready. Not inside CUPTI.

        Raises:
            OSError: there is no memory.
        """
        while len(self._free) < n:
            self._free.append(self._new())

    def lend(self, session: int) -> Buffer | None:
        """Give a cleared buffer to CUPTI; None where there is no memory for one. Inside CUPTI, any thread."""
        try:
            buffer = self._free.popleft()
        except IndexError:
            try:
                buffer = self._new()
            except (OSError, MemoryError):
                self.refused += 1
                return None
        buffer.session = session
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
        """Clear a decoded buffer, for the next request. Not inside CUPTI."""
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

    def lent(self, session: int) -> int:
        """Return how many buffers of a session CUPTI holds."""
        return sum(one.state is BufferState.LENT and one.session == session for one in list(self._all.values()))

    def states(self) -> Counter[BufferState]:
        """Count the buffers by owner."""
        return Counter(one.state for one in list(self._all.values()))

    def _new(self) -> Buffer:
        buffer = Buffer(self.size_bytes)
        self._all[buffer.address] = buffer
        return buffer
