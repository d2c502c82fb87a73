"""`GATE`: the one thing that a range looks at, and the context variable that holds the current range.

What is global to the process is here: who records, who watches, and where the ids come from.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from devprof.host.mirrors import Mirrors
    from devprof.host.queues import Block, ThreadQueues
    from devprof.host.watching import Watched

__all__ = ["BLOCK_SIZE", "CURRENT", "GATE", "OUTSIDE", "Gate", "OpenRange", "current_range", "next_ids"]

BLOCK_SIZE = 512
"""Ranges per block, and ids that a thread takes at a time (as torch's thread queues do)."""

_counter = itertools.count(1, BLOCK_SIZE)


class OpenRange:
    """A range as the context variable holds it; the base of what users enter.

    Attributes:
        id: the range's id, 0 before it was entered.
        user_id: id of the innermost user range: its own, or that of the range around it.
        gone: True where it ended although its context does not know: on another thread, or out of order.
        outer: the range around it; only set where `gone`.
        block: where it is recorded; None while it is not open.
        at: its place in the block.
        token: takes it off the context variable, or an `Extra` of devprof.host.leaving where leaving takes more.
    """

    __slots__ = ("at", "block", "gone", "id", "outer", "token", "user_id")

    id: int
    user_id: int
    gone: bool
    outer: OpenRange
    block: Block | None
    at: int
    token: Any  # a contextvars.Token, or an Extra: told apart by `Token` refusing anything else


OUTSIDE = OpenRange()
"""What is current where no range is."""
OUTSIDE.id = OUTSIDE.user_id = OUTSIDE.at = 0
OUTSIDE.gone, OUTSIDE.outer, OUTSIDE.block, OUTSIDE.token = False, OUTSIDE, None, None

CURRENT: ContextVar[OpenRange] = ContextVar("devprof.host.current", default=OUTSIDE)
"""The innermost range of this thread or asyncio task. A new task inherits it; see `devprof.host.carry` for other work."""


class Gate:
    """Who records and who watches. Read by every range, changed under `lock`.

    Attributes:
        queues: where ranges go: None where nobody is interested, `Watched` where more than recording is to be done.
        memory: where memory reports go, or None.
        recording: the queues of the session that records ranges now, or None.
        mirrors: the session's mirrors, or None.
        count_late: told of each exit whose session is over.
        lock: held while the gate changes. Reentrant: a signal handler may come at any time.
    """

    __slots__ = ("count_late", "lock", "memory", "mirrors", "queues", "recording")

    def __init__(self) -> None:
        self.queues: ThreadQueues | Watched | None = None
        self.memory: ThreadQueues | None = None
        self.recording: ThreadQueues | None = None
        self.mirrors: Mirrors | None = None
        self.count_late: Callable[[], None] | None = None
        self.lock = threading.RLock()

    def close(self) -> None:
        """Forget everybody, as the child of a fork does: no lock is taken, its holder may be in the parent."""
        self.lock = threading.RLock()
        self.queues = self.memory = self.recording = self.mirrors = self.count_late = None


GATE = Gate()


def current_range() -> OpenRange:
    """Return the innermost range of the calling thread or task that has not ended elsewhere."""
    found = CURRENT.get()
    while found.gone:
        found = found.outer
    return found


def next_ids() -> int:
    """Return the first of `BLOCK_SIZE` ids that nobody else has. Callable from any thread."""
    return next(_counter)


def _forget_in_child() -> None:
    GATE.close()
    CURRENT.set(OUTSIDE)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)
