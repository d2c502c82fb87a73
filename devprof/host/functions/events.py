"""What every core hands over: raw events by thread, and the tables that they index.

This is the seam between the cores and everything behind them: a core knows nothing of names in full, pairs or batches.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Protocol

import numpy as np
import numpy.typing as npt

__all__ = [
    "CALL_OF_C",
    "ENTER",
    "EVENT",
    "INDEX_SHIFT",
    "LEAVE",
    "MODULE",
    "Captured",
    "Core",
    "EventArray",
    "ThreadEvents",
]

ENTER = 0
"""A Python frame begins or goes on; `extra` is the offset of its instruction in bytes, -1 where it is unknown."""
MODULE = 1
"""Flag of an enter: the frame is the call of a module; `extra` is the index of the module."""
CALL_OF_C = 2
"""Flag: a C function; the index is one of `c_names`, not of `codes`."""
LEAVE = 4
"""Flag: the frame or the C function ends, yields or raises."""
INDEX_SHIFT = 3
"""`what` is an index shifted left by this, and the flags."""

EVENT = np.dtype([("tick", np.int64), ("what", np.uint32), ("extra", np.int32)])
"""One event, 16 bytes, as native code writes it."""

EventArray = npt.NDArray[np.void]
"""Array of `EVENT`."""


@dataclass(frozen=True, slots=True, eq=False)
class ThreadEvents:
    """The events of one thread, in the order in which they happened.

    Attributes:
        native_id: id of the thread in the operating system.
        name: the thread's name when it was first seen, empty where Python has none for it.
        events: shape (n,), dtype `EVENT`.
    """

    native_id: int
    name: str
    events: EventArray


@dataclass(frozen=True, slots=True, eq=False)
class Captured:
    """What a core recorded.

    Attributes:
        threads: the threads' events, in the order in which the threads were first seen.
        codes: code objects, by index.
        c_names: names of C functions, by index, as torch prints them.
        modules: class name and number within the class, by index.
        own_c: indices of the C functions that are devprof's own: bound to an object of one of its classes.
        beyond_limit: calls that were left out because the limit was reached.
    """

    threads: Sequence[ThreadEvents]
    codes: Sequence[CodeType]
    c_names: Sequence[str]
    modules: Sequence[tuple[str, int]]
    own_c: Collection[int] = ()
    beyond_limit: int = 0


class Core(Protocol):
    """One way of recording. Used once: `start`, then `stop`, on any threads.

    Attributes:
        name: ``"native"``, ``"monitoring"`` or ``"setprofile"``.
        notes: sentences on what it could not do, complete after `stop`.
    """

    name: str
    notes: list[str]

    def start(self, start_ticks: int) -> None:
        """Put the hooks in; frames that are open now enter at `start_ticks`."""

    def stop(self) -> Captured:
        """Take the own hooks out, and return what was recorded."""

    def forget(self) -> None:
        """Take the own hooks out in a forked child, where nothing is recorded."""
