"""A Ctrl-C, kept from places where it would do harm.

Python raises KeyboardInterrupt between any two instructions of the main thread. In a function that native code calls for every
op, ctypes would print the exception and drop it, so that the user could hardly stop the program: `LateInterrupt` raises it once
that call is over.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, TypeVar

__all__ = ["LateInterrupt", "called_natively"]

F = TypeVar("F", bound=Callable[..., Any])

_CALLED_NATIVELY: set[CodeType] = set()


def called_natively(function: F) -> F:
    """Mark a function that native code calls through ctypes."""
    _CALLED_NATIVELY.add(function.__code__)
    return function


class LateInterrupt:
    """Between `install` and `remove`, a SIGINT inside a function that native code called waits until that call is over."""

    def __init__(self, note: Callable[[], object]) -> None:
        """Make one.

        Args:
            note: has native code raise the signal again when it has the thread back.
        """
        self._note = note
        self._before: Any = None

    def install(self) -> None:
        """Put the handler in place, where SIGINT is handled in Python and this is the main thread."""
        on_main = threading.current_thread() is threading.main_thread()
        if self._before is None and on_main and callable(signal.getsignal(signal.SIGINT)):
            self._before = signal.signal(signal.SIGINT, self._handle)

    def remove(self) -> None:
        """Put the earlier handler back, unless the program has put another in place since."""
        before, self._before = self._before, None
        on_main = threading.current_thread() is threading.main_thread()
        if before is not None and on_main and signal.getsignal(signal.SIGINT) == self._handle:
            signal.signal(signal.SIGINT, before)

    def _handle(self, signum: int, frame: FrameType | None) -> None:
        inner = frame
        while inner is not None:
            if inner.f_code in _CALLED_NATIVELY:
                self._note()
                return
            inner = inner.f_back
        # after a removal on another thread the handler stays, and does what Python does by itself
        (self._before or signal.default_int_handler)(signum, frame)
