"""The rare ways to leave a range: on another thread, out of order, after its session, with watchers, or by a future."""

from __future__ import annotations

import struct
import threading
from contextvars import Token
from typing import TYPE_CHECKING

from devprof.host.gate import CURRENT, GATE, OUTSIDE, OpenRange
from devprof.host.queues import OPEN, Block

if TYPE_CHECKING:
    from devprof.host.watching import Watch

__all__ = ["SPENT", "UNRECORDED", "Extra", "extra_of", "finish", "leave"]

_pair = struct.Struct("qq").pack

UNRECORDED = Block.__new__(Block)
"""Stands for the block of a range that is watched and not recorded."""
SPENT = Block.__new__(Block)
"""Stands for the block of a range that must not be entered again: a context that it has left still holds it."""
UNRECORDED.clock = SPENT.clock = lambda: 0
UNRECORDED.ends = SPENT.ends = None


class Extra:
    """What a range has instead of a token when leaving it takes more than that. `ContextVar.reset` refuses it.

    Attributes:
        token: takes the range off the context variable; None where it never was on it.
        watch: callbacks and mirrors to be told, or None.
        is_deferred: True where a future ends the range.
    """

    __slots__ = ("is_deferred", "token", "watch")

    def __init__(self, token: Token[OpenRange] | None, watch: Watch | None = None) -> None:
        self.token = token
        self.watch = watch
        self.is_deferred = False


def extra_of(entered: OpenRange) -> Extra:
    """Return what an entered range has beyond a token, giving it to it where it has nothing yet."""
    if type(entered.token) is not Extra:
        entered.token = Extra(entered.token)
    return entered.token


def leave(entered: OpenRange, end_ticks: int) -> None:
    """Leave an entered range that the short way could not leave."""
    block, token, watch = entered.block, entered.token, None
    if block is SPENT:
        return
    is_deferred = False
    if type(token) is Extra:
        watch, is_deferred, token = token.watch, token.is_deferred, token.token
    entered.block = None
    if not is_deferred:
        finish(block, entered.at, end_ticks)
    if token is not None:
        _take_off_context(entered, token)
    entered.token = None  # it would keep the ranges around it alive
    if entered.gone:
        entered.block = SPENT
    if watch is not None:
        watch.leave()


def finish(block: Block | None, at: int, end_ticks: int) -> None:
    """Write the end of a range, from any thread; count it where its session is over."""
    if block is UNRECORDED or block is None:
        return
    queue = block.queue
    try:
        with queue.lock:
            if block.ends[at] == OPEN:
                block.ends[at] = end_ticks
    except TypeError:  # the session took its ends away
        if (count := GATE.count_late) is not None:
            count()
        return
    here = threading.get_native_id()
    if here != queue.native_id:
        queue.elsewhere += _pair(block.first_id + at, here)


def _take_off_context(entered: OpenRange, token: Token[OpenRange]) -> None:
    if CURRENT.get() is entered:
        try:
            CURRENT.reset(token)
        except (ValueError, RuntimeError):  # entered in another context; this one inherited the range
            pass
        else:
            return
    outer = token.old_value
    while isinstance(outer, OpenRange) and outer.gone:
        outer = outer.outer
    entered.outer = outer if isinstance(outer, OpenRange) else OUTSIDE
    entered.gone = True  # whoever finds it on its context looks at the range around it
