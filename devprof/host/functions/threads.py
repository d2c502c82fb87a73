"""What threads are called, asked from inside a hook: no lock is taken, and no thread becomes known that Python did not know."""

from __future__ import annotations

import sys
import threading
from types import FrameType

__all__ = ["HOOK_FILES", "ThreadNames", "name_here", "native_id_and_name", "open_frames"]

_BOOTSTRAP = threading.Thread._bootstrap.__code__  # type: ignore[attr-defined]  # the first frame of a thread


class ThreadNames:
    """Names of threads by a number each. `seen` is called by a hook, on the thread, at its first event."""

    def __init__(self) -> None:
        self.name_of: dict[int, str] = {}

    def seen(self, number: int) -> None:
        """Keep the name of the calling thread."""
        self.name_of[number] = name_here()


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


_FOLDER = name_here.__code__.co_filename.removesuffix("threads.py")
HOOK_FILES = frozenset(f"{_FOLDER}{name}.py" for name in ("modules", "recorder", "threads"))
"""Files whose functions run inside hooks, where the interpreter reports nothing: what they call never leaves."""


def open_frames(frame: FrameType | None) -> list[FrameType]:
    """Return the frames from the outermost to `frame`, or to the one that a hook interrupted."""
    frames: list[FrameType] = []
    while frame is not None:
        if frame.f_code.co_filename in HOOK_FILES:
            frames.clear()
        else:
            frames.append(frame)
        frame = frame.f_back
    return frames[::-1]
