"""`Player`: where a replay is in its recording, and which live id, thread and time stand for each recorded one.

A replayed session runs beside a live program: the kit's, the recorded host's side, or any other. Three things are carried over:

* **ids**. The op that is live at a call of the workload stands for the one that was current at the recorded call, and for ops
  within that one; a range of the replayed host's side for the recorded range; else the k-th op of the session for its k-th
  recorded op. An id that no recorded op had stays, and is moved out of the way where a live op happens to have it.
* **threads**. The thread of a call or a range stands for the recorded thread.
* **times**. The recording is shifted to the session's start. Where the live program is slower than the recorded one, what comes
  later is shifted by as much more; where it is faster, calls of the workload wait.
"""

from __future__ import annotations

import bisect
import threading
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from devprof.contract import MemoryReporter
from devprof.errors import DevprofError, UsageError
from devprof.model import ActivityBatch
from devprof.replay.recording import HostRanges, MemoryReport, RecordedSession, Recording, WorkCall

__all__ = ["Live", "Player", "ReplayedError"]

_FOREIGN = 2**40
"""Added to an id that no recorded op had and that a live op has."""

_BEFORE_CALL_NS = 50_000
"""How much earlier than a call its records may seem to be: they may be stamped by another clock."""

_DEEPEST = 1000
"""Ranges within each other that are looked through."""


class ReplayedError(DevprofError):
    """What a recorded call raised, raised again."""


