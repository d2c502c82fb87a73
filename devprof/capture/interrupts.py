"""A Ctrl-C, kept from where it would do harm: the stop of a profile has no place where that would be none."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, TypeVar

__all__ = ["HeldInterrupt"]

T = TypeVar("T")


class HeldInterrupt:
    """Holds SIGINT back while the block runs; then the handler that was there before gets it.

    Does nothing on another thread than the main one, where Python never raises KeyboardInterrupt, and nothing where SIGINT is
    not handled in Python.

    Attributes:
        pending: True once a SIGINT came that was held back.
    """

    def __init__(self, on_interrupt: Callable[[], object]) -> None:
        """Make one.

        Args:
            on_interrupt: called when a SIGINT comes, on the main thread; must be quick and must not raise.
        """
        self.pending = False
        self._on_interrupt = on_interrupt
        self._before: Any = None

    def __enter__(self) -> HeldInterrupt:
        if threading.current_thread() is threading.main_thread() and callable(signal.getsignal(signal.SIGINT)):
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        before, self._before = self._before, None
        if before is None:
            return
        signal.signal(signal.SIGINT, before)
        if self.pending and callable(before):
            before(signal.SIGINT, None)

    def let_through(self, call: Callable[[], T]) -> T:
        """Return what `call` returns; a SIGINT meanwhile is handled at once, and one that came before waits on.

        For what belongs to the user, and for what deals with interrupts itself. Outside of the block it only calls.
        """
        if self._before is None:
            return call()
        try:
            signal.signal(signal.SIGINT, self._before)
            return call()
        finally:
            # the call may have set another handler, which is to stay
            self._before = signal.signal(signal.SIGINT, self._note) or signal.SIG_DFL

    def _note(self, signum: int, frame: FrameType | None) -> None:
        self.pending = True
        self._on_interrupt()
