"""Arrows of a Perfetto trace: a number for each pair of events that one connects, and none with one end only.

A reader connects all events that carry one number into a chain, in order of time, and closes it at an end. Kineto's arrows go
from one launch to all that it caused, so each of those has a number of its own. A counter's sample has none.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from devprof.export.chunks import Chunk
from devprof.export.left_out import LeftOut, arrows_left_out
from devprof.export.shapes import IS_COUNTER
from devprof.store import Trace

__all__ = ["END", "START", "START_OF_MANY", "Ends", "Flows"]

END, START, START_OF_MANY = 1, 2, 3

Longs = npt.NDArray[np.int64]
Ints = npt.NDArray[np.int32]


class Ends(NamedTuple):
    """What stands at some events: (m,) each.

    Attributes:
        kind: int64: 0 nothing, `END`, `START`, or `START_OF_MANY`.
        first: int64, number of the arrow, or of the first of several.
        arrows: int64, how many.
    """

    kind: Longs
    first: Longs
    arrows: Longs


class Flows:
    """The arrows of a trace.

    Attributes:
        ends, starts: where they end and start, in order of the events.
        some_turn: whether one starts at an event that stands after the one where it ends, at the same time.
        left_out: ends of arrows that make none.
    """

    def __init__(self, trace: Trace) -> None:
        """Look at all arrows of a trace; takes some 20 bytes for each, and more while it does so."""
        ends, starts = _End.nowhere(), _Start.nowhere()
        self.some_turn = False
        single = repeated = open_ended = known = 0
        there = trace.flow_id != 0
        for flow_type in np.flatnonzero(np.bincount(trace.flow_type[there])).tolist() if there.any() else ():
            of_type = _arrows(trace, flow_type, len(ends.event))
            self.some_turn |= of_type.some_turn
            ends = _End(*map(np.concatenate, zip(ends, of_type.ends, strict=True)))
            starts = _Start(*map(np.concatenate, zip(starts, of_type.starts, strict=True)))
            known += of_type.known
            single += of_type.single
            repeated += of_type.repeated
            open_ended += of_type.open_ended
        unknown = int(np.count_nonzero(there)) - known
        self.left_out: LeftOut = arrows_left_out(
            single=single, repeated=repeated, open_ended=open_ended, unknown=unknown
        )
        by_event = np.argsort(ends.event, kind="stable")  # which is quick where they are in order
        self.ends = _End(*(column[by_event] for column in ends))
        by_event = np.argsort(starts.event, kind="stable")
        self.starts = _Start(*(column[by_event] for column in starts))

    def at(self, chunk: Chunk) -> Ends:
        """Return what stands at the m events of a chunk."""
        kind, first, arrows = (np.zeros(len(chunk.events), dtype=np.int64) for _ in range(3))
        here, which = _found(self.ends.event, chunk)
        kind[here], first[here], arrows[here] = END, self.ends.number[which], 1
        here, which = _found(self.starts.event, chunk)
        arrows[here] = self.starts.arrows[which]
        kind[here], first[here] = np.where(arrows[here] > 1, START_OF_MANY, START), self.starts.first[which]
        return Ends(kind, first, arrows)


class _End(NamedTuple):
    """Ends of arrows: their events, and the arrows' numbers."""

    event: Ints
    number: Ints

    @classmethod
    def nowhere(cls) -> _End:
        return cls(*(np.empty(0, dtype=np.int32) for _ in cls._fields))


class _Start(NamedTuple):
    """Where arrows start: the events, the first arrow's number, and how many there are."""

    event: Ints
    first: Ints
    arrows: Ints

    @classmethod
    def nowhere(cls) -> _Start:
        return cls(*(np.empty(0, dtype=np.int32) for _ in cls._fields))


class _OfType(NamedTuple):
    """Arrows of one type: their ends and starts, whether one turns, and counts: of all ends, and of those that make none."""

    ends: _End
    starts: _Start
    some_turn: bool
    known: int
    single: int
    repeated: int
    open_ended: int


def _arrows(trace: Trace, flow_type: int, taken: int) -> _OfType:
    """Number the arrows of one type from ``taken + 1`` on."""
    of_type = (trace.flow_type == flow_type) & (trace.flow_id != 0) & ~IS_COUNTER[trace.activity_type]
    starts = np.flatnonzero(of_type & (trace.flow_start != 0))
    ids, n_starts = trace.flow_id[starts], len(starts)
    if not (ids[1:] > ids[:-1]).all():
        ids, first = np.unique(ids, return_index=True)  # of several starts the first one holds
        starts = starts[first]
    ends = np.flatnonzero(of_type & (trace.flow_start == 0))
    repeated, n_ends = n_starts - len(ids), len(ends)
    if len(ids) == 0:
        return _OfType(_End.nowhere(), _Start.nowhere(), False, n_ends, n_ends, 0, 0)
    which = np.minimum(np.searchsorted(ids, trace.flow_id[ends]), len(ids) - 1)
    known = ids[which] == trace.flow_id[ends]
    ends, which = ends[known], which[known]
    count = np.bincount(which, minlength=len(ids))
    number = taken + 1 + np.cumsum(count) - count
    order = np.argsort(which, kind="stable")
    shown = count > 0
    return _OfType(
        _End(ends[order].astype(np.int32), (taken + 1 + np.arange(len(ends))).astype(np.int32)),
        _Start(*(column[shown].astype(np.int32) for column in (starts, number, count))),
        bool(((starts[which] > ends) & (trace.start_ns[starts[which]] == trace.start_ns[ends])).any()),
        n_starts + n_ends,
        n_ends - len(ends),
        repeated,
        int(len(ids) - np.count_nonzero(shown)),
    )


def _found(table: Ints, chunk: Chunk) -> tuple[Longs, Longs]:
    """Return the places of those events of a chunk that stand in an ascending table, and where in it they stand."""
    events = chunk.events
    low, high = np.searchsorted(table, np.array([events.min(), events.max() + 1], dtype=np.int32)).tolist()
    some = table[low:high].astype(np.int64)
    if chunk.number >= 0:
        return some - events[0], np.arange(low, high)
    order = np.argsort(events)
    at = np.minimum(np.searchsorted(events[order], some), len(events) - 1)
    hit = events[order[at]] == some
    return order[at[hit]], low + np.flatnonzero(hit)
