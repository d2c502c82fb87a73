"""`Live`: what a profile answers while it records."""

from __future__ import annotations

import math

from devprof.capture.hosting import ProfilerHost
from devprof.errors import SessionError, UsageError
from devprof.profiler.results import Results
from devprof.profiler.runs import Run, refuse_in_hooks
from devprof.store import Trace
from devprof.store.totals import NameTotal

__all__ = ["Live"]


class Live(Results):
    """Questions on what is being recorded. No lock is taken that a start, a step or a stop holds."""

    _host: ProfilerHost
    _run: Run | None = None

    def snapshot(self, seconds: float | None = None) -> Trace:
        """Return what was recorded in the last seconds; recording goes on. Callable from any thread, any number of times.

        Ranges that are open end now, with "finished" false; those that were open at the window's start are whole. A plugin's
        records are in it where it can hand them over while it records.

        Args:
            seconds: length of the window, which ends now; None: all that is kept.

        Raises:
            SessionError: nothing is being recorded at this moment, or this is inside a plugin's hook.
            UsageError: `seconds` is not above zero, or torch records: it hands out nothing before it stops.
        """
        if seconds is not None and not (isinstance(seconds, int | float) and 0 < seconds < math.inf):
            raise UsageError(f"snapshot: seconds is {seconds!r}; expected more than 0, or None for all that is kept")
        refuse_in_hooks("snapshot", "ask a profile what it waits to hear")
        self._check_recording("snapshot")
        return self._host.snapshot(seconds)

    def totals(self) -> list[NameTotal]:
        """Return counts and times per name since the start, the greatest first, where ``when_full="totals"``; on any thread.

        Raises:
            SessionError: this is inside a plugin's hook.
            UsageError: the profile keeps no totals.
        """
        refuse_in_hooks("totals", "ask a profile what it waits to hear")
        return self._host.totals()

    def _check_recording(self, call: str) -> None:
        run = self._run
        if run is None:
            raise SessionError(f"{call}() on a profile that is not running; call start() first, or use a with block")
        if not run.is_ours:
            raise SessionError(f"{call}() in a process that was forked from the one that records; ask there")
