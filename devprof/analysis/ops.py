"""`Ops`: finds the op or user range that has an id."""

from __future__ import annotations

from functools import cached_property

from devprof.analysis.columns import IdIndex, Longs
from devprof.model import ActivityType
from devprof.store import Trace

__all__ = ["Ops"]

_OWNERS = (ActivityType.CPU_OP, ActivityType.USER_ANNOTATION)
"""Kinds of events that have an op id, and so can own launches and device work."""


class Ops:
    """The ops and user ranges of a trace by their ids; of equal ids the first one is found. Made when first asked."""

    def __init__(self, trace: Trace) -> None:
        """Take a trace; nothing is computed yet."""
        self._trace = trace

    def find(self, ids: Longs) -> Longs:
        """Return the index of the event that has each id: (k,) int64, -1: none."""
        at = self._index.find(ids)
        if not len(self._events):
            return at
        event = self._events[at]  # of -1, the last one
        lost = at < 0
        if lost.any():
            event[lost] = -1
        return event

    @cached_property
    def _events(self) -> Longs:
        return self._trace.of_type(*_OWNERS)

    @cached_property
    def _index(self) -> IdIndex:
        return IdIndex(self._trace.id[self._events])
