"""`HostRecorder`: one session of host recording, from start to the columns."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from devprof import correlation
from devprof.errors import SessionError
from devprof.host.callbacks import CALLBACKS
from devprof.host.carry import unwrap_pools, wrap_pools
from devprof.host.gate import GATE, next_ids
from devprof.host.mirrors import Mirror, Mirrors
from devprof.host.provider import RangeProvider
from devprof.host.queues import Queue, ThreadQueues
from devprof.host.quick import with_choice
from devprof.host.recording import HostOptions, HostRecording
from devprof.host.watching import arrange

if TYPE_CHECKING:
    from devprof.host.functions import FunctionTracer
    from devprof.host.keeping import Keeper

__all__ = ["HostRecorder"]

_provider = RangeProvider()
_active: HostRecorder | None = None


class HostRecorder:
    """Records ranges, memory and functions of this process, once, from `start()` to `stop()`; one at a time per process.

    `start`, `toggle` and `stop` may be called on different threads, one at a time. Every thread is recorded, also those that
    start or end meanwhile. In the child of a fork nothing is recorded, and a recorder of its own may start.
    """

    def __init__(
        self,
        options: HostOptions | None = None,
        *,
        clock_ticks: Callable[[], int] = time.perf_counter_ns,
        mirrors: Iterable[Mirror] = (),
    ) -> None:
        """Make a recorder that has not started.

        Args:
            options: what to record; by default ranges.
            clock_ticks: the clock; any thread calls it, twice per range. Its numbers are not negative and do not fall.
            mirrors: pairs ``(push(kind, id), pop(kind))`` for stacks that plugins keep themselves; see `Mirrors`.
        """
        self.options = options or HostOptions()
        self._clock = clock_ticks
        self._mirrors = Mirrors(mirrors) if (mirrors := tuple(mirrors)) else None
        self._everything: list[Queue] = []
        self._queues: ThreadQueues | None = None
        self._keeper: Keeper | None = None
        self._copying = threading.Lock()
        self._discarded: Counter[str] = Counter()
        self._tracer: FunctionTracer | None = None
        self._outer_provider: correlation.CorrelationProvider | None = None
        self._started_ticks = 0
        self._is_enabled = False
        self._state = "new"

    def prepare(self) -> None:
        """Do beforehand what takes long once in a process, such as building what is compiled; else `start` does it.

        Raises:
            UsageError, BuildError: as `start`.
        """
        if self.options.record_ranges:
            with_choice()
        if self.options.with_stack and self._tracer is None:
            from devprof.host.functions import function_tracer

            self._tracer = function_tracer(ticks=self._clock, with_modules=self.options.with_modules)

    def start(self) -> None:
        """Begin to record.

        Raises:
            SessionError: another recorder records in this process, or this one has started before.
            UsageError, BuildError: ``DEVPROF_RANGES`` or ``DEVPROF_FUNCTION_TRACER`` asks for what there is not.
        """
        global _active
        is_ours = False
        try:
            with GATE.lock:
                if self._state != "new":
                    raise SessionError(f"this recorder is {self._state}; a recorder is used once: make another one")
                if _active is not None:
                    raise SessionError(
                        "another host recorder is recording in this process: stop it before you start one"
                    )
                is_ours, _active, self._state = True, self, "recording"
            self._begin()
        except BaseException:  # an interrupt may come anywhere
            if is_ours:
                self._state = "failed"
                self._end()
                self._drop_tracer()
            raise

    def toggle(self, enabled: bool) -> None:
        """Stop taking new events, or take them again; a range that is open ends as it does.

        Source: torch.profiler.profile.toggle_collection_dynamic.

        Raises:
            SessionError: it is not recording.
        """
        with GATE.lock:
            self._check_recording()
            if enabled != self._is_enabled and self._state == "recording":
                self._open(enabled)

    def stop(self) -> HostRecording:
        """Stop recording and return what was recorded; ranges that are open end now.

        In the child of a fork that happened while it recorded, the recording is empty.

        Raises:
            SessionError: it is not recording.
        """
        with GATE.lock:
            self._check_recording()
            is_forked, self._state = self._state == "forked", "stopped"
        if not is_forked:
            self._end()
        stopped_ticks = self._clock()
        functions = None if self._tracer is None else self._tracer.stop()
        if self._mirrors is not None and not is_forked:
            self._mirrors.close()
        from devprof.host.assembling import Gathered, assembled, at_end  # numpy is loaded for a result, not for a range

        with self._copying:
            first_id = self._first_id
            parts, gone = at_end(self._everything, self._keeper)
            self._everything.clear()
            self._queues = None
        gathered = Gathered(parts, first_id, self._started_ticks, stopped_ticks, gone=gone)
        return assembled(gathered, functions, self._threads(), self._counts(), self._notes(is_forked))

    def snapshot(self, since_ticks: int | None = None) -> HostRecording:
        """Return what has been recorded so far, of ranges and memory; recording goes on. Callable from any thread.

        Args:
            since_ticks: what ended before is left out; None: nothing is.

        Raises:
            SessionError: it is not recording.
        """
        from devprof.host.assembling import Gathered, assembled, so_far
        from devprof.host.cutting import since

        with self._copying:
            if self._state != "recording" or self._queues is None:
                raise SessionError(f"this recorder is {self._state}, expected one that is recording")
            parts, gone, left_out = so_far(self._everything, self._keeper, since_ticks or 0)
            gathered = Gathered(parts, self._first_id, self._started_ticks, self._clock(), left_out, gone)
        recording = assembled(gathered, None, {}, self._counts(), self._notes(False))
        return recording if since_ticks is None else since(recording, since_ticks)

    def __repr__(self) -> str:
        return f"HostRecorder({self._state}, {self.options})"

    def _begin(self) -> None:
        options = self.options
        self.prepare()
        first_id = next_ids()
        self._queues = self._new_queues(first_id)
        if options.record_ranges:
            _provider.begin(first_id)
            self._outer_provider = correlation.set_provider(_provider)
            wrap_pools()
        if self._tracer is not None:
            self._tracer.start()
        self._started_ticks = self._clock()
        with GATE.lock:
            GATE.count_late = self._count_late
            self._open(True)

    def _new_queues(self, first_id: int) -> ThreadQueues:
        limits, shapes = self.options.limits, self.options.record_shapes
        if limits is None:
            return ThreadQueues(self._clock, shapes, self._everything, first_id)
        from devprof.host.keeping import Keeper, KeptQueues

        self._keeper = Keeper(limits)
        return KeptQueues(self._clock, shapes, self._keeper, first_id)

    @property
    def _first_id(self) -> int:
        return 0 if self._queues is None else self._queues.first_id

    def _end(self) -> None:
        global _active
        with GATE.lock:
            self._open(False)
            GATE.count_late = None
            if self.options.record_ranges:
                unwrap_pools()
                replaced = correlation.set_provider(self._outer_provider)
                if replaced is not _provider and replaced is not None:
                    correlation.set_provider(replaced)  # somebody took over meanwhile, and keeps it
            _active = None

    def _drop_tracer(self) -> None:
        if self._tracer is not None:
            with suppress(SessionError):  # it was not started, or has undone that itself
                self._tracer.stop()

    def _open(self, enabled: bool) -> None:
        self._is_enabled = enabled
        GATE.memory = self._queues if enabled and self.options.profile_memory else None
        GATE.recording = self._queues if enabled and self.options.record_ranges else None
        GATE.mirrors = self._mirrors if enabled else None
        arrange()

    def _check_recording(self) -> None:
        if self._state not in ("recording", "forked"):
            raise SessionError(f"this recorder is {self._state}, expected one that is recording")

    def _count_late(self) -> None:
        with GATE.lock:
            self._discarded["exits of an earlier session"] += 1

    def _threads(self) -> dict[int, str]:
        return {} if self._tracer is None else dict(self._tracer.threads)

    def _counts(self) -> dict[str, int]:
        calls = {} if self._tracer is None else self._tracer.counts
        return {**{f"function calls, {reason}": count for reason, count in calls.items() if count}, **self._discarded}

    def _notes(self, is_forked: bool) -> tuple[str, ...]:
        forked = ("This process was forked from the one that records; nothing was recorded here.",) if is_forked else ()
        tracer = () if self._tracer is None else tuple(self._tracer.notes)
        kept = () if self._keeper is None else tuple(self._keeper.notes)
        return (*forked, *kept, *tracer, *(self._mirrors.notes if self._mirrors is not None else ()))

    def _forked(self) -> None:
        # nothing is recorded in the child; what was recorded before the fork is the parent's
        self._state = "forked"
        self._everything, self._keeper, self._copying = [], None, threading.Lock()
        if self.options.record_ranges:
            unwrap_pools()
            correlation.set_provider(self._outer_provider)


def _after_fork_in_child() -> None:
    global _active
    active, _active = _active, None
    if active is not None:
        active._forked()
    CALLBACKS.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
