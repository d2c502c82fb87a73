"""The events of a chunk as they stand in a Chrome trace: track, times, arrows and args, still as columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from devprof.export.arrows import Arrows
from devprof.export.base_time import since
from devprof.export.chunks import Chunk, Field, ItemFields
from devprof.export.lanes import Lanes
from devprof.export.launch_fields import LaunchFields
from devprof.export.shapes import IS_COUNTER
from devprof.export.tracks import Tracks
from devprof.store import Trace

__all__ = ["Placed", "Placing"]

Longs = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """The events of a chunk, in the order of the file.

    Attributes:
        types: (m,) uint8, numbers of `ActivityType`.
        name: (m,) int32, indices of the trace's texts.
        track: (m,) int64, indices of `Tracks.texts`.
        since_ns: (m,) uint64, start from the file's base.
        lasted_ns: (m,) uint64.
        arrow: (m,) uint8, the kind of the arrow's end that stands there, as of `Arrows.at`; 0: none.
        arrow_number: (m,) int64.
        fields: the args, those that at least one event has, in their order.
        kept: (m,) bool: those to be written; None: all.
    """

    types: npt.NDArray[np.uint8]
    name: npt.NDArray[np.int32]
    track: Longs
    since_ns: npt.NDArray[np.uint64]
    lasted_ns: npt.NDArray[np.uint64]
    arrow: npt.NDArray[np.uint8]
    arrow_number: Longs
    fields: list[Field]
    kept: Mask | None


class Placing:
    """Places the chunks of one trace."""

    def __init__(self, trace: Trace, base_ns: int, tracks: Tracks, lanes: Lanes, arrows: Arrows) -> None:
        """Look at the trace as a whole.

        Args:
            trace: the trace.
            base_ns: base of the file's times, Unix ns, not after any of them.
            tracks, lanes, arrows: where events stand.
        """
        self.trace = trace
        self.tracks = tracks
        self.lanes = lanes
        self._base_ns = base_ns
        self._arrows = arrows
        self._launches = LaunchFields(trace)
        self._items = ItemFields(trace.items)
        self._counters = ItemFields(trace.counters)

    def of(self, chunk: Chunk) -> Placed:
        """Return the events of a chunk."""
        trace, index = self.trace, chunk.index
        types, start_ns = trace.activity_type[index], trace.start_ns[index]
        arrow, arrow_number = self._arrows.at(chunk.events)
        return Placed(
            types,
            trace.name[index],
            self.tracks.first[trace.row[index]] + self.lanes.of(chunk.events),
            since(self._base_ns, start_ns),
            since(start_ns, trace.end_ns[index]),
            arrow,
            arrow_number,
            self._args(chunk, IS_COUNTER[types]),
            chunk.kept,
        )

    def _args(self, chunk: Chunk, is_counter: Mask) -> list[Field]:
        """Return the fields of the events' ``args``; those of a counter are its values alone, as in Kineto's files."""
        items = dict(self._items.of(chunk))
        derived = self._launches.of(chunk)
        for key in derived.keys() & items.keys():
            derived[key] = derived[key]._replace(present=derived[key].present & ~items[key].present)
        fields = [*derived.values(), *items.values()]
        if is_counter.any():
            fields = [field._replace(present=field.present & ~is_counter) for field in fields]
            counters = (field for _, field in self._counters.of(chunk))
            fields += [field._replace(present=field.present & is_counter) for field in counters]
        return [field for field in fields if field.present.any()]
