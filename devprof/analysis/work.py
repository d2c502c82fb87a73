"""Device work of a trace: which events, on which rows, and what they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from devprof.analysis.intervals import Longs
from devprof.model import ActivityType, Role
from devprof.store import ROLES, Trace

__all__ = ["COLLECTIVE", "by_group", "events_of_roles", "is_communication", "launch_of", "work"]

COLLECTIVE = "Collective name"
"""Item that Kineto puts on a kernel of a collective operation."""

_NUMBER = {role: number for number, role in enumerate(ROLES)}


def events_of_roles(trace: Trace, *roles: Role) -> Longs:
    """Return the indices of the events of these roles, ascending."""
    wanted = np.zeros(len(ROLES), dtype=np.bool_)
    wanted[[_NUMBER[role] for role in roles]] = True
    return np.flatnonzero(wanted[trace.role])


def work(trace: Trace) -> Longs:
    """Return the indices of the kernels, copies and sets, ascending."""
    return events_of_roles(trace, Role.KERNEL, Role.COPY, Role.SET)


def is_communication(trace: Trace) -> npt.NDArray[np.bool_]:
    """Return which events are collective communication: (n,) bool; by what Kineto notes on them, not by their names."""
    mask = np.zeros(len(trace), dtype=np.bool_)
    mask[trace.of_type(ActivityType.COLLECTIVE_COMM)] = True
    if (column := trace.items.get(COLLECTIVE)) is not None:
        mask[column.events] = True
    return mask


def launch_of(trace: Trace, events: Longs) -> Longs:
    """Return the launch above each device record: (m,) int64, event index, -1 where none is known.

    Args:
        trace: the trace.
        events: (m,) indices of device records.
    """
    parent = trace.parent[events].astype(np.int64)
    known = parent >= 0
    known[known] = trace.role[parent[known]] == _NUMBER[Role.LAUNCH]
    return np.where(known, parent, -1)


def by_group(groups: npt.NDArray[np.integer[Any]]) -> Iterator[tuple[int, Longs]]:
    """Yield each group's number and the positions of its members, in their order."""
    # numpy sorts 16-bit numbers by radix, ten times faster than wide ones
    narrow = groups.astype(np.uint16) if len(groups) and groups.min() >= 0 and groups.max() < 2**16 else groups
    order = np.argsort(narrow, kind="stable")
    ordered = groups[order]
    ends = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    for part in np.split(order, ends) if len(order) else ():
        yield int(groups[part[0]]), part
