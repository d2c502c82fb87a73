"""SIGTERM as an end that a program's trace outlives."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["ended_by_sigterm"]

_TERMINATED = 128 + signal.SIGTERM  # what a shell sees of a program that SIGTERM ended


@contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """Let SIGTERM end the block with `SystemExit`, so that the trace is written; the program's own handler has its way.

    What the program forks is ended as ever. On another thread than the main one, and where SIGTERM is handled or ignored
    already, nothing is changed.
    """
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _end)
    _keep_out_of_children()
    try:
        yield
    finally:
        _back_to_default()


def _end(signum: int, frame: FrameType | None) -> None:
    raise SystemExit(_TERMINATED)


def _back_to_default() -> None:
    if signal.getsignal(signal.SIGTERM) is _end:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _keep_out_of_children() -> None:
    """Give children the default handler. Python forgets a signal that comes to a child before it has one: it is held back."""
    masks = threading.local()

    def hold() -> None:
        masks.before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})

    def let_go() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, masks.before)

    def let_go_in_child() -> None:
        _back_to_default()
        let_go()

    os.register_at_fork(before=hold, after_in_parent=let_go, after_in_child=let_go_in_child)
