"""Where records stand in torch's trace: rows of devices, streams and host threads, and their names."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from devprof.link import LinkedColumns, places_of
from devprof.model import ActivityBatch, ActivityType, DeviceInfo, ResourceInfo, Role
from devprof.pipeline import LinkedLane

__all__ = ["LaneRows", "Rows"]

Int64 = npt.NDArray[np.int64]

_GREATEST = 2**31 - 1
_RENUMBERED_BASE = 2**29
"""First substitute for a resource that torch cannot hold: it keeps 32 bits (IActivityProfiler.h of 2.13)."""

_ON_HOST = np.zeros(256, dtype=np.bool_)
_ON_HOST[[int(t) for t in ActivityType if t.role is Role.LAUNCH]] = True
_OVERHEAD = int(ActivityType.OVERHEAD)


@dataclass(frozen=True, slots=True)
class Rows:
    """The columns beside a batch that place and link its records; all of the batch's length.

    Attributes:
        id: int64, what Kineto prints as correlation: positive int32.
        device, resource: int32 and int64: the row, which is host process and thread for host records.
        linked: int64, op id or 0.
        flow_id, flow_type, flow_start: int64, uint8, uint8.
    """

    id: Int64
    device: npt.NDArray[np.int32]
    resource: Int64
    linked: Int64
    flow_id: Int64
    flow_type: npt.NDArray[np.uint8]
    flow_start: npt.NDArray[np.uint8]


class LaneRows:
    """Places one plugin's records, and remembers which rows it used.

    Args:
        lane: the plugin's linked records.
        device_offset: what was added to its device indices.
    """

    def __init__(self, lane: LinkedLane, device_offset: int) -> None:
        self._lane = lane
        self._offset = device_offset
        self._used: set[tuple[int, int]] = set()
        self._renumbered: dict[int, int] = {}

    @property
    def n_renumbered(self) -> int:
        """How many resources got another number, because torch cannot hold their own."""
        return len(self._renumbered)

    def of_batch(self, batch: ActivityBatch, columns: LinkedColumns) -> Rows:
        """Place a batch: device work on its stream, host calls on the row of their process and thread."""
        on_host = _ON_HOST[batch.activity_type]
        overhead = batch.activity_type == _OVERHEAD
        resource = self._fitting(batch.resource)
        self._use(columns.device[~(on_host | overhead)], resource[~(on_host | overhead)])
        device = np.where(on_host, os.getpid(), np.where(overhead, -1, columns.device)).astype(np.int32)
        resource = np.where(on_host | overhead, self._fitting(batch.thread_id), resource)
        return _rows(columns, device, resource)

    def of_spans(self) -> Rows:
        """Place the spans of user ranges on their streams."""
        spans = self._lane.spans
        resource = self._fitting(spans.resource)
        self._use(spans.device, resource)
        none, flag = np.zeros(len(spans), dtype=np.int64), np.zeros(len(spans), dtype=np.uint8)
        return Rows(spans.user_id, spans.device, resource, none, none, flag, flag)

    def devices(self) -> list[DeviceInfo]:
        """Name every device that a record is on, the ones that the plugin did not describe included."""
        described = {info.id: info for info in self._lane.device_infos}
        used = {device - self._offset for device, _ in self._used}
        ledger = self._lane.ledger
        indices = described.keys() | used or ({0} if ledger.set_aside else set())  # a place to read the verdict
        infos = (described.get(i) or DeviceInfo(i, f"{self._lane.name} {i}") for i in sorted(indices))
        return [replace(info, id=info.id + self._offset, label=ledger.row_label(info.label)) for info in infos]

    def resources(self) -> list[ResourceInfo]:
        """Name every stream that a record is on, the ones that the plugin did not describe included."""
        # the plugin's rows are without the offset, those that linking added are with it
        described = {(info.device_id + self._offset, self._number(info.id)): info for info in self._lane.resource_infos}
        added = {(info.device_id, info.id): info for info in self._lane.extra_rows}
        own = {number: real for real, number in self._renumbered.items()}
        infos = {**described, **added}
        return [
            replace(infos[device, resource], id=resource, device_id=device)
            if (device, resource) in infos
            else ResourceInfo(resource, device, f"stream {own.get(resource, resource)}")
            for device, resource in sorted(infos.keys() | self._used)
        ]

    def _use(self, device: npt.NDArray[np.int32], resource: Int64) -> None:
        if len(device):
            places = places_of(device.astype(np.int64), resource)
            some = np.zeros(int(places.max()) + 1, dtype=np.int64)
            some[places] = np.arange(1, len(places) + 1)  # any record of a place tells its row
            at = some[some > 0] - 1
            self._used |= set(zip(device[at].tolist(), resource[at].tolist(), strict=True))

    def _fitting(self, resource: Int64) -> Int64:
        if not len(resource) or (resource.min() >= 0 and resource.max() <= _GREATEST):
            return resource
        distinct, where = np.unique(resource, return_inverse=True)
        return np.array([self._number(int(real)) for real in distinct], dtype=np.int64)[where]

    def _number(self, resource: int) -> int:
        if 0 <= resource <= _GREATEST:
            return resource
        return self._renumbered.setdefault(resource, _RENUMBERED_BASE + len(self._renumbered))


def _rows(columns: LinkedColumns, device: npt.NDArray[np.int32], resource: Int64) -> Rows:
    return Rows(
        id=np.ascontiguousarray(columns.id),
        device=np.ascontiguousarray(device),
        resource=np.ascontiguousarray(resource),
        linked=np.ascontiguousarray(columns.linked),
        flow_id=np.ascontiguousarray(columns.flow_id),
        flow_type=np.ascontiguousarray(columns.flow_type),
        flow_start=np.ascontiguousarray(columns.flow_start),
    )
