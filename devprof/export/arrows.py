"""Arrows of a Chrome trace: one number each within the file, and no end without a start.

A viewer takes arrows of one number for one arrow, whatever their kind, while Kineto numbers each kind by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from devprof.export.left_out import LeftOut, arrows_left_out
from devprof.model import kLinkAsyncCpuGpu, kLinkFwdBwd
from devprof.store import Trace

__all__ = ["ARROW_NAMES", "Arrows"]

ARROW_NAMES = {kLinkFwdBwd: "fwdbwd", kLinkAsyncCpuGpu: "ac2g"}
"""Category and name of each type of flow that Kineto writes; others have none."""

Longs = npt.NDArray[np.int64]


_LARGEST_NUMBER = 2**53  # a viewer's numbers are doubles


class Arrows:
    """The arrows of a trace, by their ends."""

    def __init__(self, trace: Trace) -> None:
        """Look at all arrows of a trace; takes some 40 bytes for each."""
        self._trace = trace
        self._arrows: dict[int, _Arrows] = {}
        self._any = bool(trace.flow_id.any())
        highest = 0
        for flow_type in sorted(ARROW_NAMES, reverse=True):  # launches keep their numbers, others where they can
            arrows = _arrows(trace, flow_type, [one.number for one in self._arrows.values()], highest)
            self._arrows[flow_type] = arrows
            highest = max([highest, *arrows.number[-1:].tolist()])

    def at(self, events: Longs) -> tuple[npt.NDArray[np.uint8], Longs]:
        """Return what ends of arrows stand at some events, given by their indices: (m,) int64.

        Returns:
            kind: (m,) uint8, 0: none, else twice the type of the flow, plus 1 where it starts.
            number: (m,) int64, the arrow's number in the file.
        """
        flow_id, flow_type = self._trace.flow_id[events], self._trace.flow_type[events]
        kind, number = np.zeros(len(flow_id), dtype=np.uint8), np.zeros(len(flow_id), dtype=np.int64)
        if self._any and flow_id.any():
            starts = self._trace.flow_start[events] != 0
            for one_type, arrows in self._arrows.items():
                here = np.flatnonzero((flow_type == one_type) & (flow_id != 0))
                here, which = arrows.find(flow_id[here], here)
                shown = ~starts[here] | (arrows.first[which] == events[here])
                kind[here] = np.where(shown, 2 * one_type + starts[here], 0)
                number[here] = arrows.number[which]
        return kind, number

    def left_out(self) -> LeftOut:
        """Count ends of arrows that `at` does not show."""
        trace = self._trace
        single = repeated = known = 0
        if self._any:
            for flow_type, arrows in self._arrows.items():
                mine = (trace.flow_type == flow_type) & (trace.flow_id != 0)
                ends = np.flatnonzero(mine & (trace.flow_start == 0))
                known += (total := int(mine.sum()))
                single += len(ends) - len(arrows.find(trace.flow_id[ends], ends)[0])
                repeated += total - len(ends) - len(arrows.ids)
        unknown = int(np.count_nonzero(trace.flow_id)) - known
        return arrows_left_out(single=single, repeated=repeated, unknown=unknown)


class _Arrows(NamedTuple):
    """Arrows of one type: ids as in the trace, ascending; the event at which each starts; its number in the file."""

    ids: Longs
    first: Longs
    number: Longs

    def find(self, ids: Longs, events: Longs) -> tuple[Longs, Longs]:
        """Return those of the events whose id has a start, and which arrow it is."""
        if len(self.ids) == 0:
            return events[:0], events[:0]
        which = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        known = self.ids[which] == ids
        return events[known], which[known]


def _arrows(trace: Trace, flow_type: int, taken: Sequence[Longs], highest: int) -> _Arrows:
    starts = np.flatnonzero((trace.flow_type == flow_type) & (trace.flow_start != 0) & (trace.flow_id != 0))
    ids, first = np.unique(trace.flow_id[starts], return_index=True)  # of several starts the first one holds
    fits = len(ids) == 0 or (ids[0] > 0 and ids[-1] <= _LARGEST_NUMBER)
    if fits and not any(np.isin(ids, numbers).any() for numbers in taken):
        return _Arrows(ids, starts[first], ids)
    return _Arrows(ids, starts[first], np.arange(highest + 1, highest + 1 + len(ids)))
