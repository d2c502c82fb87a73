"""From records to devprof's batches, in the categories, names, keys and units of Kineto's CUDA traces.

devprof draws the arrows itself, between a launch and its work, and only whole ones; so a record carries its correlation id, and
no end of an arrow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field

import numpy as np

from cuda_cupti.calls import driver_calls, overheads, runtime_calls
from cuda_cupti.decode import Records, merged
from cuda_cupti.devices import DeviceFacts, devices_of
from cuda_cupti.joins import ExternalKinds, Joins, for_later, joins_of
from cuda_cupti.layouts import ActivityKind
from cuda_cupti.memory import MemoryTotals, memory_reports
from cuda_cupti.waits import SYNC_ROW, events, waits
from cuda_cupti.work import KERNEL_KINDS, MOVE_KINDS, copies, graphs, kernels, sets
from devprof.model import ActivityBatch, ActivityType, DeviceInfo, ResourceInfo

__all__ = ["TYPES", "ExternalKinds", "Output", "for_later", "to_batches"]

TYPES = frozenset(
    {
        ActivityType.CONCURRENT_KERNEL,
        ActivityType.GPU_MEMCPY,
        ActivityType.GPU_MEMSET,
        ActivityType.CUDA_RUNTIME,
        ActivityType.CUDA_DRIVER,
        ActivityType.OVERHEAD,
        ActivityType.CUDA_SYNC,
        ActivityType.CUDA_EVENT,
    }
)
"""Kinds that records can become, beside reports of memory."""

_A, _K = ActivityType, ActivityKind
_Maker = Callable[[Counter[str]], tuple[list[ActivityBatch], int]]
"""Makes batches, and says how many records were noise; counts what it loses."""

_ON_HOST = {ActivityType.CUDA_RUNTIME, ActivityType.CUDA_DRIVER, ActivityType.OVERHEAD, ActivityType.CPU_INSTANT_EVENT}
_MOST_DEVICES = 1 << 16
_RESOURCE_BITS = 40  # a stream's number has 32, and SYNC_ROW may be added
_RESOURCES = (1 << _RESOURCE_BITS) - 1
_AT_ONCE = 1 << 16
"""Records that are made batches of together."""


@dataclass(frozen=True, slots=True)
class Output:
    """What a session hands over.

    Attributes:
        batches: the records, on Unix ns as CUPTI stamps them; a batch per kind of record and piece, none empty.
        devices: the devices that they refer to, and those that are known.
        resources: their streams, and a row beside each for waits.
        properties: facts of the devices, for ``deviceProperties``.
        lost: records that are in no batch though they were wanted, by a reason for `ActivityLogger.handle_dropped`.
        filtered: how many API calls were left out as noise.
    """

    batches: tuple[ActivityBatch, ...] = ()
    devices: tuple[DeviceInfo, ...] = ()
    resources: tuple[ResourceInfo, ...] = ()
    properties: tuple[Mapping[str, object], ...] = ()
    lost: Mapping[str, int] = field(default_factory=dict)
    filtered: int = 0


def to_batches(
    records: Sequence[Records],
    devices: Mapping[int, DeviceFacts] | None = None,
    types: Set[ActivityType] = TYPES,
    external: ExternalKinds | None = None,
    earlier: Records | None = None,
    memory: MemoryTotals | None = None,
    contexts: Mapping[int, int] | None = None,
) -> Output:
    """Return the records of a session, or of a piece of it, as batches.

    Args:
        records: decoded buffers, all of them: what belongs together may be in different ones.
        devices: facts by device index, before what DEVICE records say.
        types: kinds to hand over.
        external: the kinds that ids were pushed under.
        earlier: of a session in pieces, what `for_later` returned; it is looked up, and not handed over again.
        memory: how much there was before; it is brought up to date. None: reports of memory are not wanted.
        contexts: devices by context, where records do not tell.

    Raises:
        ValueError: the buffers are of libraries with different layouts.
    """
    parts = _parts(records)
    said = {at: one for part in parts for at, one in devices_of(part).items()}
    facts = {at: one for at, one in {**said, **(devices or {})}.items() if at < _MOST_DEVICES}
    lost: Counter[str] = Counter()
    joins = joins_of([*([earlier] if earlier else []), *parts], external or ExternalKinds(), contexts or {})
    batches, filtered = [], 0
    for part in parts:
        made, noise = _batches(part, joins, facts, types, lost)
        batches += [batch for batch in made if len(batch)]
        filtered += noise
    if memory is not None:
        totals = memory
        batches += _guarded(lambda lost: (memory_reports(parts, joins, totals, lost), 0), parts, (_K.MEMORY2,), lost)[0]
    used = _rows(batches)
    return Output(
        batches=tuple(batches),
        devices=tuple(
            _device_info(device, facts.get(device)) for device in sorted({d for d, _ in used} | facts.keys())
        ),
        resources=tuple(_resource_info(device, resource) for device, resource in sorted(used)),
        properties=tuple(facts[device].properties() for device in sorted(facts)),
        lost=dict(lost),
        filtered=filtered,
    )


def _parts(records: Sequence[Records]) -> list[Records]:
    """Return the records in pieces that fit the processor's cache: small buffers together, in their order."""
    groups: list[list[Records]] = []
    room = 0
    for one in records:
        if not groups or room < len(one):
            groups.append([])
            room = _AT_ONCE
        groups[-1].append(one)
        room -= len(one)
    return [merged(group) for group in groups]