class Live:
    """What stands for the recorded ids, threads and times in one live session. Used from any thread."""

    def __init__(self, recorded: RecordedSession, now_ns: Callable[[], int]) -> None:
        """Begin where nothing is known.

        Args:
            recorded: the session that is replayed.
            now_ns: the live host's clock, Unix ns.
        """
        self.recorded = recorded
        self.now_ns = now_ns
        self.memory: MemoryReporter | None = None
        self._ids: dict[int, int] = {}
        self._threads: dict[int, int] = {}
        self._pushed: list[int] = []
        self._pushed_ids: frozenset[int] = frozenset()
        self._around: dict[int, int] = {}
        self._from: list[int] = []
        self._by: list[int] = []
        self._lock = threading.Lock()
        self.start(recorded.started_ns)

    def start(self, recorded_ns: int) -> None:
        """Say that now is that time of the recording."""
        self._from, self._by = [-(2**63)], [self.now_ns() - recorded_ns]
        self._last_ns = recorded_ns

    @property
    def first_shift_ns(self) -> int:
        """Live time minus recorded time at the start."""
        return self._by[0]

    @property
    def shift_ns(self) -> int:
        """Live time minus recorded time, by now."""
        return self._by[-1]

    def slip(self, recorded_ns: int, now_ns: int) -> None:
        """Say that a recorded time is now; where that is later than it should be, what follows is later too."""
        with self._lock:
            self._last_ns = max(self._last_ns, recorded_ns)
            if (late := now_ns - recorded_ns) > self._by[-1]:
                at = max(recorded_ns - _BEFORE_CALL_NS, self._from[-1] + 1)
                self._from.append(at)
                self._by.append(late)

    def shifts_at(self, recorded_ns: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return by how much each recorded time is shifted: (n,) int64."""
        at = np.searchsorted(np.array(self._from, np.int64), recorded_ns, side="right") - 1
        return np.array(self._by, np.int64)[at]

    def shifts_until(self, recorded_ns: npt.NDArray[np.int64], end_ns: int) -> npt.NDArray[np.int64]:
        """As `shifts_at`, for host calls of a session that ended at `end_ns`, which may be sooner than it did.

        Nothing waits between the last call of the workload and the end. What the backend's own code called there is moved
        closer together, so that it is as much within the window as it was.
        """
        shifts = self.shifts_at(recorded_ns)
        room_ns, recorded_room_ns = end_ns - self._last_ns - self.shift_ns, self.recorded.window_end_ns - self._last_ns
        if not 0 <= room_ns < recorded_room_ns:
            return shifts
        since_ns = recorded_ns - self._last_ns
        is_last = (since_ns > 0) & (since_ns <= recorded_room_ns)
        closer = self.shift_ns - np.ceil(since_ns * (1 - room_ns / recorded_room_ns)).astype(np.int64)
        return np.where(is_last, closer, shifts)

    def report(self, one: MemoryReport) -> None:
        """Report the device's memory to the live host, where it wants to hear of it."""
        memory = self.memory
        sizes = (one.allocated_bytes, one.reserved_bytes, one.device)
        if memory is not None and one.failed:
            memory.report_out_of_memory(one.delta_bytes, *sizes)
        elif memory is not None:
            memory.report_memory_usage(one.address, one.delta_bytes, *sizes)

    # -- ids and threads ----------------------------------------------------------------------------------------------

    def pushed(self, id: int) -> None:
        """Note an op that began live."""
        self._pushed.append(id)

    def stands_for(self, recorded_id: int, live_id: int) -> None:
        """Let a live id stand for a recorded one; the first that does so stays."""
        if recorded_id and live_id:
            self._ids.setdefault(recorded_id, live_id)

    def thread_stands_for(self, recorded_thread: int) -> None:
        """Let the calling thread stand for a recorded one."""
        if recorded_thread:
            self._threads.setdefault(recorded_thread, threading.get_native_id())

    def translated(self, batch: ActivityBatch) -> ActivityBatch:
        """Return a batch with live ids and threads in place of recorded ones."""
        self._by_order()
        return replace(
            batch,
            linked=_mapped(batch.linked, self._id),
            linked_user=_mapped(batch.linked_user, self._id),
            thread_id=_mapped(batch.thread_id, lambda thread: self._threads.get(thread, thread)),
        )

    def _id(self, recorded_id: int) -> int:
        around = recorded_id
        for _ in range(_DEEPEST):
            if (found := self._ids.get(around)) is not None:
                return found
            around = self._around.get(around, 0)
        return recorded_id + _FOREIGN if recorded_id in self._pushed_ids else recorded_id

    def _by_order(self) -> None:
        """Let ops that nothing else was said of stand for those that began as the k-th of the session too."""
        self._pushed_ids = frozenset(self._pushed)
        self._around = _around(self.recorded.host)
        if not self._ids and len(self.recorded.host):
            self._ids = dict(zip(self.recorded.host.id.tolist(), self._pushed, strict=False))


def _around(host: HostRanges) -> dict[int, int]:
    """Return by id the id of the range around it, on its thread."""
    found: dict[int, int] = {}
    open_on: dict[int, list[tuple[int, int]]] = {}
    rows = zip(host.id.tolist(), host.thread_id.tolist(), host.start_ns.tolist(), host.end_ns.tolist(), strict=True)
    for number, thread, start_ns, end_ns in rows:
        stack = open_on.setdefault(thread, [])
        while stack and stack[-1][1] <= start_ns:
            stack.pop()
        if stack and stack[-1][0] != number:
            found.setdefault(number, stack[-1][0])
        stack.append((number, end_ns))
    return found


def _mapped(values: npt.NDArray[np.int64], of: Callable[[int], int]) -> npt.NDArray[np.int64]:
    found, at = np.unique(values, return_inverse=True)
    return np.array([of(value) if value else 0 for value in found.tolist()], np.int64)[at] if len(found) else values


class Player:
    """Gives sessions and calls of a recording in their order. Used from any thread.

    Attributes:
        recording: the recording.
    """

    def __init__(self, recording: Recording) -> None:
        """Begin at the start."""
        self.recording = recording
        self.live: Live | None = None
        self._scope = ""
        self._sessions: dict[str, list[RecordedSession]] = {}
        self._calls: dict[str, list[WorkCall]] = {}
        self._next: dict[str, int] = {}
        self._lives: list[Live] = []
        self._lock = threading.Lock()
        for session in recording.sessions:
            self._sessions.setdefault(session.scope, []).append(session)
        self._left: list[WorkCall] = []
        for call in recording.calls:
            self._calls.setdefault(call.scope, []).append(call)
        self.enter("")

    def enter(self, scope: str) -> str:
        """Go to a check's part of the recording; one that was recorded under one host alone serves the other too.

        Returns:
            What the replay lacks for that check, in words; empty: nothing.
        """
        other = scope.rsplit(" ", 1)[0] + " python"
        is_recorded = not scope or scope in self._sessions or scope in self._calls
        self._scope = scope if is_recorded and not self._tells_elsewhere(scope, other) else other
        self._next[self._scope] = 0
        self._left = list(self._calls.get(self._scope, ()))
        self._lives.clear()
        self.live = None
        ran = self.recording.workload.get("ran", [])
        not_there = scope.startswith("C") and self._scope not in ran
        return "a recording of this check: it was skipped, or is about the plugin's own code" if not_there else ""

    def _tells_elsewhere(self, scope: str, other: str) -> bool:
        """Say whether the device's memory was reported to the host past the session, as by an allocator of torch's."""
        allocates = any(call.method == "allocate" for call in self._calls.get(scope, ()))
        said, said_there = (any(one.reports for one in self._sessions.get(where, ())) for where in (scope, other))
        return allocates and not said and said_there

    def next_session(self) -> RecordedSession:
        """Return the next session; a recorded program begins again when it is over.

        Raises:
            UsageError: there is none.
        """
        with self._lock:
            found = self._sessions.get(self._scope, [])
            at = self._next.get(self._scope, 0)
            if not found or (at >= len(found) and self._scope):
                where = f"for {self._scope}" if self._scope else "that a program could replay"
                raise UsageError(
                    f"the recording has no {'further ' if found else ''}session {where}: it was made with another version "
                    "of the kit or the workload; record it again"
                )
            self._next[self._scope] = at + 1
            return found[at % len(found)]

    def begin(self, recorded: RecordedSession, now_ns: Callable[[], int]) -> Live:
        """Note that a live session replays a recorded one."""
        self.live = Live(recorded, now_ns)
        self._lives.append(self.live)
        return self.live

    def take(self, method: str, words: str) -> WorkCall:
        """Return the next recorded call of that method with these arguments.

        Raises:
            UsageError: there is none left.
        """
        with self._lock:
            for at, call in enumerate(self._left):
                if call.method == method and call.words == words:
                    return self._left.pop(at)
        raise UsageError(
            f"the recording has no further call {method}({words}) in {self._scope or 'it'}: it was made with another version "
            "of the kit or the workload; record it again"
        )

    def wait_for(self, recorded_ns: int) -> None:
        """Wait until a recorded time comes in the live session; where it is past, note how late it is."""
        live = self.live
        if live is None:
            return
        ahead_ns = recorded_ns + live.shift_ns - live.now_ns()
        if ahead_ns > 0:
            time.sleep(ahead_ns / 1e9)
        live.slip(recorded_ns, live.now_ns())

    def report_memory(self, begin_ns: int, end_ns: int) -> None:
        """Report the memory that was reported in that stretch of the recording, to the session that it was reported to."""
        for live in self._lives:
            times = [report.at_ns for report in live.recorded.reports]
            first, last = bisect.bisect_left(times, begin_ns), bisect.bisect_right(times, end_ns)
            for one in live.recorded.reports[first:last]:
                live.report(one)
