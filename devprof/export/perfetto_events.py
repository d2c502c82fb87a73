"""The events of a Perfetto trace, written in Python alone: all in one sequence, packets of equal layout together.

numpy makes records of equal length, so times count from the file's base and every packet names its track.
`devprof.export.perfetto_native` writes the same events faster, and in a shorter way.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from devprof.export.chunks import Chunk
from devprof.export.events import groups
from devprof.export.perfetto_annotations import Annotation, Annotations
from devprof.export.perfetto_flows import END, START, START_OF_MANY, Ends
from devprof.export.perfetto_names import Names
from devprof.export.perfetto_packets import event_packet
from devprof.export.perfetto_plan import Plan
from devprof.export.protobuf import (
    FIXED64,
    VARINT,
    Part,
    Selection,
    number_field,
    records,
    selection,
    tag,
    varint_column,
)
from devprof.export.shapes import IS_SLICE, category

__all__ = ["python_pieces"]

Longs = npt.NDArray[np.int64]

_CATEGORIES, _NAMES = 1, 2  # of InternedData
_CATEGORY, _TYPE, _NAME, _TRACK, _FLOW, _LAST_OF_FLOW = 3, 9, 10, 11, 47, 48  # of TrackEvent
_BEGINS, _ENDS, _INSTANT = (number_field(_TYPE, number) for number in (1, 2, 3))
_MOST_LOOKED_AT = 1 << 17  # rows times groups of a chunk
_FLOW_BITS = 8  # of `ActivityType`'s numbers, below those of the kinds of `Ends`


def python_pieces(plan: Plan) -> Iterator[bytes | memoryview]:
    """Yield the bytes of all events, some packets at a time."""
    writer = _Writer(plan)
    for chunk in plan.chunks():
        yield from writer.pieces(chunk)


class _Columns(NamedTuple):
    """What every event has: times of the file's clock, track and name."""

    start: list[Part]
    end: list[Part]
    track: list[Part]
    name: list[Part]


class _Writer:
    """Writes chunks of one trace."""

    def __init__(self, plan: Plan) -> None:
        trace = plan.trace
        self._trace = trace
        self._base_ns = np.int64(plan.base_ns)
        self._tracks = plan.tracks
        self._lanes = plan.lanes
        self._flows = plan.flows
        self._names = Names(_NAMES, len(trace.strings), trace.strings.__getitem__)
        self._categories = Names(_CATEGORIES, 256, category)
        self._annotations = Annotations(trace)
        self._counters = plan.counters

    def pieces(self, chunk: Chunk) -> Iterator[bytes | memoryview]:
        """Yield the bytes of a chunk."""
        is_sample, samples = self._counters.of(chunk)
        if samples:
            yield b"".join(samples)
            chunk = Chunk(chunk.events[~is_sample])
        if len(chunk.events) == 0:
            return
        yield from self._annotations.names()
        yield from self._names.new(self._trace.name[chunk.index])
        yield from self._categories.new(self._trace.activity_type[chunk.index])
        texts, annotations = self._annotations.of(chunk)
        yield from texts
        yield from self._events(chunk, annotations)

    def _events(self, chunk: Chunk, annotations: list[Annotation]) -> Iterator[bytes | memoryview]:
        """Yield the packets of a chunk's events: those of tracks where all are alike together, others in their order."""
        types = self._trace.activity_type[chunk.index]
        ends = self._flows.at(chunk)
        code = types.astype(np.int64) | ends.kind << _FLOW_BITS
        carriers = {id(annotation.carriers): annotation.carriers.present for annotation in annotations}
        order, bounds = groups(code, list(carriers.values()))
        steps = list(self._steps(ends, order, bounds))
        alone = _alone(self._trace.row[chunk.index][order], len(self._trace.rows), steps)
        columns = self._columns(chunk)
        placed = np.full(len(order), b"", dtype=object)
        last = []
        for (low, high), is_alone in zip(steps, alone, strict=True):
            chosen = selection(order[low:high])
            one = order[low]
            args = [part for annotation in annotations if annotation.carriers.present[one] for part in annotation.parts]
            octets = records(_packets(int(types[one]), columns, [*_flow(ends, chosen), *args]), chosen, high - low)
            if not is_alone:
                placed[chosen] = octets.view(f"V{octets.shape[1]}").ravel().tolist()
            elif ends.kind[one] in (START, START_OF_MANY):
                yield octets.data  # an arrow's start stands before an end of the same time
            else:
                last.append(octets.data)
        if not all(alone):
            yield b"".join(placed.tolist())
        yield from last

    def _columns(self, chunk: Chunk) -> _Columns:
        trace, index = self._trace, chunk.index
        start_ns = trace.start_ns[index]
        end_ns = np.maximum(start_ns, trace.end_ns[index])
        track = self._tracks.first[trace.row[index]] + self._lanes.of(chunk.events) + 1
        name = trace.name[index].astype(np.int64) + 1
        return _Columns(*map(varint_column, (start_ns - self._base_ns, end_ns - self._base_ns, track, name)))

    @staticmethod
    def _steps(ends: Ends, order: Longs, bounds: list[int]) -> Iterator[tuple[int, int]]:
        """Yield the groups; one event at a time where each has a number of arrows of its own."""
        for low, high in pairwise(bounds):
            if ends.kind[order[low]] == START_OF_MANY:
                yield from pairwise(range(low, high + 1))
            else:
                yield low, high


def _alone(row: npt.NDArray[np.int32], n_rows: int, steps: list[tuple[int, int]]) -> list[bool]:
    """Say of each group whether no other group has events on its rows.

    Args:
        row: (m,) int32, rows of the events, group by group.
        n_rows: how many rows there are.
        steps: where each group begins and ends.
    """
    if len(steps) * n_rows > _MOST_LOOKED_AT:
        return [False] * len(steps)
    there = np.zeros((len(steps), n_rows), dtype=np.bool_)
    for number, (low, high) in enumerate(steps):
        there[number, row[low:high]] = True
    shared = there.sum(axis=0) > 1
    return [not others for others in (there & shared).any(axis=1).tolist()]


def _packets(activity_type: int, columns: _Columns, more: list[Part]) -> list[Part]:
    """Return the packets of events of one type: a begin and an end, or an instant."""
    is_slice = bool(IS_SLICE[activity_type])
    head = (_BEGINS if is_slice else _INSTANT) + number_field(_CATEGORY, activity_type + 1) + tag(_TRACK, VARINT)
    parts = event_packet(columns.start, [head, *columns.track, tag(_NAME, VARINT), *columns.name, *more])
    if is_slice:
        parts += event_packet(columns.end, [_ENDS + tag(_TRACK, VARINT), *columns.track])
    return parts


def _flow(ends: Ends, chosen: Selection) -> list[Part]:
    """Return the arrows of events that have the same kind and number of them."""
    kind, first, arrows = (column[chosen] for column in ends)
    if kind[0] == 0:
        return []
    field = tag(_LAST_OF_FLOW if kind[0] == END else _FLOW, FIXED64)
    numbers = first[:, np.newaxis] + np.arange(arrows[0])
    octets = np.empty((*numbers.shape, len(field) + 8), dtype=np.uint8)
    octets[..., : len(field)] = np.frombuffer(field, dtype=np.uint8)
    octets[..., len(field) :] = numbers.view(np.uint8).reshape(*numbers.shape, 8)
    return [octets.reshape(len(numbers), -1)]
