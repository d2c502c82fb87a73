"""`sys.monitoring` on 3.12 and later: a tool of our own among the others, and `MonitoringCore`, the core in Python."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from devprof.host.functions.events import Captured
from devprof.host.functions.recorder import Recorder

__all__ = ["ENTERS", "LEAVES", "MONITORING", "MonitoringCore", "Tool"]

MONITORING: Any = vars(sys).get("monitoring")
"""The module of 3.12 and later; the type checker looks at 3.11, which has none."""

_NAME = "devprof.functions"
ENTERS = ("PY_START", "PY_RESUME", "PY_THROW")
"""Events at which a frame begins or goes on."""
LEAVES = ("PY_RETURN", "PY_YIELD", "PY_UNWIND")
"""Events at which a frame ends or waits."""
_TOOL_IDS = (4, 3, 2, 5, 1, 0)  # those that nobody is meant to have first: cProfile, for one, insists on PROFILER_ID

Callback = Callable[..., object]
"""What `sys.monitoring` calls; what it returns is None."""


class Tool:
    """An id of `sys.monitoring`, with callbacks by event name. Never takes an id or a callback from another tool."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self._id: int | None = None
        self._callbacks: dict[int, Callback] = {}

    def claim(self, callbacks: Mapping[str, Callback]) -> Callable[[], None] | None:
        """Take a free id and register the callbacks; return what switches them on, None where every id is taken."""
        taken = [name for tool in range(6) if (name := MONITORING.get_tool(tool)) is not None]
        if taken:
            self.notes.append(
                f"Also watching through sys.monitoring, and slowing what is recorded: {', '.join(taken)}."
            )
        if sys.getprofile() is not None:
            self.notes.append("Also watching through sys.setprofile, and slowing what is recorded: another profiler.")
        self._id = next((tool for tool in _TOOL_IDS if MONITORING.get_tool(tool) is None), None)
        if self._id is None:
            self.notes.append("Every id of sys.monitoring is taken by another tool; function calls are not recorded.")
            return None
        MONITORING.use_tool_id(self._id, _NAME)
        self._callbacks = {getattr(MONITORING.events, name): callback for name, callback in callbacks.items()}
        for event, callback in self._callbacks.items():
            MONITORING.register_callback(self._id, event, callback)
        return partial(MONITORING.set_events, self._id, sum(self._callbacks))

    def release(self) -> None:
        """Switch the events off and give the id back, as far as they are still ours."""
        tool, self._id = self._id, None
        if tool is None:
            return
        if MONITORING.get_tool(tool) != _NAME:
            self.notes.append("Another tool took devprof's id of sys.monitoring; calls after that are not recorded.")
            return
        MONITORING.set_events(tool, 0)
        theirs = {event: found for event in self._callbacks if (found := self._unregistered(tool, event)) is not None}
        if not theirs:
            MONITORING.free_tool_id(tool)
            return
        self.notes.append("Another tool put its own callbacks in place of devprof's; some calls are not recorded.")
        for event, callback in theirs.items():
            MONITORING.register_callback(tool, event, callback)
        MONITORING.set_events(tool, sum(theirs) | (MONITORING.events.CALL if _needs_call(theirs) else 0))

    def _unregistered(self, tool: int, event: int) -> Callback | None:
        found: Callback | None = MONITORING.register_callback(tool, event, None)
        return None if found is self._callbacks[event] else found


def _needs_call(events: Iterable[int]) -> bool:
    monitored = MONITORING.events
    return any(event in (monitored.C_RETURN, monitored.C_RAISE) for event in events)


class MonitoringCore:
    """Records through `sys.monitoring`, on every thread; implements `Core`."""

    name = "monitoring"

    def __init__(self, max_events: int, ticks: Callable[[], int]) -> None:
        self._recorder = Recorder(max_events, ticks)
        self._tool = Tool()
        self.notes = self._tool.notes

    def start(self, start_ticks: int) -> None:
        """Switch the events on, and take the frames that are open on every thread."""
        enter, leave, enter_c, leave_c = self._recorder.hooks(frames_between=0)
        callbacks = dict.fromkeys(ENTERS, enter) | dict.fromkeys(LEAVES, leave)
        switch_on = self._tool.claim(callbacks | {"CALL": enter_c, "C_RETURN": leave_c, "C_RAISE": leave_c})
        if switch_on is not None:
            # in one call of C, so that no other thread runs between the two
            _, frames = map(operator.call, (switch_on, sys._current_frames))
            for ident, frame in (frames or {}).items():
                self._recorder.opened(frame, ident, start_ticks)

    def stop(self) -> Captured:
        """Give the events and the id back."""
        self.forget()
        return self._recorder.captured()

    def forget(self) -> None:
        """Give the events and the id back; nothing is recorded any more."""
        self._tool.release()
