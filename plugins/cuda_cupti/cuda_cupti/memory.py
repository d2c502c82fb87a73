"""Allocations and releases of a GPU's memory, and of the host's that is pinned for it, in the words of torch's memory events.

CUPTI tells of each call, not of how much there is. The totals here are sums from the session's start; what was there before is
in them only where it is released in the session, so that they are never below zero.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from cuda_cupti.decode import Records
from cuda_cupti.items import Items
from cuda_cupti.joins import Joins
from cuda_cupti.layouts import ActivityKind
from cuda_cupti.rows import Rows, joined
from cuda_cupti.times import stamped
from devprof.model import ActivityBatch, ActivityType

__all__ = ["MemoryTotals", "memory_reports"]

Longs = npt.NDArray[np.int64]

_RELEASE = 2  # CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE
_ON_HOST = (1, 2)  # CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE, PINNED
_OF_MODULES = (6, 7)  # static memory, which comes and goes with the code that it belongs to
_LOCAL_POOL = 1  # CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL
_POOL = np.dtype(
    {"names": ["type", "address", "size"], "formats": ["<u4", "<u8", "<u8"], "offsets": [0, 8, 24], "itemsize": 40}
)
"""``CUpti_ActivityMemory4.memoryPoolConfig``: its fields that are read here."""
_CPU, _CUDA = 0, 1  # c10::DeviceType
_PINNED = -1
"""Stands for the pinned memory of the host, where a GPU's number would stand; torch says so of the CPU too."""
_MOST_BYTES = 1 << 62


class MemoryTotals:
    """How much there is now, as far as the session has seen. Used by one thread at a time."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._allocated: Counter[int] = Counter()
        self._pooled: Counter[int] = Counter()
        self._pools: dict[tuple[int, int], int] = {}

    def after(self, device: Longs, delta: Longs, rows: Rows) -> tuple[Longs, Longs]:
        """Return what is allocated, and what is reserved, after each operation: (n,) and (n,), bytes.

        Reserved is what is allocated by itself, and the pools of ``cudaMallocAsync`` with all that they hold.

        Args:
            device: (n,) the GPU, or `_PINNED`.
            delta: (n,) bytes that came, negative for those that went.
            rows: (n,) the records, by time.
        """
        allocated, reserved = np.empty(len(device), dtype=np.int64), np.empty(len(device), dtype=np.int64)
        pool = rows["memoryPoolConfig"].view(_POOL) if "memoryPoolConfig" in rows else np.zeros(len(device), _POOL)
        in_pool = pool["type"] == _LOCAL_POOL
        for one in np.unique(device).tolist():
            here = device == one
            allocated[here] = self._added(self._allocated, one, delta[here])
            pooled = self._added(self._pooled, one, np.where(in_pool, delta, 0)[here])
            held = self._held(one, pool[here], in_pool[here])
            reserved[here] = allocated[here] - pooled + np.maximum(held, pooled)
        return allocated, reserved

    def _added(self, totals: Counter[int], device: int, delta: Longs) -> Longs:
        after: Longs = totals[device] + np.cumsum(delta)
        # releases of what was there before; bounded, because sizes are whatever CUPTI wrote
        after += min(max(0, -int(after.min())), _MOST_BYTES)
        totals[device] = int(after[-1])
        return after

    def _held(self, device: int, pool: npt.NDArray[np.void], in_pool: npt.NDArray[np.bool_]) -> Longs:
        """Return what the device's pools hold after each operation, (n,), bytes."""
        held = np.zeros(len(pool), dtype=np.int64)
        addresses = {address for of, address in self._pools if of == device} | set(pool["address"][in_pool].tolist())
        for address in addresses:
            told = in_pool & (pool["address"] == address)
            sizes = np.concatenate([[self._pools.get((device, address), 0)], pool["size"][told].astype(np.int64)])
            held += sizes[np.cumsum(told)]
            self._pools[device, address] = int(sizes[-1])
        return held


def memory_reports(
    records: Sequence[Records], joins: Joins, totals: MemoryTotals, lost: Counter[str]
) -> list[ActivityBatch]:
    """Return allocations and releases as instants on the threads that called; a release is negative.

    Args:
        records: decoded buffers of the session, or of a piece of it.
        joins: of the same.
        totals: how much there was before; brought up to date.
        lost: counts records without a time.
    """
    parts = [one.of[ActivityKind.MEMORY2] for one in records if ActivityKind.MEMORY2 in one.of]
    if not parts:
        return []
    rows = joined(parts)
    rows = rows.take(~np.isin(rows["memoryKind"], _OF_MODULES))
    rows = rows.take(stamped(rows["timestamp"], lost))
    rows = rows.ordered(np.argsort(rows["timestamp"], kind="stable"))
    return [_batch(rows, joins, totals)] if len(rows) else []


def _batch(rows: Rows, joins: Joins, totals: MemoryTotals) -> ActivityBatch:
    correlation, at = rows["correlationId"], rows["timestamp"].astype(np.int64)
    on_host = np.isin(rows["memoryKind"], _ON_HOST)
    device = np.where(on_host, _PINNED, rows["deviceId"].astype(np.int64))
    delta = np.where(rows["memoryOperationType"] == _RELEASE, -1, 1) * rows["bytes"].astype(np.int64)
    allocated, reserved = totals.after(device, delta, rows)
    names, name = np.unique(device, return_inverse=True)
    items = Items()
    items.ints("Device Type", np.where(on_host, _CPU, _CUDA))
    items.ints("Device Id", device)
    items.ints("Addr", rows["address"])
    items.ints("Bytes", delta)
    items.ints("Total Allocated", allocated)
    items.ints("Total Reserved", reserved)
    items.texts("Device", (name.reshape(-1) + 1).astype(np.int32))
    thread = joins.thread.of(correlation)
    return ActivityBatch.from_columns(
        ["[memory]", *("cpu:pinned" if one == _PINNED else f"cuda:{one}" for one in names.tolist())],
        activity_type=ActivityType.CPU_INSTANT_EVENT,
        name=0,
        start=at,
        end=at,
        thread_id=np.where(thread > 0, thread, rows["processId"].astype(np.int64)),  # else the main thread
        linked=joins.op.of(correlation),
        linked_user=joins.user.of(correlation),
        metadata=items.columns,
    )
