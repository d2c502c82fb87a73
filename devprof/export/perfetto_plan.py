"""What both writers of a Perfetto file are given: the trace, and where its events stand."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import NamedTuple

from devprof.export.chunks import Chunk
from devprof.export.lanes import Lanes, assign_lanes
from devprof.export.nesting import Nesting
from devprof.export.perfetto_counters import Counters
from devprof.export.perfetto_flows import Flows
from devprof.export.perfetto_order import in_file_order, slices_in_order
from devprof.export.shapes import IS_SLICE
from devprof.export.tracks import Tracks
from devprof.store import Trace

__all__ = ["Plan"]


class Plan(NamedTuple):
    """A trace, and where its events stand in the file.

    Attributes:
        trace: the trace.
        base_ns: what the file's clock counts from, Unix ns, not after any event.
        lanes, tracks, flows: lanes of rows, the tracks, whose uuids are their numbers plus 1, and the arrows.
        counters: writes the samples.
        in_order: whether the trace's own order is the file's.
    """

    trace: Trace
    base_ns: int
    lanes: Lanes
    tracks: Tracks
    flows: Flows
    counters: Counters
    in_order: bool

    @classmethod
    def of(cls, trace: Trace, native: ctypes.CDLL | None) -> Plan:
        """Look at a trace as a whole.

        Args:
            trace: the trace.
            native: the library, which looks at its rows faster.
        """
        nesting = Nesting(native, trace, IS_SLICE) if native is not None else None
        lanes = assign_lanes(trace, IS_SLICE, nesting.looked_at if nesting else None)
        tracks = Tracks(trace.places, trace.rows, lanes.count)
        flows = Flows(trace)
        base_ns = int(trace.start_ns.min()) if len(trace) else trace.window_start_ns
        counters = Counters(trace, base_ns, tracks.first + 1, len(tracks.texts) + len(trace.places) + 1)
        in_order = nesting.in_order if nesting else slices_in_order(trace, IS_SLICE)
        return cls(trace, base_ns, lanes, tracks, flows, counters, in_order and not flows.some_turn)

    def chunks(self) -> Iterator[Chunk]:
        """Yield the events in the order of the file."""
        return in_file_order(self.trace, self.in_order)
