"""From a stopped capture to records inside Kineto: the last thing that runs before torch stops."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from devprof import __version__
from devprof.capture import CaptureSession, LaneResult, SessionReport
from devprof.contract import CONTRACT_VERSION
from devprof.link import LinkedColumns
from devprof.model import ActivityBatch, ActivityType, MetadataColumn, MetadataKind
from devprof.pipeline import LinkedLane, process
from devprof.torch.bridge import Bridge
from devprof.torch.delivery import Delivery
from devprof.torch.keys import OF_THE_FILE
from devprof.torch.rows import LaneRows
from devprof.torch.text import TextCleaner

__all__ = ["drain"]

log = logging.getLogger("devprof.torch")

DEVICES_PER_PLUGIN = 100
"""Distance between the device ids of two plugins, so that two "device 0" do not share a row."""

_LAUNCH_BASE = 2**30
_MOST_DEVICES = 2**30


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
    places = _Places()
    for result in results:
        try:
            lane = _linked(bridge, result, capture.report, parents, places)
            _hand_over(bridge, generation, lane, parents, places)
        except Exception as error:
            log.exception("the records of plugin %r are lost", result.name)
            capture.report.notes.append(f"{result.name}: devprof failed to process its records: {error!r}")
            result.ledger.give_up("devprof failed to process it", sum(map(len, result.batches)))
    _describe(bridge, capture, generation, places)


@dataclass(slots=True)
class _Places:
    """What one plugin leaves free for the next, launch numbers, device ids, keys of the trace's metadata; and whose is what."""

    next_launch: int = _LAUNCH_BASE
    device_offset: int = 0
    properties: list[dict[str, object]] = field(default_factory=list)
    keys: set[str] = field(default_factory=lambda: set(OF_THE_FILE))
    owners: dict[int, str] = field(default_factory=dict)  # device id -> name of its plugin


def _linked(
    bridge: Bridge, result: LaneResult, report: SessionReport, parents: Mapping[int, int], places: _Places
) -> LinkedLane:
    return process(
        result,
        start_ns=report.start_ns,
        end_ns=report.end_ns,
        known_ops=bridge.known_ops,
        user_parents=parents,
        launch_base=places.next_launch,
        device_offset=places.device_offset,
    )


def _hand_over(bridge: Bridge, generation: int, lane: LinkedLane, parents: Mapping[int, int], places: _Places) -> None:
    offset = places.device_offset
    places.next_launch = lane.next_launch
    places.properties += [*(_shifted(one, offset) for one in lane.device_properties), *_properties(lane, offset)]
    greatest = _deliver(bridge, generation, _with_known_ranges(lane, parents), places)
    places.device_offset = _next_offset(offset, greatest)


def _shifted(properties: Mapping[str, object], offset: int) -> dict[str, object]:
    """Number a device's properties as its row is numbered."""
    index = properties.get("id")
    return {**properties, "id": index + offset} if isinstance(index, int) else dict(properties)


def _properties(lane: LinkedLane, device_offset: int) -> list[dict[str, object]]:
    """Return the facts that came with the devices' names."""
    return [
        {"id": info.id + device_offset, "name": info.name, **info.properties}
        for info in lane.device_infos
        if info.properties
    ]


def _next_offset(offset: int, greatest_device: int) -> int:
    """Return the next plugin's first device id: behind every device so far, in whole hundreds, while int32 has room."""
    following = max(offset, (greatest_device // DEVICES_PER_PLUGIN) * DEVICES_PER_PLUGIN) + DEVICES_PER_PLUGIN
    return following if following < _MOST_DEVICES else offset + DEVICES_PER_PLUGIN


def _with_known_ranges(lane: LinkedLane, parents: Mapping[int, int]) -> LinkedLane:
    """Leave out spans of user ids that no range had: Kineto would name them after an op whose id has the same 32 bits."""
    spans = lane.spans
    known = np.isin(spans.user_id, np.fromiter(parents, dtype=np.int64, count=len(parents)))
    if known.all():
        return lane
    lane.ledger.notes["user id unknown to the host"] += len({*spans.user_id[~known].tolist()})
    columns = {name: getattr(spans, name)[known] for name in ("user_id", "device", "resource", "start", "end")}
    return replace(lane, spans=replace(spans, **columns))


def _deliver(bridge: Bridge, generation: int, lane: LinkedLane, places: _Places) -> int:
    """Hand over one plugin's part; return the greatest device index that it uses."""
    cleaner = TextCleaner(bridge.demangles)
    delivery = Delivery(bridge, generation, cleaner)
    rows = LaneRows(lane, places.device_offset)
    for batch, columns in zip(lane.batches, lane.columns, strict=True):
        delivery.records(batch, rows.of_batch(batch, columns), _marks(columns))
    if len(lane.spans):
        delivery.annotations(_span_batch(lane), rows.of_spans())
    devices = rows.devices()
    delivery.device_rows(devices, rows.resources())
    places.owners |= {info.id: lane.name for info in devices}
    delivery.metadata(lane.metadata, lane.name, places.keys)
    lane.ledger.notes.update(cleaner.changes)
    if rows.n_renumbered:
        lane.ledger.notes["resource renumbered: torch keeps 32 bits"] += rows.n_renumbered
    return rows.greatest_device


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


def _describe(bridge: Bridge, capture: CaptureSession, generation: int, places: _Places) -> None:
    """Put the account into the trace's metadata, which Kineto writes before it asks for the records."""
    delivery = Delivery(bridge, generation, TextCleaner(bridge.demangles))
    report = capture.report.as_dict()
    del report["complete"]  # not known before torch has asked for the records
    own = {"version": __version__, "contract": list(CONTRACT_VERSION), **report, "backends": _backends(capture, places)}
    delivery.metadata({"devprof": own}, "", set())
    delivery.device_properties(places.properties)
    delivery.span(" + ".join(lane.plugin.name for lane in capture.lanes))


def _backends(capture: CaptureSession, places: _Places) -> dict[int, str]:
    """Return the backend of each device by its id: Kineto's format has no place for it, and readers must not guess."""
    plugins = [lane.plugin for lane in capture.lanes]
    backend = {one.name: one.capabilities.torch_device or one.name for one in plugins}
    return {device: backend[owner] for device, owner in sorted(places.owners.items())}
