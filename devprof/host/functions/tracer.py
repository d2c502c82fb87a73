"""`FunctionTracer`: start, stop, and the records of the calls between."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping

from devprof.errors import SessionError
from devprof.host.functions.choice import chosen_core
from devprof.host.functions.events import Captured, Core
from devprof.host.functions.records import HOST_TICKS, records
from devprof.model import ActivityBatch

__all__ = ["HOST_TICKS", "MAX_EVENTS", "FunctionTracer", "function_tracer"]

MAX_EVENTS = 4_000_000
"""Calls that a tracer records by default; 32 bytes each until it stops."""


class FunctionTracer:
    """Records function calls from `start()` to `stop()`; used once. Either may be called from any thread.

    Attributes:
        core: ``"native"``, ``"monitoring"`` or ``"setprofile"``.
        notes: after `stop()`: sentences on limits and conflicts.
        counts: after `stop()`: calls left out, by reason.
        threads: after `stop()`: names of the threads that were seen, by native id.
    """

    def __init__(self, core: Core, ticks: Callable[[], int]) -> None:
        self.core = core.name
        self.notes: tuple[str, ...] = ()
        self.counts: Mapping[str, int] = {}
        self.threads: Mapping[int, str] = {}
        self._core = core
        self._ticks = ticks
        self._state = "new"

    def start(self) -> None:
        """Begin to record; frames that are open now are taken as entered now.

        Raises:
            SessionError: another tracer is recording in this process, or this one has been started before.
        """
        _in_this_process.begin(self)
        try:
            self._core.start(self._ticks())
        except BaseException:  # an interrupt, too, must not leave hooks behind
            _in_this_process.end(self)
            self._core.forget()
            raise

    def stop(self) -> ActivityBatch:
        """Stop recording and return the calls, in order of entering per thread.

        In a forked child of the recording process the batch is empty: nothing is recorded there.

        Raises:
            SessionError: it is not recording.
        """
        state = _in_this_process.end(self)
        captured = self._core.stop() if state == "recording" else Captured((), (), (), ())
        found = records(captured, stop_ticks=self._ticks())
        self.threads = {thread.native_id: thread.name for thread in captured.threads}
        self.counts = {"devprof's own": found.own, "beyond max_events": captured.beyond_limit}
        self.notes = (*self._core.notes, *_notes(captured, found.mended, forked=state == "forked"))
        return found.batch

    def _forget(self) -> None:
        self._state = "forked"
        self._core.forget()


class _InThisProcess:
    """The one tracer that records."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tracer: FunctionTracer | None = None
        self._watches = False

    def begin(self, tracer: FunctionTracer) -> None:
        with self._lock:
            if tracer._state != "new":
                raise SessionError("this function tracer has been started before; make a new one")
            if self._tracer is not None:
                raise SessionError("function calls are being recorded already in this process; stop that tracer first")
            if not self._watches:
                os.register_at_fork(after_in_child=self._forked)
                atexit.register(self._exiting)
                self._watches = True
            self._tracer, tracer._state = tracer, "recording"

    def end(self, tracer: FunctionTracer) -> str:
        with self._lock:
            state = tracer._state
            if state not in ("recording", "forked"):
                raise SessionError("this function tracer is not recording; call start() first, and stop() once")
            self._tracer, tracer._state = None, "stopped"
            return state

    def _exiting(self) -> None:
        if self._tracer is not None:
            self._tracer._core.forget()  # before the interpreter takes apart what hooks need

    def _forked(self) -> None:
        self._lock = threading.Lock()  # the parent's may have been held
        tracer, self._tracer = self._tracer, None
        if tracer is not None:
            tracer._forget()


_in_this_process = _InThisProcess()


def _notes(captured: Captured, mended: int, *, forked: bool) -> list[str]:
    notes = []
    if forked:
        notes.append("This process was forked from the one that records function calls; none were recorded here.")
    if captured.beyond_limit:
        notes.append(f"{captured.beyond_limit} function calls came after the limit of max_events and are left out.")
    if mended:
        greenlets = " (greenlets switch stacks, which cannot be followed)" if "greenlet" in sys.modules else ""
        notes.append(
            f"On {mended} thread(s) calls did not end in the order of entering{greenlets}; ends are approximate."
        )
    return notes


def function_tracer(
    *, ticks: Callable[[], int] = time.perf_counter_ns, with_modules: bool = False, max_events: int = MAX_EVENTS
) -> FunctionTracer:
    """Return a tracer with the best core of this interpreter.

    Args:
        ticks: the clock; another one than `time.perf_counter_ns` is read by the cores in Python only.
        with_modules: has no effect: calls of modules are always named, as torch does it.
        max_events: calls to record; further ones are counted.
    """
    return FunctionTracer(chosen_core(max_events, ticks), ticks)
