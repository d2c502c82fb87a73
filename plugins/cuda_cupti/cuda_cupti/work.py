"""Batches of what ran on a device: kernels, copies, sets, and graphs that were recorded as a whole.

Source: libkineto/src/CuptiActivity.h for names, keys and units.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from cuda_cupti.decode import Records
from cuda_cupti.devices import DeviceFacts
from cuda_cupti.items import Items
from cuda_cupti.joins import Joins
from cuda_cupti.layouts import ActivityKind
from cuda_cupti.names import demangled
from cuda_cupti.occupancy import achieved_occupancy, blocks_per_sm
from cuda_cupti.rows import Rows
from cuda_cupti.times import timed
from devprof.model import ActivityBatch, ActivityType

__all__ = ["COPY_KINDS", "KERNEL_KINDS", "MEMORY_KINDS", "MOVE_KINDS", "copies", "graphs", "kernels", "sets"]

COPY_KINDS = ("HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP")
"""``CUpti_ActivityMemcpyKind`` from 1."""

MEMORY_KINDS = ("Unknown", "Pageable", "Pinned", "Device", "Array", "Managed", "Device Static", "Managed Static")
"""``CUpti_ActivityMemoryKind`` from 0."""

KERNEL_KINDS = (ActivityKind.CONCURRENT_KERNEL, ActivityKind.KERNEL)
"""Kinds of record that `kernels` takes."""

MOVE_KINDS = (ActivityKind.MEMCPY, ActivityKind.MEMCPY2)
"""Kinds of record that `copies` takes."""

_UNNAMED = "unnamed kernel"


def kernels(
    records: Records, joins: Joins, devices: Mapping[int, DeviceFacts], lost: Counter[str]
) -> list[ActivityBatch]:
    """Return the kernels, a batch per kind of record."""
    names = [demangled(text) or _UNNAMED for text in records.texts]
    batches = []
    for kind in KERNEL_KINDS:
        rows = records.of.get(kind)
        if rows is None:
            continue
        kept = timed(rows, lost)
        rows, text = rows.take(kept), records.text[kind][kept]
        items = _kernel_items(rows, devices)
        batches.append(_batch(rows, ActivityType.CONCURRENT_KERNEL, names, text, joins, items))
    return batches


def copies(records: Records, joins: Joins, lost: Counter[str]) -> list[ActivityBatch]:
    """Return the copies, within a device and the host, and between devices."""
    batches = []
    for kind in MOVE_KINDS:
        rows = records.of.get(kind)
        if rows is None:
            continue
        rows = rows.take(timed(rows, lost))
        names, name = _named([rows["copyKind"], rows["srcKind"], rows["dstKind"]], _copy_name)
        items = Items()
        if kind is ActivityKind.MEMCPY2:
            _peer_items(items, rows)
        else:
            items.ints("context", rows["contextId"])
        _moved_items(items, rows)
        if kind is ActivityKind.MEMCPY:
            items.ints("copy count", rows["copyCount"], rows["copyCount"] > 1)
        batches.append(_batch(rows, ActivityType.GPU_MEMCPY, names, name, joins, items))
    return batches


def sets(records: Records, joins: Joins, lost: Counter[str]) -> list[ActivityBatch]:
    """Return the memory sets."""
    rows = records.of.get(ActivityKind.MEMSET)
    if rows is None:
        return []
    rows = rows.take(timed(rows, lost))
    names, name = _named([rows["memoryKind"]], lambda kind: f"Memset ({_memory(kind)})")
    items = Items()
    items.ints("context", rows["contextId"])
    _moved_items(items, rows)
    return [_batch(rows, ActivityType.GPU_MEMSET, names, name, joins, items)]


def graphs(records: Records, joins: Joins, lost: Counter[str]) -> list[ActivityBatch]:
    """Return graphs that were recorded as a whole: as kernels, which they stand for."""
    rows = records.of.get(ActivityKind.GRAPH_TRACE)
    if rows is None:
        return []
    rows = rows.take(timed(rows, lost))
    names, name = _named([rows["graphId"]], lambda graph: f"CUDA graph {graph}")
    items = Items()
    items.ints("context", rows["contextId"])
    items.ints("graph id", rows["graphId"])
    return [_batch(rows, ActivityType.CONCURRENT_KERNEL, names, name, joins, items)]


def _batch(
    rows: Rows,
    activity_type: ActivityType,
    names: list[str],
    name: npt.NDArray[np.int32],
    joins: Joins,
    items: Items,
) -> ActivityBatch:
    correlation = rows["correlationId"]
    return ActivityBatch.from_columns(
        names,
        activity_type=activity_type,
        name=name,
        start=rows["start"].astype(np.int64),
        end=rows["end"].astype(np.int64),
        id=correlation,
        device=rows["deviceId"].astype(np.int32),
        resource=rows["streamId"],
        thread_id=joins.thread.of(correlation),
        linked=joins.op.of(correlation),
        linked_user=joins.user.of(correlation),
        metadata=items.columns,
    )


def _kernel_items(rows: Rows, devices: Mapping[int, DeviceFacts]) -> Items:
    items = Items()
    items.ints("queued", rows["queued"])
    items.ints("context", rows["contextId"])
    items.ints("registers per thread", rows["registersPerThread"])
    items.ints("shared memory", rows["staticSharedMemory"].astype(np.int64) + rows["dynamicSharedMemory"])
    known, per_sm, warps, percent = _occupancy(rows, devices)
    items.floats("blocks per SM", per_sm, known)
    items.floats("warps per SM", warps, known)
    items.lists("grid", [rows["gridX"], rows["gridY"], rows["gridZ"]])
    items.lists("block", [rows["blockX"], rows["blockY"], rows["blockZ"]])
    items.ints("est. achieved occupancy %", percent, known)
    _graph_items(items, rows)
    if "priority" in rows:
        items.ints("priority", rows["priority"])
    _channel_items(items, rows)
    return items


def _occupancy(
    rows: Rows, devices: Mapping[int, DeviceFacts]
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Return for which kernels the device is known, and their blocks and warps per multiprocessor and occupancy in percent."""
    known = np.zeros(len(rows), dtype=np.bool_)
    per_sm, share = np.zeros(len(rows)), np.zeros(len(rows))
    for device in np.unique(rows["deviceId"]).tolist():
        facts = devices.get(device)
        if facts is None or not facts.num_sms or not facts.max_threads_per_multiprocessor:
            continue
        here = rows["deviceId"] == device
        known |= here
        mine = rows.take(here)
        per_sm[here] = blocks_per_sm(facts, mine)
        share[here] = achieved_occupancy(facts, mine)
    threads = rows["blockX"].astype(np.float64) * rows["blockY"] * rows["blockZ"]
    return known, per_sm, per_sm * threads / 32, (share * 100 + 0.5).astype(np.int64)


