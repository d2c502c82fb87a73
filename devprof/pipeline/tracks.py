"""Where records stand: the host process with its threads, each plugin's devices with their streams.

The same rule as in a torch session: launches on the row of their host thread, overhead on a row of its own, all else on its
device.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from devprof.link import LinkedColumns, places_of
from devprof.link.columns import codes_of
from devprof.model import ActivityBatch, ActivityType, DeviceInfo, ResourceInfo, Role
from devprof.pipeline.lane import LinkedLane
from devprof.store import Place, PlaceKind, Row, TraceBuilder

__all__ = ["DeviceTracks", "HostTracks"]

Longs = npt.NDArray[np.int64]
Ints = npt.NDArray[np.int32]

_ON_HOST = np.zeros(256, dtype=np.bool_)
_ON_HOST[[int(kind) for kind in ActivityType if kind.role is Role.LAUNCH]] = True
_ON_HOST[ActivityType.CPU_INSTANT_EVENT] = True  # reports of memory
_OVERHEAD = int(ActivityType.OVERHEAD)

_OVERHEAD_PID = -1
_OVERHEAD_SORT_INDEX = 0x100000
"""Kineto's place for a profiler's overhead (`handleOverheadInfo`, libkineto/src/output_json.cpp): behind the processes."""


class HostTracks:
    """Rows of one host process.

    Args:
        builder: where places and rows go.
        pid: id of the process.
        process_name: what the process is called.
        threads: names of its threads by native id.
    """

    def __init__(self, builder: TraceBuilder, pid: int, process_name: str, threads: Mapping[int, str]) -> None:
        self._builder, self._threads = builder, threads
        self._process = builder.place(Place(pid, PlaceKind.HOST, process_name))

    def of_threads(self, thread_id: Longs) -> Ints:
        """Return the row of each event's thread: (n,) int32."""
        return _rows_of(thread_id, lambda at: self._row(self._process, int(thread_id[at])))

    def of_overhead(self, thread_id: Longs) -> Ints:
        """Return the row of each overhead record: (n,) int32."""
        if len(thread_id) == 0:
            return np.empty(0, dtype=np.int32)
        place = Place(_OVERHEAD_PID, PlaceKind.HOST, "Overhead", sort_index=_OVERHEAD_SORT_INDEX)
        overhead = self._builder.place(place)
        return _rows_of(thread_id, lambda at: self._row(overhead, int(thread_id[at])))

    def _row(self, place: int, thread_id: int) -> int:
        name = self._threads.get(thread_id)
        return self._builder.row(Row(place, thread_id, f"thread {thread_id}" + (f" ({name})" if name else "")))


class DeviceTracks:
    """Rows of one plugin's devices. Every device and resource that it described has a row, and every one that it used.

    Args:
        builder: where places and rows go.
        lane: the plugin's linked records.
    """

    def __init__(self, builder: TraceBuilder, lane: LinkedLane) -> None:
        self._builder, self._lane, self._offset = builder, lane, lane.device_offset
        self._infos = {info.id + self._offset: info for info in lane.device_infos}
        self._properties = self._properties_by_device()
        self._names = self._row_names()
        self._places: dict[int, int] = {}
        for device in sorted(self._infos.keys() | self._properties.keys()):
            self._place(device)
        if lane.ledger.set_aside is not None and not self._places and not any(map(len, lane.batches)):
            self._place(self._offset)  # there is a place to read the verdict
        for device, resource in sorted(self._names):
            self._row(device, resource)

    @property
    def loose_properties(self) -> list[Mapping[str, object]]:
        """What the plugin said of no particular device."""
        return [facts for facts in self._lane.device_properties if not isinstance(facts.get("id"), int)]

    def of_batch(self, batch: ActivityBatch, columns: LinkedColumns, host: HostTracks) -> Ints:
        """Return the row of each record of one of the lane's batches: (n,) int32."""
        on_host, overhead = _ON_HOST[batch.activity_type], batch.activity_type == _OVERHEAD
        on_device = ~(on_host | overhead)
        if on_device.all():
            return self.of_resources(columns.device, batch.resource)
        if on_host.all():
            return host.of_threads(batch.thread_id)
        rows = np.empty(len(batch), dtype=np.int32)
        rows[on_host] = host.of_threads(batch.thread_id[on_host])
        rows[overhead] = host.of_overhead(batch.thread_id[overhead])
        rows[on_device] = self.of_resources(columns.device[on_device], batch.resource[on_device])
        return rows

    def of_resources(self, device: Ints, resource: Longs) -> Ints:
        """Return rows by device index, with the offset, and resource number: (n,) int32."""
        places = places_of(device.astype(np.int64), resource)
        return _rows_of(places, lambda at: self._row(int(device[at]), int(resource[at])))

    def _row(self, device: int, resource: int) -> int:
        info = self._names.get((device, resource))
        name, sort_index = (f"stream {resource}", None) if info is None else (info.name, info.sort_index)
        return self._builder.row(Row(self._place(device), resource, name, sort_index))

    def _place(self, device: int) -> int:
        if device not in self._places:
            own = device - self._offset
            info = self._infos.get(device) or DeviceInfo(own, f"{self._lane.name} {own}")
            said = {**info.properties, **self._properties.get(device, {})}
            self._places[device] = self._builder.place(
                Place(
                    device,
                    PlaceKind.DEVICE,
                    info.name,
                    self._lane.ledger.row_label(info.label),
                    info.sort_index,
                    backend=self._lane.name,
                    properties={"name": info.name, **said, "id": device} if said else {},
                )
            )
        return self._places[device]

    def _properties_by_device(self) -> dict[int, Mapping[str, object]]:
        found: dict[int, Mapping[str, object]] = {}
        for facts in self._lane.device_properties:
            own = facts.get("id")
            if isinstance(own, int):
                device = own + self._offset
                found[device] = {**found.get(device, {}), **facts}
        return found

    def _row_names(self) -> dict[tuple[int, int], ResourceInfo]:
        # the plugin's rows are without the offset, those that linking added are with it
        described = {(info.device_id + self._offset, info.id): info for info in self._lane.resource_infos}
        return described | {(info.device_id, info.id): info for info in self._lane.extra_rows}


def _rows_of(values: Longs, row_at: Callable[[int], int]) -> Ints:
    """Return a row for each value; equal values get one row, and `row_at` is asked once for each, with a position of it."""
    if len(values) == 0:
        return np.empty(0, dtype=np.int32)
    (codes,) = codes_of(values)
    some = np.full(int(codes.max()) + 1, -1, dtype=np.int64)
    some[codes] = np.arange(len(codes))
    table = np.zeros(len(some), dtype=np.int32)
    for code in np.flatnonzero(some >= 0).tolist():
        table[code] = row_at(int(some[code]))
    return table[codes]