def _batches(
    records: Records,
    joins: Joins,
    facts: Mapping[int, DeviceFacts],
    types: Set[ActivityType],
    lost: Counter[str],
) -> tuple[list[ActivityBatch], int]:
    makers: tuple[tuple[ActivityType, tuple[ActivityKind, ...], _Maker], ...] = (
        (_A.CONCURRENT_KERNEL, KERNEL_KINDS, lambda lost: (kernels(records, joins, facts, lost), 0)),
        (_A.CONCURRENT_KERNEL, (_K.GRAPH_TRACE,), lambda lost: (graphs(records, joins, lost), 0)),
        (_A.GPU_MEMCPY, MOVE_KINDS, lambda lost: (copies(records, joins, lost), 0)),
        (_A.GPU_MEMSET, (_K.MEMSET,), lambda lost: (sets(records, joins, lost), 0)),
        (_A.CUDA_RUNTIME, (_K.RUNTIME,), lambda lost: runtime_calls(records, joins, lost)),
        (_A.CUDA_DRIVER, (_K.DRIVER,), lambda lost: driver_calls(records, joins, lost)),
        (_A.OVERHEAD, (_K.OVERHEAD,), lambda lost: (overheads(records, lost), 0)),
        (_A.CUDA_SYNC, (_K.SYNCHRONIZATION,), lambda lost: (waits(records, joins, lost), 0)),
        (_A.CUDA_EVENT, (_K.CUDA_EVENT,), lambda lost: (events(records, joins, lost), 0)),
    )
    batches: list[ActivityBatch] = []
    filtered = 0
    for activity_type, kinds, maker in makers:
        if activity_type in types:
            made, noise = _guarded(maker, [records], kinds, lost)
            batches += made
            filtered += noise
    return batches, filtered


def _guarded(
    maker: _Maker, records: Sequence[Records], kinds: Sequence[ActivityKind], lost: Counter[str]
) -> tuple[list[ActivityBatch], int]:
    """Return what `maker` makes of records of some kinds; where it fails they are lost, and no others."""
    counted: Counter[str] = Counter()
    try:
        made = maker(counted)
    except Exception as error:  # noqa: BLE001  # what CUPTI wrote into one record must not cost the rest of a session
        rows = [one.of[kind] for one in records for kind in kinds if kind in one.of]
        lost[f"{kinds[0].name} records that cannot be converted ({error!r})"] += sum(map(len, rows))
        return [], 0
    lost.update(counted)
    return made


def _rows(batches: Sequence[ActivityBatch]) -> set[tuple[int, int]]:
    """Return the devices and streams that records stand on."""
    rows: set[tuple[int, int]] = set()
    for batch in batches:
        if ActivityType(int(batch.activity_type[0])) not in _ON_HOST:
            device = batch.device.astype(np.int64)
            in_reach = (device >= 0) & (device < _MOST_DEVICES)
            places = np.unique((device << _RESOURCE_BITS | batch.resource)[in_reach])
            rows |= {(place >> _RESOURCE_BITS, place & _RESOURCES) for place in places.tolist()}
    return rows


def _device_info(id: int, facts: DeviceFacts | None) -> DeviceInfo:
    return DeviceInfo(id, facts.name if facts and facts.name else f"GPU {id}", label=f"GPU {id}")


def _resource_info(device: int, resource: int) -> ResourceInfo:
    if resource < SYNC_ROW - 1:
        return ResourceInfo(resource, device, f"stream {resource}")
    stream = resource - SYNC_ROW
    return ResourceInfo(resource, device, f"stream {stream} (sync)" if stream >= 0 else "device (sync)")
