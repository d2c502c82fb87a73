"""From listed events to groups of alike ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from devprof.analysis.columns import Longs, combined
from devprof.analysis.lists import Lists

__all__ = ["Grouping", "Groups", "grouped"]


@dataclass(frozen=True, slots=True)
class Grouping:
    """What is alike: events of one name, on the host or on the devices of one backend, ranges apart from other work.

    Attributes:
        input_shapes: and of the same shapes of inputs.
        stack_depth: and of the same innermost so many Python functions.
        overload_name: and of the same overload.
    """

    input_shapes: bool = False
    stack_depth: int = 0
    overload_name: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Groups of listed events, in the order in which their first events began.

    Attributes:
        of_event: (e,) int64, number of each listed event's group.
        first: (g,) int64, place of each group's first event.
        counts: (g,) int64, number of events.
    """

    of_event: Longs
    first: Longs
    counts: Longs


def grouped(lists: Lists, grouping: Grouping) -> Groups:
    """Group the listed events; as torch's `EventList.key_averages`, with backends told apart by name."""
    figures = lists.figures
    kind = figures.backend_number.astype(np.int64) * 2 + figures.is_annotation
    parts = [(figures.key.astype(np.int64) * _kinds(lists) + kind, len(figures.names.keys) * _kinds(lists))]
    if grouping.overload_name:
        parts.append((lists.overloads[0], len(lists.overloads[1])))
    if grouping.input_shapes:
        parts.append((lists.shapes[0], len(lists.shapes[1])))
    if grouping.stack_depth > 0:
        parts.append(lists.stacks.numbers(grouping.stack_depth))
    return _in_order(lists, *combined(parts, len(figures)))


def _kinds(lists: Lists) -> int:
    return 2 * (1 + len(lists.figures.backends))


def _in_order(lists: Lists, groups: Longs, count: int) -> Groups:
    """Number the groups by their first events."""
    figures = lists.figures
    trace, events = figures.trace, figures.events
    start = trace.start_ns[events]
    earliest = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(earliest, groups, start)
    candidates = np.flatnonzero(start == earliest[groups])
    order = np.lexsort((events[candidates], -figures.end_ns[candidates], start[candidates]))
    candidates = candidates[order]
    _, at = np.unique(groups[candidates], return_index=True)
    first = candidates[np.sort(at)]
    rank = np.empty(count, dtype=np.int64)
    rank[groups[first]] = np.arange(count)
    of_event = rank[groups]
    return Groups(of_event, first, np.bincount(of_event, minlength=count))
