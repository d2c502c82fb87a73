"""The tree of the host's own events: ranges by their context, Python functions by time, and how the two go together."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from devprof.link import IdTable, nest
from devprof.model import ActivityBatch, ActivityType

__all__ = ["host_parents"]

Longs = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_ENDED_ELSEWHERE = "End thread"
"""Metadata key of a range that ended on another thread than it began on."""


def host_parents(events: ActivityBatch, ranges: IdTable) -> Longs:
    """Return the event above each host event.

    A range's parent is the range around it in its context, which pools and async tasks carry across threads. A Python
    function's parent is what encloses it in time on its thread. Where a function lies between a range and that parent, because
    it was called in the same range, it is the range's parent; so the tree shows who entered the range.

    Args:
        events: n host events, those of each thread in the order of entering.
        ranges: from the id of a range to its event.

    Returns:
        (n,) int64, index of the parent, -1: none.
    """
    context = ranges.find(events.linked)
    functions = events.activity_type == int(ActivityType.PYTHON_FUNCTION)
    if not functions.any():
        return context
    above = _in_time(events)
    around = _nearest_range(above, functions)
    # a range that another task of the thread has open may enclose a function in time and not in context
    between = functions[above] & (above >= 0) & (around == context)
    return np.where(functions | between, above, context)


def _in_time(events: ActivityBatch) -> Longs:
    """Nest the events of each thread; one that ended on another thread is on no stack."""
    above = np.full(len(events), -1, dtype=np.int64)
    on_stack = np.flatnonzero(~_ended_elsewhere(events))
    found = nest(events.start[on_stack], events.end[on_stack], events.thread_id[on_stack])
    above[on_stack] = np.where(found >= 0, on_stack[found], -1)
    return above


def _ended_elsewhere(events: ActivityBatch) -> Bools:
    column = events.metadata.get(_ENDED_ELSEWHERE)
    if column is None:
        return np.zeros(len(events), dtype=np.bool_)
    return np.ones(len(events), dtype=np.bool_) if column.present is None else column.present


def _nearest_range(above: Longs, functions: Bools) -> Longs:
    """Return the first event above each that is no function, in steps of 1, 2, 4, ... functions at once."""
    while True:
        climbing = np.flatnonzero(functions[above] & (above >= 0))
        if len(climbing) == 0:
            return above
        above = above.copy()
        above[climbing] = above[above[climbing]]
