"""`Lists`: what rows are asked beyond figures: children, device work, stacks, shapes. Made when first asked."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from devprof.analysis.columns import Longs, distinct
from devprof.analysis.figures import Figures
from devprof.analysis.shapes import shape_numbers, text_numbers
from devprof.analysis.stacks import Stacks

__all__ = ["Lists", "Members"]


class Members:
    """Which places belong to which place."""

    def __init__(self, owner: Longs, first: int, order: Longs) -> None:
        """Take the owners.

        Args:
            owner: (k,) int64, the place that each belongs to, -1: none.
            first: place of the first of the k.
            order: (e,) int64, all places in the order in which members are to be listed.
        """
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        member = np.flatnonzero(owner >= 0)
        member = member[np.lexsort((rank[member + first], owner[member]))]
        self._member = member + first
        self._owner = owner[member]

    def of(self, place: int) -> list[int]:
        """Return the places that belong to a place, in order."""
        begin, end = np.searchsorted(self._owner, [place, place + 1])
        found: list[int] = self._member[begin:end].tolist()
        return found


class Lists:
    """Answers about the listed events of a trace."""

    def __init__(self, figures: Figures) -> None:
        """Take the figures; nothing is computed yet."""
        self.figures = figures

    @cached_property
    def stacks(self) -> Stacks:
        """The Python stack of every listed event."""
        return Stacks(self.figures)

    @cached_property
    def children(self) -> Members:
        """Host events by the host event around them."""
        return Members(self.figures.parent, 0, self.figures.order)

    @cached_property
    def work(self) -> Members:
        """Device work by the host event that it belongs to."""
        return Members(self._owner, self.figures.first_device, self.figures.order)

    @cached_property
    def shapes(self) -> tuple[Longs, list[str]]:
        """The number of each listed event's shapes, (e,) int64, and the text of each number."""
        return shape_numbers(self.figures.trace, self.figures.events)

    @cached_property
    def overloads(self) -> tuple[Longs, list[str]]:
        """The number of each listed event's overload name, (e,) int64, and the names; 0 is "", for none."""
        numbers = text_numbers(self.figures.trace, "Overload name", self.figures.events)
        occurring, place = distinct(numbers, len(self.figures.trace.strings))
        names = {"": 0}
        texts = [self.figures.trace.strings[number] if number >= 0 else "" for number in occurring.tolist()]
        coded = np.array([names.setdefault(text, len(names)) for text in texts], dtype=np.int64)
        return coded[place], list(names)

    def thread_row(self, place: int) -> int:
        """Return the row of the thread that a listed event counts to, -1: none."""
        figures = self.figures
        if place < figures.n_hosts:
            return int(figures.forest.thread[figures.hosts[place]])
        if place < figures.first_device:
            return int(figures.trace.row[figures.events[place]])
        owner = int(figures.devices.owner[place - figures.first_device])
        return int(figures.forest.thread[owner]) if owner >= 0 else -1

    @cached_property
    def _owner(self) -> Longs:
        """(d,) int64, place of the listed event that each device event belongs to, -1: none."""
        figures = self.figures
        place = np.full(len(figures.forest) + 1, -1, dtype=np.int64)  # the last one is for "none"
        place[figures.hosts] = np.arange(figures.n_hosts)
        into: Longs = np.append(figures.forest.into, -1)
        owner: Longs = place[into[figures.devices.owner]]
        return owner