def _moved_items(items: Items, rows: Rows) -> None:
    lasted_ns = (rows["end"] - rows["start"]).astype(np.float64)
    took_time = lasted_ns > 0
    items.ints("bytes", rows["bytes"])
    rate = np.divide(rows["bytes"].astype(np.float64), lasted_ns, out=np.zeros(len(rows)), where=took_time)
    items.floats("memory bandwidth (GB/s)", rate, took_time)
    _graph_items(items, rows)
    _channel_items(items, rows)


def _peer_items(items: Items, rows: Rows) -> None:
    items.ints("fromDevice", rows["srcDeviceId"])
    items.ints("inDevice", rows["deviceId"])
    items.ints("toDevice", rows["dstDeviceId"])
    items.ints("fromContext", rows["srcContextId"])
    items.ints("inContext", rows["contextId"])
    items.ints("toContext", rows["dstContextId"])


def _graph_items(items: Items, rows: Rows) -> None:
    items.ints("graph id", rows["graphId"], rows["graphId"] > 0)
    items.ints("graph node id", rows["graphNodeId"], rows["graphNodeId"] > 0)


def _channel_items(items: Items, rows: Rows) -> None:
    items.ints("channel", rows["channelID"], rows["channelType"] > 0)
    items.ints("channel_type", rows["channelType"], rows["channelType"] > 0)


def _copy_name(kind: int, source: int, target: int) -> str:
    copy = COPY_KINDS[kind - 1] if 0 < kind <= len(COPY_KINDS) else "<unknown>"
    return f"Memcpy {copy} ({_memory(source)} -> {_memory(target)})"


def _memory(kind: int) -> str:
    return MEMORY_KINDS[kind] if kind < len(MEMORY_KINDS) else "Unrecognized"


def _named(
    columns: list[npt.NDArray[np.integer]], name_of: Callable[..., str]
) -> tuple[list[str], npt.NDArray[np.int32]]:
    """Return a name for each distinct combination of values, and which of them each record has."""
    distinct, inverse = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
    return [name_of(*values) for values in distinct.tolist()], inverse.reshape(-1).astype(np.int32)
