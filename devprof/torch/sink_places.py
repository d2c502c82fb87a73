"""Places and rows of a Trace, from what Kineto names and from where its activities stand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from devprof.store import Place, PlaceKind, Row
from devprof.torch.sink_columns import Columns, DeviceEntry, ResourceEntry

__all__ = ["places_and_rows", "properties_of"]

_CPU = "CPU"
"""Label that Kineto gives host processes (GenericActivityProfiler.cpp)."""

_OVERHEAD = -1
"""Process that Kineto writes profiling overhead to (output_json.cpp)."""


def places_and_rows(columns: Columns, backends: Mapping[str, str], own: str) -> tuple[list[Place], list[Row]]:
    """Return the places, and the rows: first those in use, by the numbers that the columns give, then the merely named.

    Args:
        columns: the trace.
        backends: names of backends by the numbers, as text, of their devices.
        own: the backend of every other device.
    """
    used = {(row.device, row.on_device) for row in columns.rows}
    hosts = {device for device, on_device in used if not on_device}
    devices = {device for device, on_device in used if on_device}
    named = {info.id: info for info in columns.devices}
    hosts |= {one for one, info in named.items() if one not in devices and (info.label == _CPU or one == _OVERHEAD)}
    devices |= {info.id for info in columns.devices if info.id not in hosts}
    properties = {one.get("id"): one for one in properties_of(columns)}
    places = [_host(one, named.get(one)) for one in sorted(hosts)]
    places += [
        _device(one, named.get(one), backends.get(str(one), own), properties.get(one, {})) for one in sorted(devices)
    ]
    return places, _rows(columns, {(place.id, place.kind is PlaceKind.DEVICE): i for i, place in enumerate(places)})


def _host(id: int, info: DeviceEntry | None) -> Place:
    if info is None:
        return Place(id, PlaceKind.HOST)
    return Place(id, PlaceKind.HOST, info.name, info.label, info.sort_index)


def _device(id: int, info: DeviceEntry | None, backend: str, properties: Mapping[str, object]) -> Place:
    if info is None or info.label == _CPU:  # a process that has a device's number
        return Place(id, PlaceKind.DEVICE, backend=backend, properties=properties)
    return Place(id, PlaceKind.DEVICE, info.name, info.label, info.sort_index, backend, properties)


def _rows(columns: Columns, place_of: Mapping[tuple[int, bool], int]) -> list[Row]:
    named = {(info.device, info.id): info for info in columns.resources}
    rows = [
        _row(place_of[row.device, row.on_device], row.resource, named.get((row.device, row.resource)))
        for row in columns.rows
    ]
    in_use = {(row.device, row.resource) for row in columns.rows}
    for (device, resource), info in named.items():
        place = place_of.get((device, True), place_of.get((device, False)))
        if (device, resource) not in in_use and place is not None:
            rows.append(_row(place, resource, info))
    return rows


def _row(place: int, id: int, info: ResourceEntry | None) -> Row:
    return Row(place, id) if info is None else Row(place, id, info.name, info.sort_index)


def properties_of(columns: Columns) -> list[dict[str, Any]]:
    """Return the devices' properties, those that are JSON objects."""
    try:
        given = json.loads(f"[{columns.device_properties}]")
    except ValueError:
        return []
    return [one for one in given if isinstance(one, dict)]
