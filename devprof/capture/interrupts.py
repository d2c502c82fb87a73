"""A Ctrl-C, kept from where it would do harm: the stop of a profile has no place where that would be none."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

__all__ = ["HeldInterrupt"]


class HeldInterrupt:
    """Holds SIGINT back while the block runs; then the handler that was there before gets it.

    Does nothing on another thread than the main one, where Python never raises KeyboardInterrupt, and nothing where SIGINT is
    not handled in Python.

    Attributes:
        pending: True once a SIGINT came.
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
        if self._before is None:
            return
        signal.signal(signal.SIGINT, self._before)
        if self.pending:
            self._before(signal.SIGINT, None)

    def _note(self, signum: int, frame: FrameType | None) -> None:
        self.pending = True
        self._on_interrupt()
