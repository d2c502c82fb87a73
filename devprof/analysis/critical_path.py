"""The critical path: what the end of a capture, or of a step, had to wait for, back to its beginning."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from devprof.analysis.answer import Answer, Column
from devprof.analysis.device_order import DeviceOrder
from devprof.analysis.host_tiles import HostTiles, threads_that_work_for_each_other
from devprof.analysis.work import is_communication
from devprof.errors import UsageError
from devprof.model import ActivityType, Role
from devprof.store import Trace

__all__ = ["critical_path"]

_WORKING = (Role.OP, Role.LAUNCH, Role.OVERHEAD)
_ROLE_OF_TYPE: dict[int, Role] = {int(kind): kind.role for kind in ActivityType}
_BY = ("segment", "name", "kind")


class _Segment(NamedTuple):
    start_ns: int
    end_ns: int
    kind: str
    name: str
    row: int
    event: int


def critical_path(trace: Trace, step: int | None = None, *, by: str = "segment") -> Answer:
    """Return the chain of events that decided how long a capture, or a step, took.

    The chain is followed from the end backwards. Its segments tile the time without gap or overlap and add up to it exactly.

    - From the end of the window: to what ended last, device work or a thread with ops or ranges (one with calls only, such as
      one that polls, counts where there is no other). From the end of a step: to the thread of the step.
    - Device work waited for whichever was last of: the work before it on its stream; work on other streams that its stream was
      told to wait for (known where the trace has sync records); the call that launched it, or its op where calls are not
      recorded. A call that was not over when the work began counts with its begin, since work may start under it.
    - A host thread did one thing after the other; each moment belongs to its innermost event. A call that waits for the device
      leads to the work that it waited for (see `DeviceOrder.awaited`). Where a thread ran no op or call, and a thread that
      works for it (autograd's, known by forward and backward ops) came to an end meanwhile, the chain goes there.

    Args:
        trace: the trace.
        step: number of a step (``ProfilerStep#N``); of several with that number the one that ended last. None: the window.
        by: ``"segment"``: one row per segment, in their order; ``"name"``, ``"kind"``: their sums, the longest first.

    Returns:
        Columns of segments: ``start_ns`` (Unix ns), ``duration_ns``, ``kind`` (op, launch, sync, python, annotation, overhead;
        kernel, communication, copy, set; wait; unrecorded), ``name`` (of a wait its cause: launch latency, between work,
        dependency, other thread, unknown), ``place``, ``row``, ``event`` (its index; of a wait that which waited; -1: none).
        Of sums: ``kind``, ``name``, ``count``, ``total_ns``, ``total_share``.

    Raises:
        UsageError: there is no such step, or `by` is something else.
    """
    if by not in _BY:
        raise UsageError(f"by is {by!r}; expected one of {', '.join(map(repr, _BY))}")
    title = "critical path" if step is None else f"critical path of step {step}"
    if not len(trace) and step is None:
        segments: Sequence[_Segment] = ()
    elif step is None:
        segments = _Walk(trace, *_window(trace)).from_window()
    else:
        last = _step(trace, step)
        walk = _Walk(trace, int(trace.start_ns[last]), int(trace.end_ns[last]))
        segments = walk.from_thread(int(trace.row[last]))
    return _listed(trace, title, segments) if by == "segment" else _summed(title, segments, by)


class _Walk:
    """Follows the chain backwards, from `_now_ns` down to `_begin_ns`."""

    def __init__(self, trace: Trace, begin_ns: int, end_ns: int) -> None:
        self._trace = trace
        self._begin_ns, self._now_ns = begin_ns, end_ns
        self._tiles, self._order = HostTiles(trace), DeviceOrder(trace)
        self._partners = threads_that_work_for_each_other(trace)
        self._communicates = is_communication(trace)
        self._seen: set[int] = set()
        self._segments: list[_Segment] = []

    def from_window(self) -> list[_Segment]:
        """Return the chain from what ended last."""
        trace, end_ns = self._trace, self._now_ns
        last_work = self._order.last(end_ns)
        threads = [(self._thread_end(row), -row) for row in _program_threads(trace)]
        thread_end_ns, row = max(threads, default=(self._begin_ns, 0))
        work_end_ns = min(int(trace.end_ns[last_work]), end_ns) if last_work >= 0 else self._begin_ns
        self._take("unrecorded", "", max(thread_end_ns, work_end_ns), -1, -1)
        if last_work >= 0 and work_end_ns >= thread_end_ns:
            return self._followed(last_work, -1)
        return self._followed(-1, -row)

    def from_thread(self, row: int) -> list[_Segment]:
        """Return the chain from what a thread did last."""
        return self._followed(-1, row)

    def _thread_end(self, row: int) -> int:
        tile = self._tiles.before(row, self._now_ns)
        if tile < 0:
            return self._begin_ns
        # of a tile without event the begin is an event's end
        return self._now_ns if self._tiles.event[tile] >= 0 else int(self._tiles.time_ns[tile])

    def _followed(self, event: int, row: int) -> list[_Segment]:
        """Follow the chain from device work, or from a host thread where `event` is -1."""
        while self._now_ns > self._begin_ns:
            event, row = self._after_work(event) if event >= 0 else self._after_host(row)
        return self._segments[::-1]

    def _take(self, kind: str, name: str, since_ns: int, row: int, event: int) -> None:
        """Add the time since some moment to the chain."""
        since_ns = max(since_ns, self._begin_ns)
        if since_ns < self._now_ns:
            self._segments.append(_Segment(since_ns, self._now_ns, kind, name, row, event))
            self._now_ns = since_ns

    # -- devices ------------------------------------------------------------------------------------------------------

    def _after_work(self, event: int) -> tuple[int, int]:
        """Take a piece of work, and the time it waited; return the work or the host row (behind -1) that it waited for."""
        trace, order = self._trace, self._order
        self._seen.add(event)
        kind = "communication" if self._communicates[event] else self._role(event).value
        row = int(trace.row[event])
        self._take(kind, trace.name_of(event), int(trace.start_ns[event]), row, event)
        call = int(order.cause[event])
        found: list[tuple[int, int, int]] = []  # since when it could have begun, rank of equal ones, work or -1
        if call >= 0 and trace.start_ns[call] <= self._now_ns:
            over = trace.end_ns[call] <= self._now_ns
            found.append((int((trace.end_ns if over else trace.start_ns)[call]), 0, -1))
        for rank, earlier in ((2, int(order.before[event])), *((1, one) for one in order.waits.get(event, ()))):
            if earlier >= 0 and earlier not in self._seen and trace.start_ns[earlier] <= self._now_ns:
                found.append((min(int(trace.end_ns[earlier]), self._now_ns), rank, earlier))
        if not found:
            self._take("unrecorded", "", self._begin_ns, row, event)
            return -1, row
        ready_ns, rank, earlier = max(found)
        if earlier < 0:
            self._take("wait", "launch latency", int(trace.end_ns[call]), row, event)
            return -1, int(trace.row[call])
        cause = "dependency" if rank == 1 else "between work" if call >= 0 else "unknown"
        self._take("wait", cause, ready_ns, row, event)
        return earlier, -1

    # -- hosts --------------------------------------------------------------------------------------------------------

    def _after_host(self, row: int) -> tuple[int, int]:
        """Take the tile of a thread that ends now; return the work or the host row (behind -1) to go on with."""
        tile = self._tiles.before(row, self._now_ns)
        event = int(self._tiles.event[tile]) if tile >= 0 else -1
        since_ns = max(int(self._tiles.time_ns[tile]), self._begin_ns) if tile >= 0 else self._begin_ns
        role = self._role(event) if event >= 0 else Role.OTHER
        if role is Role.LAUNCH:
            awaited = self._order.awaited(event, since_ns, self._now_ns)
            if awaited >= 0 and awaited not in self._seen:
                self._take("sync", self._trace.name_of(event), int(self._trace.end_ns[awaited]), row, event)
                return awaited, -1
        elif role not in _WORKING:
            partner, end_ns = self._partner(row, since_ns)
            if partner >= 0:
                self._take("wait", "other thread", end_ns, row, event)
                return -1, partner
        self._take(self._kind(event), self._trace.name_of(event) if event >= 0 else "", since_ns, row, event)
        return -1, row

    def _partner(self, row: int, since_ns: int) -> tuple[int, int]:
        """Return the thread that works for this one and last came to an end since then, and when; -1: none did."""
        found = [(-1, -1)]
        for partner in self._partners.get(row, ()):
            end_ns = self._tiles.busy_end(partner, self._now_ns)
            if end_ns is not None and end_ns > since_ns and self._is_working(partner, end_ns):
                found.append((end_ns, -partner))
        end_ns, negative = max(found)
        return (-negative, end_ns) if end_ns >= 0 else (-1, -1)

    def _is_working(self, row: int, until_ns: int) -> bool:
        """Say whether what a thread did up to a time is an op or a call; else two threads could wait for each other here."""
        event = int(self._tiles.event[self._tiles.before(row, until_ns)])
        return event >= 0 and self._role(event) in _WORKING

    def _kind(self, event: int) -> str:
        if event < 0:
            return "unrecorded"
        if self._trace.activity_type[event] == ActivityType.PYTHON_FUNCTION:
            return "python"
        return self._role(event).value

    def _role(self, event: int) -> Role:
        return _ROLE_OF_TYPE.get(int(self._trace.activity_type[event]), Role.OTHER)


def _window(trace: Trace) -> tuple[int, int]:
    start_ns, end_ns = trace.user_window_ns
    if end_ns > start_ns:
        return start_ns, end_ns
    return int(trace.start_ns.min()), int(max(trace.end_ns.max(), trace.start_ns.max()))


def _program_threads(trace: Trace) -> list[int]:
    """Return the rows of the host that run the program: those with ops, ranges or functions, else all with calls."""
    hosts = ~trace.on_device
    ranges = trace.of_type(ActivityType.CPU_OP, ActivityType.USER_ANNOTATION, ActivityType.PYTHON_FUNCTION)
    rows: list[int] = np.unique(trace.row[ranges[hosts[ranges]]]).tolist()
    return rows or np.unique(trace.row[hosts]).tolist()


def _step(trace: Trace, step: int) -> int:
    names = [i for i, text in enumerate(trace.strings) if re.fullmatch(rf"ProfilerStep#0*{step}", text)]
    ranges = trace.of_type(ActivityType.USER_ANNOTATION)
    found = ranges[np.isin(trace.name[ranges], names)]
    if not len(found):
        raise UsageError(f"there is no step {step} in the trace; devprof.analysis.steps lists those that are")
    return int(found[np.argmax(trace.end_ns[found])])


def _listed(trace: Trace, title: str, segments: Sequence[_Segment]) -> Answer:
    rows = [trace.rows[one.row] if one.row >= 0 else None for one in segments]
    return Answer(
        title,
        {
            "start_ns": np.array([one.start_ns for one in segments], dtype=np.int64),
            "duration_ns": np.array([one.end_ns - one.start_ns for one in segments], dtype=np.int64),
            "kind": [one.kind for one in segments],
            "name": [one.name for one in segments],
            "place": [trace.places[row.place].title if row else "" for row in rows],
            "row": [row.name or str(row.id) if row else "" for row in rows],
            "event": np.array([one.event for one in segments], dtype=np.int64),
        },
    )


def _summed(title: str, segments: Sequence[_Segment], by: str) -> Answer:
    sums: dict[tuple[str, str], list[int]] = {}
    for one in segments:
        total = sums.setdefault((one.kind, one.name if by == "name" else ""), [0, 0])
        total[0] += 1
        total[1] += one.end_ns - one.start_ns
    span_ns = sum(ns for _, ns in sums.values())
    names: dict[str, Column] = {"name": [name for _, name in sums]} if by == "name" else {}
    columns: dict[str, Column] = {
        "kind": [kind for kind, _ in sums],
        **names,
        "count": [count for count, _ in sums.values()],
        "total_ns": np.array([ns for _, ns in sums.values()], dtype=np.int64),
        "total_share": [ns / max(span_ns, 1) for _, ns in sums.values()],
    }
    return Answer(f"{title} by {by}", columns).sorted_by("total_ns")
