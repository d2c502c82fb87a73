"""From a stopped capture to records inside Kineto: the last thing that runs before torch stops."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from devprof import __version__
from devprof.capture import CaptureSession
from devprof.contract import CONTRACT_VERSION
from devprof.model import ActivityBatch, ActivityType, DeviceInfo, ResourceInfo, Role
from devprof.pipeline import LinkedLane, process
from devprof.torch.bridge import Bridge
from devprof.torch.delivery import Delivery, Rows
from devprof.torch.text import TextCleaner

__all__ = ["drain"]

DEVICES_PER_PLUGIN = 100
"""Distance between the device ids of two plugins, so that two "device 0" do not share a row."""

_LAUNCH_BASE = 2**30
_HOST_ROW = np.zeros(256, dtype=np.bool_)
_HOST_ROW[[int(t) for t in ActivityType if t.role is Role.LAUNCH]] = True
_OVERHEAD = int(ActivityType.OVERHEAD)


def drain(bridge: Bridge, capture: CaptureSession, generation: int, end_ns: int) -> None:
    """Stop every plugin, link what it delivered, and hand it to the bridge with the account of it.

    Args:
        bridge: the loaded bridge.
        capture: a capture that is recording.
        generation: the capture's number in the bridge.
        end_ns: when the user's window ended, Unix ns.
    """
    start_ns = int(bridge.lib.devprof_capture_start_ns(generation))
    results = capture.stop(lambda op_id: bool(bridge.known_ops(np.array([op_id]))[0]), start_ns, end_ns)
    parents = bridge.user_parents()
    next_launch = _LAUNCH_BASE
    for index, result in enumerate(results):
        lane = process(
            result,
            start_ns=start_ns,
            end_ns=end_ns,
            known_ops=bridge.known_ops if capture.report.host_ops else None,
            user_parents=parents,
            launch_base=next_launch,
            device_offset=index * DEVICES_PER_PLUGIN,
        )
        next_launch = lane.next_launch
        _deliver(bridge, generation, lane, index * DEVICES_PER_PLUGIN)
    _describe(bridge, capture, generation)


def _deliver(bridge: Bridge, generation: int, lane: LinkedLane, device_offset: int) -> None:
    cleaner = TextCleaner(bridge.demangles)
    delivery = Delivery(bridge, generation, cleaner)
    for batch, rows in zip(lane.batches, lane.rows, strict=True):
        delivery.records(batch, _placed(batch, rows))
    if len(lane.annotations):
        delivery.annotations(lane.annotations, lane.annotation_rows)
    delivery.device_rows(_named_devices(lane, device_offset), _named_resources(lane, device_offset))
    delivery.device_properties([dict(properties) for properties in lane.device_properties])
    delivery.metadata(lane.metadata)
    lane.ledger.notes.update(cleaner.changes)


def _placed(batch: ActivityBatch, rows: Rows) -> Rows:
    """Put host calls on the row of their process and thread; torch's own rows are named that way."""
    host = _HOST_ROW[batch.activity_type]
    overhead = batch.activity_type == _OVERHEAD
    if not (host.any() or overhead.any()):
        return rows
    device = np.where(host, np.int32(os.getpid()), np.where(overhead, np.int32(-1), rows.device))
    resource = np.where(host | overhead, batch.thread_id, rows.resource)
    return Rows(
        rows.id,
        np.ascontiguousarray(device, dtype=np.int32),
        np.ascontiguousarray(resource, dtype=np.int64),
        rows.linked,
        rows.flow_id,
        rows.flow_type,
        rows.flow_start,
    )


def _device_rows(lane: LinkedLane) -> set[tuple[int, int]]:
    """Return the (device, resource) pairs that work and spans of this lane are on."""
    pairs: set[tuple[int, int]] = set()
    for batch, rows in zip(lane.batches, lane.rows, strict=True):
        on_device = ~_HOST_ROW[batch.activity_type] & (batch.activity_type != _OVERHEAD)
        pairs |= _distinct(rows.device[on_device], rows.resource[on_device])
    return pairs | _distinct(lane.annotation_rows.device, lane.annotation_rows.resource)


def _distinct(device: npt.NDArray[np.int32], resource: npt.NDArray[np.int64]) -> set[tuple[int, int]]:
    if not len(device):
        return set()
    # neighbours are mostly on one row: only where a row changes is there something to look at
    change = np.flatnonzero(np.diff(device, prepend=device[0] - 1) | np.diff(resource, prepend=resource[0] - 1))
    return set(zip(device[change].tolist(), resource[change].tolist(), strict=True))


def _named_devices(lane: LinkedLane, device_offset: int) -> list[DeviceInfo]:
    """Name every device that a record is on, the ones that the plugin did not describe included."""
    described = {info.id: info for info in lane.device_infos}
    used = {device - device_offset for device, _ in _device_rows(lane)}
    return [
        replace(info, id=info.id + device_offset)
        for index in sorted(described.keys() | used)
        for info in [described.get(index) or DeviceInfo(index, f"{lane.name} {index}")]
    ]


def _named_resources(lane: LinkedLane, device_offset: int) -> list[ResourceInfo]:
    """Name every stream that a record is on, the ones that the plugin did not describe included."""
    described = {(info.device_id, info.id): info for info in lane.resource_infos}
    used = {(device - device_offset, resource) for device, resource in _device_rows(lane)}
    return [
        replace(info, device_id=info.device_id + device_offset)
        for device, resource in sorted(described.keys() | used)
        for info in [described.get((device, resource)) or ResourceInfo(resource, device, f"stream {resource}")]
    ]


def _describe(bridge: Bridge, capture: CaptureSession, generation: int) -> None:
    """Put the account into the trace's metadata, which Kineto writes before it asks for the records."""
    delivery = Delivery(bridge, generation, TextCleaner(bridge.demangles))
    report = capture.report.as_dict()
    delivery.metadata({"devprof": {"version": __version__, "contract": list(CONTRACT_VERSION), **report}})
    delivery.span(" + ".join(lane.plugin.name for lane in capture.lanes))
