"""The order in which a Perfetto trace has its slices.

A reader puts begins and ends in order of time, and those of one time in the order of the file. So a slice's begin and end may
stand side by side, as long as of one track's slices each stands after all that began before it, the longest first. An arrow
must start before it ends, so of one time hosts' events stand before devices' where that makes a difference.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from devprof.export.chunks import Chunk
from devprof.export.lanes import parts_in_time, sorted_small
from devprof.store import PlaceKind, Trace

__all__ = ["EVENTS_AT_ONCE", "in_file_order", "slices_in_order"]

EVENTS_AT_ONCE = 12_288
"""Events in a chunk: enough to pay for numpy's calls, few enough that their bytes stay in the processor's cache."""

_EARLIEST = np.iinfo(np.int64).min

Longs = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def in_file_order(trace: Trace, in_order: bool) -> Iterator[Chunk]:
    """Yield the events of a trace in chunks, in the order in which they are written.

    Args:
        trace: n events.
        in_order: whether that is the trace's own; see `slices_in_order`.
    """
    n = len(trace)
    if in_order:
        for number, low in enumerate(range(0, n, EVENTS_AT_ONCE)):
            yield Chunk(np.arange(low, min(low + EVENTS_AT_ONCE, n)), number)
        return
    places = [trace.places[row.place].kind is PlaceKind.DEVICE for row in trace.rows]
    on_device = np.array(places, dtype=np.bool_)
    for part in parts_in_time(trace.start_ns):
        end = np.maximum(trace.start_ns[part], trace.end_ns[part])
        keys = (~end, on_device[trace.row[part]], trace.start_ns[part])  # ~end: descending, without overflow
        events = part[np.lexsort(keys)]
        for low in range(0, len(events), EVENTS_AT_ONCE):
            yield Chunk(events[low : low + EVENTS_AT_ONCE])


def slices_in_order(trace: Trace, is_slice: Mask) -> bool:
    """Say whether the slices of each row stand in order of their starts, those that start together the longest first."""
    last_start = np.full(len(trace.rows), _EARLIEST)
    last_end = np.full(len(trace.rows), np.iinfo(np.int64).max)
    for low in range(0, len(trace), EVENTS_AT_ONCE):
        chosen = low + np.flatnonzero(is_slice[trace.activity_type[low : low + EVENTS_AT_ONCE]])
        chosen = chosen[sorted_small(trace.row[chosen].astype(np.int64))]
        row, start = trace.row[chosen], trace.start_ns[chosen]
        end = np.maximum(start, trace.end_ns[chosen])
        fresh = np.append(True, row[1:] != row[:-1])[: len(row)]  # the first one of its row here
        before = np.where(fresh, last_start[row], np.roll(start, 1))
        until = np.where(fresh, last_end[row], np.roll(end, 1))
        if ((start < before) | (start == before) & (end > until)).any():
            return False
        last_start[row], last_end[row] = start, end  # of several values for one row numpy keeps the last
    return True
