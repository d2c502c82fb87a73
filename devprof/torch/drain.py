"""From a stopped capture to records inside Kineto: the last thing that runs before torch stops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from devprof import __version__
from devprof.capture import CaptureSession
from devprof.capture.ledger import Part
from devprof.contract import CONTRACT_VERSION
from devprof.link import LinkedColumns
from devprof.model import ActivityBatch, ActivityType, MetadataColumn, MetadataKind
from devprof.pipeline import LinkedLane, accounted, linked_lanes
from devprof.torch.bridge import Bridge
from devprof.torch.delivery import Delivery
from devprof.torch.handed import Handed
from devprof.torch.keys import OF_THE_FILE
from devprof.torch.rows import LaneRows
from devprof.torch.text import TextCleaner

__all__ = ["drain"]


def drain(bridge: Bridge, capture: CaptureSession, generation: int, end_ns: int, handed: Handed) -> None:
    """Stop every plugin, link what it delivered, and hand it to the bridge with the account of it.

    Args:
        bridge: the loaded bridge.
        capture: a capture that is recording.
        generation: the capture's number in the bridge.
        end_ns: when the user's window ended, Unix ns.
        handed: gets what the bridge was handed.
    """
    start_ns = int(bridge.lib.devprof_capture_start_ns(generation))
    results = capture.stop(lambda op_id: bool(bridge.known_ops(np.array([op_id]))[0]), start_ns, end_ns)
    parents, report = bridge.user_parents(), capture.report
    told = _Told()
    for lane in linked_lanes(results, report, known_ops=bridge.known_ops, user_parents=parents):
        with accounted(lane.ledger, report) as part:
            told.properties += _properties(lane)
            _deliver(bridge, generation, _with_known_ranges(lane, parents), told, handed, part)
    _describe(bridge, capture, generation, told)


@dataclass(slots=True)
class _Told:
    """What is told of the trace as a whole, gathered plugin by plugin."""

    properties: list[dict[str, object]] = field(default_factory=list)
    keys: set[str] = field(default_factory=lambda: set(OF_THE_FILE))
    owners: dict[int, str] = field(default_factory=dict)  # device id -> name of its plugin


def _properties(lane: LinkedLane) -> Iterator[dict[str, object]]:
    """Yield the facts about a plugin's devices, and those that came with their names, numbered as their rows are."""
    for given in lane.device_properties:
        index = given.get("id")
        yield {**given, "id": index + lane.device_offset} if isinstance(index, int) else dict(given)
    for info in lane.device_infos:
        if info.properties:
            yield {"id": info.id + lane.device_offset, "name": info.name, **info.properties}


def _with_known_ranges(lane: LinkedLane, parents: Mapping[int, int]) -> LinkedLane:
    """Leave out spans of user ids that no range had: Kineto would name them after an op whose id has the same 32 bits."""
    spans = lane.spans
    known = np.isin(spans.user_id, np.fromiter(parents, dtype=np.int64, count=len(parents)))
    if known.all():
        return lane
    lane.ledger.notes["user id unknown to the host"] += len({*spans.user_id[~known].tolist()})
    columns = {name: getattr(spans, name)[known] for name in ("user_id", "device", "resource", "start", "end")}
    return replace(lane, spans=replace(spans, **columns))


def _deliver(bridge: Bridge, generation: int, lane: LinkedLane, told: _Told, handed: Handed, part: Part) -> None:
    """Hand over one plugin's part."""
    cleaner = TextCleaner(bridge.demangles)
    delivery = Delivery(bridge, generation, cleaner)
    rows = LaneRows(lane, lane.device_offset)
    for batch, columns in zip(lane.batches, lane.columns, strict=True):
        delivery.records(batch, rows.of_batch(batch, columns), _marks(columns))
        handed.records(lane.ledger, part, batch, columns)
    if len(lane.spans):
        delivery.annotations(_span_batch(lane), rows.of_spans())
        handed.spans(len(lane.spans))
    devices = rows.devices()
    delivery.device_rows(devices, rows.resources())
    told.owners |= {info.id: lane.name for info in devices}
    delivery.metadata(lane.metadata, lane.name, told.keys)
    lane.ledger.notes.update(cleaner.changes)
    if rows.n_renumbered:
        lane.ledger.notes["resource renumbered: torch keeps 32 bits"] += rows.n_renumbered


def _marks(columns: LinkedColumns) -> dict[str, MetadataColumn]:
    """Mark device work that seems to start before its launch; its times are left as they are."""
    if not columns.skewed.any():
        return {}
    return {"before its launch": MetadataColumn(MetadataKind.BOOL, columns.skewed, columns.skewed)}


def _span_batch(lane: LinkedLane) -> ActivityBatch:
    spans = lane.spans
    derived = MetadataColumn(MetadataKind.BOOL, np.ones(len(spans)))
    return ActivityBatch.from_columns(
        ("",),
        activity_type=int(ActivityType.GPU_USER_ANNOTATION),
        name=0,
        start=spans.start,
        end=spans.end,
        id=spans.user_id,
        metadata={"derived": derived},
    )


def _describe(bridge: Bridge, capture: CaptureSession, generation: int, told: _Told) -> None:
    """Put the account into the trace's metadata, which Kineto writes before it asks for the records."""
    delivery = Delivery(bridge, generation, TextCleaner(bridge.demangles))
    report = capture.report.as_dict()
    del report["complete"]  # not known before torch has asked for the records
    own = {"version": __version__, "contract": list(CONTRACT_VERSION), **report, "backends": _backends(capture, told)}
    delivery.metadata({"devprof": own}, "", set())
    delivery.device_properties(told.properties)
    delivery.span(" + ".join(lane.plugin.name for lane in capture.lanes))


def _backends(capture: CaptureSession, told: _Told) -> dict[int, str]:
    """Return the backend of each device by its id: Kineto's format has no place for it, and readers must not guess."""
    plugins = [lane.plugin for lane in capture.lanes]
    backend = {one.name: one.capabilities.torch_device or one.name for one in plugins}
    return {device: backend[owner] for device, owner in sorted(told.owners.items())}
