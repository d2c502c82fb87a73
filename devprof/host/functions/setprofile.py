"""`SetprofileCore`: the core in Python for 3.11: the calling thread, and threads that begin later."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

from devprof.host.functions.events import Captured
from devprof.host.functions.recorder import Hooks, Recorder

__all__ = ["SetprofileCore"]


class SetprofileCore:
    """Records through `sys.setprofile` and `threading.setprofile`; implements `Core`."""

    name = "setprofile"

    def __init__(self, max_events: int, ticks: Callable[[], int]) -> None:
        self.notes = [
            "Function calls of threads that ran already at the start are not recorded, other than the starting one's."
        ]
        self._recorder = Recorder(max_events, ticks)
        self._gone = threading.Event()
        self._hook = _hook(self._recorder.hooks(frames_between=1), self._gone)
        self._home = 0

    def start(self, start_ticks: int) -> None:
        """Put the hooks in where no other profiler has one."""
        if threading.getprofile() is None:
            threading.setprofile(self._hook)
        else:
            self.notes.append(
                "Another profiler holds threading.setprofile; function calls of new threads are not recorded."
            )
        if sys.getprofile() is not None:
            self.notes.append("Another profiler holds sys.setprofile; function calls of this thread are not recorded.")
            return
        self._home = threading.get_ident()
        self._recorder.opened(sys._getframe(), self._home, start_ticks)
        sys.setprofile(self._hook)

    def stop(self) -> Captured:
        """Take the hooks out of this thread and of new ones; another thread's hook takes itself out at its next call."""
        self.forget()
        return self._recorder.captured()

    def forget(self) -> None:
        """Take the hooks out as far as they are still the own ones."""
        here = sys.getprofile()
        if here is self._hook:
            sys.setprofile(None)
        elif self._home == threading.get_ident():
            self._replaced("sys.setprofile")
        self._gone.set()
        if threading.getprofile() is self._hook:
            threading.setprofile(None)

    def _replaced(self, where: str) -> None:
        self.notes.append(f"Another profiler replaced the hook of {where}; calls after that are not recorded.")


def _hook(hooks: Hooks, gone: threading.Event) -> Callable[[FrameType, str, Any], None]:
    enter, leave, enter_c, leave_c = hooks

    def hook(frame: FrameType, event: str, argument: Any) -> None:
        if gone._flag:  # type: ignore[attr-defined]  # a plain read
            if sys.getprofile() is hook:
                sys.setprofile(None)
        elif event == "call":
            enter(frame.f_code, frame.f_lasti)
        elif event == "return":
            leave(frame.f_code)
        elif argument is sys.setprofile:
            pass  # begun under one hook and ended under another, it would never pair up
        elif event == "c_call":
            enter_c(None, 0, argument, None)
        else:
            leave_c(None, 0, argument, None)

    return hook
