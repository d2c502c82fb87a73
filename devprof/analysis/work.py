"""Device work of a trace: which events, on which rows, and what they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from devprof.analysis.columns import stable_order
from devprof.analysis.intervals import Longs
from devprof.analysis.segments import begins
from devprof.model import ActivityType, Role
from devprof.store import ROLES, PlaceKind, Trace

__all__ = [
    "COLLECTIVE",
    "ROLE_OF_TYPE",
    "by_group",
    "communication",
    "device_collectives",
    "events_of_roles",
    "is_communication",
    "launch_of",
    "launches_of",
    "n_work",
    "places_of",
    "roles_of",
    "work",
]

COLLECTIVE = "Collective name"
"""Item that Kineto puts on a kernel of a collective operation."""

_NUMBER = {role: number for number, role in enumerate(ROLES)}
ROLE_OF_TYPE = np.full(256, _NUMBER[Role.OTHER], dtype=np.uint8)
for _kind in ActivityType:
    ROLE_OF_TYPE[_kind] = _NUMBER[_kind.role]
"""(256,) uint8: of each kind of activity the index of its role in `ROLES`."""

_IS_LAUNCH = np.equal(ROLE_OF_TYPE, _NUMBER[Role.LAUNCH])
_IS_WORK = np.isin(ROLE_OF_TYPE, [_NUMBER[role] for role in (Role.KERNEL, Role.COPY, Role.SET)])


def events_of_roles(trace: Trace, *roles: Role) -> Longs:
    """Return the indices of the events of these roles, ascending."""
    wanted = np.isin(ROLE_OF_TYPE, [_NUMBER[role] for role in roles])
    return np.flatnonzero(wanted.take(trace.activity_type))


def work(trace: Trace) -> Longs:
    """Return the indices of the kernels, copies and sets, ascending."""
    return np.flatnonzero(_IS_WORK.take(trace.activity_type))


def n_work(trace: Trace) -> int:
    """Return how many kernels, copies and sets there are."""
    return int(np.count_nonzero(_IS_WORK.take(trace.activity_type)))


def roles_of(trace: Trace, events: Longs) -> npt.NDArray[np.uint8]:
    """Return the roles of some events: (m,) uint8, index into `ROLES`."""
    return ROLE_OF_TYPE.take(trace.activity_type[events])


def places_of(trace: Trace, events: Longs) -> npt.NDArray[np.int32]:
    """Return the places of some events: (m,) int32, index into `Trace.places`."""
    place_of_row = np.array([row.place for row in trace.rows], dtype=np.int32)
    return place_of_row.take(trace.row[events]) if len(place_of_row) else np.empty(0, dtype=np.int32)


def communication(trace: Trace) -> Longs:
    """Return the events that are collective communication, ascending; by what Kineto notes on them, not by their names."""
    typed = trace.of_type(ActivityType.COLLECTIVE_COMM)
    column = trace.items.get(COLLECTIVE)
    return typed if column is None else np.union1d(typed, column.events)


def device_collectives(trace: Trace) -> Longs:
    """Return the events on devices that are collective communication, ascending."""
    events = communication(trace)
    on_device = np.array([place.kind is PlaceKind.DEVICE for place in trace.places], dtype=np.bool_)
    return events[on_device[places_of(trace, events)]] if len(events) else events


def is_communication(trace: Trace) -> npt.NDArray[np.bool_]:
    """Return which events are collective communication, as `communication` does: (n,) bool."""
    mask = np.zeros(len(trace), dtype=np.bool_)
    mask[communication(trace)] = True
    return mask


def launch_of(trace: Trace, events: Longs) -> Longs:
    """Return the launch above each device record: (m,) int64, event index, -1 where none is known.

    Args:
        trace: the trace.
        events: (m,) indices of device records.
    """
    parent = trace.parent[events].astype(np.int64)
    if len(parent) == 0:
        return parent
    known = parent >= 0
    known &= _IS_LAUNCH.take(trace.activity_type[parent])  # of -1, the last event's
    return parent if known.all() else np.where(known, parent, -1)


def launches_of(trace: Trace, part: slice) -> tuple[npt.NDArray[np.int32], Longs]:
    """Return the launches of a part's device work, where they are known, and the work's positions in the part: (m,) each.

    Args:
        trace: the trace.
        part: which of its events.
    """
    at = np.flatnonzero(_IS_WORK.take(trace.activity_type[part]))
    launch = trace.parent[part].take(at)
    if not len(at):
        return launch, at
    known = launch >= 0
    known &= _IS_LAUNCH.take(trace.activity_type.take(launch, mode="wrap"))  # of -1, the last event's
    return (launch, at) if known.all() else (launch[known], at[known])


def by_group(groups: npt.NDArray[np.integer[Any]]) -> Iterator[tuple[int, Longs]]:
    """Yield each group's number, from 0, and the positions of its members, in their order."""
    order = stable_order(groups, int(groups.max(initial=0)))
    ends = np.flatnonzero(begins(groups[order]))[1:]
    for part in np.split(order, ends) if len(order) else ():
        yield int(groups[part[0]]), part
