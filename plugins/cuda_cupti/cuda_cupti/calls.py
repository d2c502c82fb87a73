"""Batches of what happened on the host: API calls, without the noise, and what tracing itself cost.

Source: libkineto/src/CuptiCbidRegistry.cpp for what is noise, libkineto/src/cupti_strings.cpp for names of overheads.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import numpy.typing as npt

from cuda_cupti.cbids import DRIVER_CALLS, RUNTIME_NOISE, api_names, driver_calls_shown
from cuda_cupti.decode import Records
from cuda_cupti.items import Items
from cuda_cupti.joins import Joins
from cuda_cupti.layouts import ActivityKind
from cuda_cupti.rows import Rows
from cuda_cupti.times import timed
from devprof.model import ActivityBatch, ActivityType

__all__ = ["OVERHEADS", "driver_calls", "overheads", "runtime_calls"]

OVERHEADS = {
    0: "Unknown",
    1: "Driver Compiler",
    1 << 16: "Buffer Flush",
    2 << 16: "Instrumentation",
    3 << 16: "Resource",
    4 << 16: "Runtime Triggered Module Loading",
    5 << 16: "Lazy Function Loading",
    6 << 16: "Command Buffer Full",
    7 << 16: "Activity Buffer Request",
    8 << 16: "UVM Activity Init",
}
"""Names of ``CUpti_ActivityOverheadKind``."""

_THREAD = 2  # CUPTI_ACTIVITY_OBJECT_THREAD


def runtime_calls(records: Records, joins: Joins, lost: Counter[str]) -> tuple[list[ActivityBatch], int]:
    """Return the calls of the runtime, and how many were noise."""
    rows = records.of.get(ActivityKind.RUNTIME)
    if rows is None:
        return [], 0
    noise = np.isin(rows["cbid"], list(RUNTIME_NOISE)) & ~joins.caused.has(rows["correlationId"])
    return [_calls(rows.take(~noise), ActivityKind.RUNTIME, joins, lost)], int(noise.sum())


def driver_calls(records: Records, joins: Joins, lost: Counter[str]) -> tuple[list[ActivityBatch], int]:
    """Return the calls of the driver that matter, and how many did not.

    Those that Kineto shows; and those that launch, copy, set or wait, or that caused something, where no call of the runtime
    stands for it: a program that copies or launches graphs through the driver has no other launches.
    """
    rows = records.of.get(ActivityKind.DRIVER)
    if rows is None:
        return [], 0
    correlation = rows["correlationId"]
    launches = np.isin(rows["cbid"], driver_calls_shown()) | joins.caused.has(correlation)
    kept = np.isin(rows["cbid"], list(DRIVER_CALLS)) | (launches & ~joins.runtime.has(correlation))
    return [_calls(rows.take(kept), ActivityKind.DRIVER, joins, lost)], int((~kept).sum())


def overheads(records: Records, lost: Counter[str]) -> list[ActivityBatch]:
    """Return what CUPTI and the driver spent, on the threads that it was spent on."""
    rows = records.of.get(ActivityKind.OVERHEAD)
    if rows is None:
        return []
    rows = rows.take(timed(rows, lost))
    distinct, name = np.unique(rows["overheadKind"], return_inverse=True)
    batch = ActivityBatch.from_columns(
        [OVERHEADS.get(kind, "Unrecognized") for kind in distinct.tolist()],
        activity_type=ActivityType.OVERHEAD,
        name=name,
        start=rows["start"].astype(np.int64),
        end=rows["end"].astype(np.int64),
        thread_id=_threads(rows),
    )
    return [batch]


def _calls(rows: Rows, kind: ActivityKind, joins: Joins, lost: Counter[str]) -> ActivityBatch:
    rows = rows.take(timed(rows, lost))
    names, name = api_names(kind, rows["cbid"])
    items = Items()
    items.ints("cbid", rows["cbid"])
    correlation = rows["correlationId"]
    return ActivityBatch.from_columns(
        names,
        activity_type=ActivityType.CUDA_RUNTIME if kind is ActivityKind.RUNTIME else ActivityType.CUDA_DRIVER,
        name=name,
        start=rows["start"].astype(np.int64),
        end=rows["end"].astype(np.int64),
        id=correlation,
        thread_id=rows["threadId"],
        linked=joins.op.of(correlation),
        linked_user=joins.user.of(correlation),
        metadata=items.columns,
    )


def _threads(rows: Rows) -> npt.NDArray[np.int64]:
    """Return the thread of each overhead that has one, else 0: a process and a thread id lie where the object id is."""
    ids = np.frombuffer(rows["objectId"].tobytes(), dtype="<u4").reshape(len(rows), 3)
    return np.where(rows["objectKind"] == _THREAD, ids[:, 1], 0).astype(np.int64)
