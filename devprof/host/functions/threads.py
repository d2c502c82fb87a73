"""What threads are called, asked from inside a hook: no lock is taken, and no thread becomes known that Python did not know."""

from __future__ import annotations

import sys
import threading
from types import FrameType

__all__ = ["name_here", "native_id_and_name"]

_BOOTSTRAP = threading.Thread._bootstrap.__code__  # type: ignore[attr-defined]  # the first frame of a thread


def native_id_and_name(ident: int) -> tuple[int, str]:
    """Return the native id and the name of a thread, 0 and "" where Python has no object for it."""
    thread = threading._active.get(ident)  # type: ignore[attr-defined]  # `enumerate` takes a lock that a hook may find taken
    return (0, "") if thread is None else (thread.native_id or 0, thread.name)


def name_here() -> str:
    """Return the name of the calling thread, also where it has only just begun."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code is _BOOTSTRAP:  # a thread at its start is not among the active ones yet
            return str(frame.f_locals["self"].name)
        frame = frame.f_back
    return native_id_and_name(threading.get_ident())[1]
