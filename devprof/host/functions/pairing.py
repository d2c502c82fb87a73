"""Pairs of enters and leaves: which leave ends which call, and which call a call happened in.

The stack of every thread is matched by depth, on arrays: an enter is ended by the next leave of its level.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from devprof.host.functions.events import CALL_OF_C, EVENT, LEAVE, MODULE, EventArray

__all__ = ["Calls", "paired"]

_FLAGS = np.uint32(LEAVE | MODULE)  # what an enter and its leave may differ in


@dataclass(frozen=True, slots=True, eq=False)
class Calls:
    """Calls as columns of one length ``n``: thread by thread, each in the order of entering.

    Attributes:
        thread: (n,) int64, index of the thread.
        what: (n,) uint32, as in `EVENT`.
        extra: (n,) int32, as in `EVENT`.
        start: (n,) int64, ticks.
        end: (n,) int64, ticks.
        parent: (n,) int64, index of the call around it on its thread, -1: none.
        finished: (n,) bool, False where no leave was seen.
        mended: threads whose events did not pair up, so that calls were closed with the call around them.
    """

    thread: npt.NDArray[np.int64]
    what: npt.NDArray[np.uint32]
    extra: npt.NDArray[np.int32]
    start: npt.NDArray[np.int64]
    end: npt.NDArray[np.int64]
    parent: npt.NDArray[np.int64]
    finished: npt.NDArray[np.bool_]
    mended: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class _Stream:
    """Events of all threads, one thread after the other.

    `first` holds where a thread begins, `depth` how many calls of the thread are open after each event.
    """

    events: EventArray
    thread: npt.NDArray[np.int64]
    first: npt.NDArray[np.int64]
    leave: npt.NDArray[np.bool_]
    depth: npt.NDArray[np.int64]

    @classmethod
    def of(cls, events: EventArray, thread: npt.NDArray[np.int64]) -> _Stream:
        leave = (events["what"] & LEAVE) != 0
        total = np.cumsum(np.where(leave, -1, 1))
        first = np.flatnonzero(np.diff(thread, prepend=-1))
        before = np.concatenate(([0], total))[first]
        return cls(events, thread, first, leave, total - np.repeat(before, np.diff(first, append=len(thread))))

    def without(self, rows: npt.NDArray[np.int64]) -> _Stream:
        if not len(rows):
            return self
        return _Stream.of(np.delete(self.events, rows), np.delete(self.thread, rows))


def paired(threads: Sequence[EventArray], *, stop_ticks: int) -> Calls:
    """Return the calls of all threads.

    A leave that no enter of its thread precedes is left out; a call without a leave ends at `stop_ticks`.

    Args:
        threads: events of each thread.
        stop_ticks: end of what is still open.
    """
    matched = _matched(_stream(threads))
    mended = set(matched.stream.thread[matched.strangers()].tolist())
    if mended:
        matched = _matched(_stream([_mended(one) if i in mended else one for i, one in enumerate(threads)]))
    return _calls(matched, stop_ticks, len(mended))


def _stream(threads: Sequence[EventArray]) -> _Stream:
    events = np.concatenate([np.empty(0, EVENT), *threads])
    thread = np.repeat(np.arange(len(threads)), [len(one) for one in threads])
    stream = _Stream.of(events, thread)
    # first among those of C alone: a thread may have been in a C function at the start, which no frame tells
    of_c = np.flatnonzero(events["what"] & CALL_OF_C)
    stream = stream.without(of_c[_early_leaves(_Stream.of(events[of_c], thread[of_c]))])
    return stream.without(np.flatnonzero(_early_leaves(stream)))


def _early_leaves(stream: _Stream) -> npt.NDArray[np.bool_]:
    """Return the leaves that take their thread below the depth it began with: each reaches a new minimum."""
    if not len(stream.depth) or stream.depth.min() >= 0:
        return np.zeros(len(stream.depth), np.bool_)
    # every thread lies below the one before, so that one running minimum serves them all
    ground = stream.thread * -(2 * len(stream.depth) + 2)
    lowest = np.minimum.accumulate(stream.depth + ground)
    before = np.minimum(np.concatenate(([0], lowest[:-1])), ground)
    return stream.leave & (stream.depth + ground < before)


def _levels(stream: _Stream) -> npt.NDArray[np.int64]:
    """Return a number per event that is equal for one level of one thread, and ascending by thread, then level."""
    level = stream.depth + stream.leave
    deepest = np.maximum.reduceat(level, stream.first) + 1 if len(level) else level
    below = np.cumsum(deepest) - deepest
    return np.asarray(level + np.repeat(below, np.diff(stream.first, append=len(level))))


@dataclass(frozen=True, slots=True, eq=False)
class _Matched:
    """Events by level and time: `order` sorts them, `level` belongs to the sorted ones.

    `ends` says which of them (but the last) is an enter that the next one ends.
    """

    stream: _Stream
    order: npt.NDArray[np.int64]
    level: npt.NDArray[np.int64]
    ends: npt.NDArray[np.bool_]

    def strangers(self) -> npt.NDArray[np.int64]:
        """Return the enters that are ended by a leave of another function."""
        identity = (self.stream.events["what"] & ~_FLAGS)[self.order]
        return np.asarray(self.order[:-1][self.ends & (identity[:-1] != identity[1:])])


def _matched(stream: _Stream) -> _Matched:
    levels = _levels(stream)
    narrow = levels.astype(np.uint16) if levels.max(initial=0) < 2**16 else levels
    order = np.argsort(narrow, kind="stable")  # of 16 bits: a radix sort
    level = levels[order]
    return _Matched(stream, order, level, (np.diff(level) == 0) & ~stream.leave[order][:-1])


def _calls(matched: _Matched, stop_ticks: int, mended: int) -> Calls:
    stream, order, ends = matched.stream, matched.order, matched.ends
    end_of = np.full(len(stream.leave), -1)
    end_of[order[:-1][ends]] = order[1:][ends]
    enters = np.flatnonzero(~stream.leave)
    end_of, events = end_of[enters], stream.events[enters]
    finished = end_of >= 0
    return Calls(
        stream.thread[enters],
        events["what"].copy(),
        events["extra"].copy(),
        events["tick"].copy(),
        np.where(finished, stream.events["tick"][end_of], stop_ticks),
        _parents(matched),
        finished,
        mended,
    )


def _parents(matched: _Matched) -> npt.NDArray[np.int64]:
    """Return for every enter the latest enter before it that is one level up, as an index among the enters."""
    stream = matched.stream
    enter = ~stream.leave[matched.order]
    enters = matched.order[enter]
    place = matched.level[enter] * len(stream.leave) + enters  # ascending
    above = enters[np.maximum(np.searchsorted(place, place - len(stream.leave)) - 1, 0)]
    number = np.cumsum(~stream.leave) - 1
    parent = np.empty(len(enters), np.int64)
    parent[number[enters]] = np.where(stream.depth[enters] > 1, number[above], -1)
    return parent


def _mended(events: EventArray) -> EventArray:
    """Return events that pair up: a leave closes what was entered after its enter, one without an enter is left out."""
    stack: list[int] = []
    inside = Counter[int]()
    out: list[tuple[int, int, int]] = []
    for tick, what, extra in events.tolist():
        identity = what & ~int(_FLAGS)
        if not what & LEAVE:
            stack.append(identity)
            inside[identity] += 1
            out.append((tick, what, extra))
        elif inside[identity]:
            last = -1
            while last != identity:
                last = stack.pop()
                inside[last] -= 1
                out.append((tick, last | LEAVE, 0))
    return np.array(out, EVENT)
