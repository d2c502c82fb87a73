"""What CUPTI and the decoding thread exchange: buffers, through two functions that CUPTI calls."""

from __future__ import annotations

from collections import Counter
from enum import Enum
from typing import Any, Protocol

__all__ = ["BUFFER_BYTES", "INTERRUPTED", "KEPT_BUFFERS", "READY_BUFFERS", "BufferState", "Exchange", "FilledBuffer"]

BUFFER_BYTES = 4 << 20
"""Size of a buffer: about 19,000 kernels. Kineto's choice too. CUPTI takes one per thread that makes CUDA calls."""
READY_BUFFERS = 2
"""How many buffers are there before CUPTI asks for the first."""
KEPT_BUFFERS = 8
"""How many free buffers stay when a session has been decoded."""

INTERRUPTED = -1
"""The signal that a user's Ctrl-C came up inside a function that CUPTI called."""


class BufferState(Enum):
    """Whose a buffer is.

        FREE --request--> LENT --completion--> FILLED --decoded, cleared--> FREE

    A LENT buffer is CUPTI's: nobody else reads, clears or frees it, also not after the session, because CUPTI may write to it
    until it hands it back, and that may be never.

    CUPTI may keep a buffer from one session to the next, and write the next one's records into it. So what comes back during a
    session is decoded in it, whenever it was lent, and devprof's window tells the records apart; what comes back in between
    sessions is nobody's. In between sessions nothing is lent: where a kind could not be switched off, memory would fill up.
    """

    FREE = "free"
    """The exchange's: cleared, to be lent."""
    LENT = "lent"
    """CUPTI's."""
    FILLED = "filled"
    """The decoder's."""


class FilledBuffer(Protocol):
    """A buffer that CUPTI has completed. The holder's alone until it is given back."""

    @property
    def address(self) -> int:
        """Its first byte."""

    @property
    def valid_bytes(self) -> int:
        """How much of it CUPTI filled."""

    def valid(self) -> memoryview:
        """Return the bytes that CUPTI filled, to be released before the buffer is given back."""


class Exchange(Protocol):
    """The two functions, and the buffers; for the life of the process, whichever session is on.

    The functions run inside CUPTI: on the thread that made a CUDA call, on CUPTI's own worker, or within a flush. So they call
    nothing of CUDA, and let no exception out. All else is called by devprof, never inside CUPTI.

    Attributes:
        requested, completed: to register with CUPTI; CUPTI may call them until the process ends.
    """

    requested: Any
    completed: Any

    @property
    def strange(self) -> int:
        """Completions of memory that was not lent, or was given back before."""

    @property
    def refused(self) -> int:
        """Requests of a session for which there was no memory."""

    @property
    def loans(self) -> int:
        """How many buffers were lent so far."""

    def begin(self) -> None:
        """Start a session: what comes back from now on is for `next`. What came back in between is free again.

        Raises:
            OSError: there is no memory for buffers.
        """

    def end(self) -> None:
        """End the session: buffers are not lent any more."""

    def trim(self) -> None:
        """Return the memory of free buffers beyond `KEPT_BUFFERS` to the system."""

    def next(self) -> FilledBuffer | int:
        """Wait for the session's next completed buffer, or the next signal, whichever was there first."""

    def post(self, signal: int) -> None:
        """Send a signal to whoever waits in `next`."""

    def give_back(self, buffer: FilledBuffer) -> None:
        """Clear a buffer that `next` gave, for the next request."""

    def outstanding(self, loans: int) -> int:
        """Return how many buffers of the first so many loans CUPTI still holds, without those that were given up."""

    def give_up(self, loans: int) -> None:
        """Count the buffers of the first so many loans that CUPTI still holds as outstanding no more."""

    def states(self) -> Counter[BufferState]:
        """Count the buffers by owner."""
