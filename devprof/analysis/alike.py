"""From listed events to groups of alike ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from devprof.analysis.columns import Longs, combined
from devprof.analysis.figures import Figures
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
    n_kinds = 2 * (1 + len(figures.backends))
    code = figures.key * np.int64(n_kinds)
    code += figures.is_annotation
    code[figures.first_device :] += 2 * (figures.devices.backend + 1)
    parts = []
    if grouping.overload_name:
        parts.append((lists.overloads[0], len(lists.overloads[1])))
    if grouping.input_shapes:
        parts.append((lists.shapes[0], len(lists.shapes[1])))
    if grouping.stack_depth > 0:
        parts.append(lists.stacks.numbers(grouping.stack_depth))
    return _in_order(figures, *combined([(code, len(figures.names.keys) * n_kinds), *parts], len(figures)))


def _in_order(figures: Figures, codes: Longs, top: int) -> Groups:
    """Number the codes that occur by their first events.

    Args:
        figures: of the listed events.
        codes: (e,) int64, 0 to `top` - 1.
        top: how many codes there may be.
    """
    trace, events = figures.trace, figures.events
    start = trace.start_ns[events]
    earliest = np.full(top, np.iinfo(np.int64).max)
    np.minimum.at(earliest, codes, start)
    candidates = np.flatnonzero(start == earliest[codes])
    of_candidate = events[candidates]
    order = np.lexsort((of_candidate, -figures.end_ns_of(of_candidate), start[candidates]))
    candidates = candidates[order]
    _, at = np.unique(codes[candidates], return_index=True)
    first = candidates[np.sort(at)]
    rank = np.zeros(top, dtype=np.int64)
    rank[codes[first]] = np.arange(len(first))
    of_event = rank[codes]
    return Groups(of_event, first, np.bincount(of_event, minlength=len(first)))
