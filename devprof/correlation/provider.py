"""What a provider of correlation ids is, and the values that it gives."""

from __future__ import annotations

from typing import NamedTuple, Protocol

__all__ = ["MAX_ID", "Correlation", "CorrelationProvider", "StackDepths"]

MAX_ID = 2**64 - 1
"""Greatest id: Kineto pushes ids as uint64."""


class Correlation(NamedTuple):
    """What is running on a thread.

    Attributes:
        op_id: id of the innermost op, 0: none.
        user_id: id of the innermost user range, 0: none.
    """

    op_id: int
    user_id: int


class StackDepths(NamedTuple):
    """How many entries one thread's stacks hold.

    Attributes:
        ops: entries on the op stack.
        users: entries on the user stack.
    """

    ops: int
    users: int


class CorrelationProvider(Protocol):
    """Keeper of the stacks. Each method is the module function of that name; all are called from any thread.

    A provider keeps one pair of stacks per thread. Ids are 1 to `MAX_ID`; `push_correlation_id` and
    `push_user_correlation_id` are never called with another. No method may block, run torch ops or raise.
    """

    def current_op_id(self) -> int:
        """Return the innermost op id of the calling thread, 0: none."""

    def current_user_id(self) -> int:
        """Return the innermost user id of the calling thread, 0: none."""

    def current(self) -> Correlation:
        """Return both."""

    def push_correlation_id(self, id: int) -> None:
        """Open an op on the calling thread."""

    def pop_correlation_id(self) -> None:
        """Close the innermost op; on an empty stack only count the call."""

    def push_user_correlation_id(self, id: int) -> None:
        """Open a user range on the calling thread."""

    def pop_user_correlation_id(self) -> None:
        """Close the innermost user range; on an empty stack only count the call."""

    def new_generation(self) -> int:
        """Start a generation and return its number; entries of earlier ones are gone when a thread next looks."""

    def unbalanced_pops(self) -> int:
        """Return how many pops of this generation, on all threads, found an empty stack."""

    def depths(self) -> StackDepths:
        """Return how deep the calling thread's stacks are."""
