"""`Block`: start and stop as a `with` block, whose end an interrupt cannot skip.

Python looks for signals at the first instruction of a function, before any `try` of it: a Ctrl-C that comes exactly there
leaves an `__exit__` that has done nothing, and the block is over. But a `with` statement holds the bound `__exit__`, and lets
go of it when its block ends, however that is. So it gets an object that nobody else holds, and the end of that is seen.
"""

from __future__ import annotations

import functools
import logging
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, TypeAlias

__all__ = ["Block"]

Leave: TypeAlias = Callable[[type[BaseException] | None, BaseException | None, TracebackType | None], None]

log = logging.getLogger("devprof.profiler")


class _Exit:
    """`Block.__exit__`, as a descriptor: what a `with` statement gets is an object of its own."""

    def __get__(self, block: Block | None, owner: type[Block]) -> Leave:
        if block is None:
            return _leave_unbound
        leave = functools.partial(_leave, block)
        block._offered = weakref.ref(leave)
        return leave


class Block(ABC):
    """Starts and stops what records for the length of a `with` block."""

    _offered: weakref.ref[Leave] | None = None
    """The `__exit__` that was asked for last: before `__enter__` it is the block's."""
    _watched: weakref.ref[Leave] | None = None

    @property
    @abstractmethod
    def _is_started(self) -> bool:
        """True between start and stop."""

    @abstractmethod
    def start(self) -> None:
        """Begin."""

    @abstractmethod
    def stop(self) -> None:
        """End."""

    def __enter__(self) -> Self:
        leave = None if self._offered is None else self._offered()
        if leave is not None:  # else it was called by hand
            self._watched = weakref.ref(leave, functools.partial(_leave_late, weakref.ref(self)))
        self.start()
        return self

    __exit__ = _Exit()


def _leave(
    block: Block, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
) -> None:
    try:
        block._watched = None  # from here on nothing is skipped
        if block._is_started:  # else the block stopped it
            block.stop()
    except KeyboardInterrupt:
        if block._is_started:  # it came before the stop had begun, and a block has no second chance
            block.stop()
        raise


def _leave_unbound(block: Any, *error: Any) -> None:
    _leave(block, *error)


def _leave_late(block: weakref.ref[Block], leave: object) -> None:
    """Stop where the block is over and its `__exit__` has not run; the interrupt is on its way to the program already."""
    one = block()
    if one is None or not one._is_started:
        return
    try:
        one.stop()
    except BaseException:
        log.exception("a profile whose block was interrupted could not be stopped as usual")
