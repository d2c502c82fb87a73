"""What devices did, and which host event each piece of work belongs to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from devprof.analysis.columns import Bools, Longs, sums
from devprof.analysis.forest import Forest
from devprof.analysis.names import Names
from devprof.model import ActivityType
from devprof.store import HOST_BACKEND, PlaceKind, Trace

__all__ = ["DeviceRecords", "device_backends", "device_records"]

_WORK = np.zeros(256, dtype=np.bool_)
_WORK[[int(kind) for kind in ActivityType if kind.is_device_work]] = True


@dataclass(frozen=True, slots=True, eq=False)
class DeviceRecords:
    """d events on devices.

    Attributes:
        event: (d,) int64, index in the trace.
        backend: (d,) int64, index into `device_backends`.
        duration_ns: (d,) int64.
        is_work: (d,) bool: kernels, copies and sets. The others occupy no device: ranges, waits, counters.
        owner: (d,) int64, position in the forest of the event that it belongs to, -1: none. Only work belongs to one.
    """

    event: Longs
    backend: Longs
    duration_ns: Longs
    is_work: Bools
    owner: Longs

    def owned_ns(self, backend: int, count: int) -> Longs:
        """Return how long the work of each host event took on one backend's devices: (count,) int64, ns."""
        of = np.flatnonzero((self.owner >= 0) & (self.backend == backend))
        return sums(self.owner[of], self.duration_ns[of], count)

    def work_ns(self, backend: int) -> int:
        """Return how long all work of one backend took, ns."""
        return int(self.duration_ns[self.is_work & (self.backend == backend)].sum())


def device_backends(trace: Trace) -> tuple[str, ...]:
    """Return the names of the backends whose devices are in the trace."""
    return tuple(
        dict.fromkeys(
            place.backend for place in trace.places if place.kind is PlaceKind.DEVICE and place.backend != HOST_BACKEND
        )
    )


def device_records(trace: Trace, names: Names, forest: Forest) -> DeviceRecords:
    """Collect what happened on devices; work belongs to the event whose op id it was launched under, and to no other."""
    event = np.flatnonzero(trace.on_device)
    if not names.listed.all():
        event = event[names.listed[trace.name[event]]]
    is_work = _WORK[trace.activity_type[event]]
    owner = forest.owners(trace.linked[event])
    owner[~is_work] = -1
    return DeviceRecords(
        event=event,
        backend=_backend_of_row(trace)[trace.row[event]],
        duration_ns=np.maximum(trace.end_ns[event] - trace.start_ns[event], 0),
        is_work=is_work,
        owner=owner,
    )


def _backend_of_row(trace: Trace) -> Longs:
    number = {name: index for index, name in enumerate(device_backends(trace))}
    return np.array([number.get(trace.places[row.place].backend, -1) for row in trace.rows], dtype=np.int64)
