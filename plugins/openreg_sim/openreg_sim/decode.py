"""From activity records to devprof's batches, a column at a time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from devprof.model import ActivityBatch, ActivityType, MetadataColumn, MetadataKind
from openreg_sim import activity
from openreg_sim.activity import (
    EXTERNAL_CORRELATION_DTYPE,
    KERNEL_DTYPE,
    MEMCPY_DTYPE,
    SYNCHRONIZATION_DTYPE,
    ActivityKind,
    ExternalCorrelationKind,
)
from openreg_sim.ring import CopyKind
from openreg_sim.runtime import Call, runtime

__all__ = ["CLOCK", "KINDS", "SYNC_ROW", "batches_of"]

Records = npt.NDArray[np.void]

CLOCK = "openreg"
"""Name of the device clock in batches."""

SYNC_ROW = 1_000_000
"""Added to a stream's number for the row of the host's waits, as Kineto does."""

KINDS = {
    ActivityType.CONCURRENT_KERNEL: ActivityKind.KERNEL,
    ActivityType.GPU_MEMCPY: ActivityKind.MEMCPY,
    ActivityType.GPU_MEMSET: ActivityKind.MEMSET,
    ActivityType.PRIVATEUSE1_RUNTIME: ActivityKind.RUNTIME,
    ActivityType.CUDA_SYNC: ActivityKind.SYNCHRONIZATION,
}
"""The device's kind for each of devprof's."""

_TYPES = np.zeros(max(ActivityKind) + 1, np.uint8)
for _type, _kind in KINDS.items():
    _TYPES[_kind] = _type


def batches_of(records: Records) -> Iterator[ActivityBatch]:
    """Yield the host's records, on the host's clock, and the device's, on its own.

    Args:
        records: shape (n,), `openreg_sim.activity.RECORD_DTYPE`.
    """
    is_host = records["kind"] == ActivityKind.RUNTIME
    is_device = np.isin(records["kind"], list(set(KINDS.values()) - {ActivityKind.RUNTIME}))
    ids = {kind: _external_ids(records, kind) for kind in ExternalCorrelationKind}
    for rows in (is_host, is_device):
        if rows.any():
            yield _batch(records[rows], {kind: column[rows] for kind, column in ids.items()}, on_host=rows is is_host)


def _batch(
    records: Records, ids: dict[ExternalCorrelationKind, npt.NDArray[np.int64]], *, on_host: bool
) -> ActivityBatch:
    names, name = np.unique(records["name"], return_inverse=True)
    waits = (records["kind"] == ActivityKind.SYNCHRONIZATION) & (records["call"] != Call.STREAM_WAIT_EVENT)
    return ActivityBatch.from_columns(
        [activity.orActivityGetName(int(number)) for number in names],
        activity_type=_TYPES[records["kind"]],
        name=name,
        start=records["start"],
        end=records["end"],
        id=records["correlation"],
        device=0 if on_host else records["device"],
        resource=0 if on_host else records["stream"] + np.where(waits, SYNC_ROW, 0),
        thread_id=records["thread_id"],
        linked=ids[ExternalCorrelationKind.OPERATOR],
        linked_user=ids[ExternalCorrelationKind.USER],
        metadata=_host_metadata(records) if on_host else _device_metadata(records, name),
        clock=CLOCK if not on_host or activity.orActivityHostTimesAreTicks() else "unix_ns",
    )


def _external_ids(records: Records, kind: ExternalCorrelationKind) -> npt.NDArray[np.int64]:
    """Return for each record the id that was pushed at its call, 0 where there was none. Shape (n,)."""
    pushed = records[records["kind"] == ActivityKind.EXTERNAL_CORRELATION].view(EXTERNAL_CORRELATION_DTYPE)
    pushed = pushed[pushed["external_kind"] == kind]
    pushed = pushed[np.argsort(pushed["correlation"], kind="stable")]
    # a first entry for correlation 0, which no call has, so that every record finds an entry at or before its own
    correlation = np.concatenate([[np.uint64(0)], pushed["correlation"]])
    external = np.concatenate([[np.uint64(0)], pushed["external_id"]]).astype(np.int64)
    at = np.searchsorted(correlation, records["correlation"], side="right") - 1
    return np.where(correlation[at] == records["correlation"], external[at], 0)


def _host_metadata(records: Records) -> dict[str, MetadataColumn]:
    return {"cbid": MetadataColumn(MetadataKind.INT, records["call"])}


def _device_metadata(records: Records, name: npt.NDArray[np.integer]) -> dict[str, MetadataColumn]:
    """Return the items that CUDA traces have too, with their names and types."""
    kind, call = records["kind"], records["call"]
    kernel, copy, wait = records.view(KERNEL_DTYPE), records.view(MEMCPY_DTYPE), records.view(SYNCHRONIZATION_DTYPE)
    moves = (kind == ActivityKind.MEMCPY) | (kind == ActivityKind.MEMSET)
    peer = (kind == ActivityKind.MEMCPY) & (copy["copy_kind"] == CopyKind.PEER_TO_PEER)
    sync = kind == ActivityKind.SYNCHRONIZATION
    on_event = sync & np.isin(call, [Call.STREAM_WAIT_EVENT, Call.EVENT_SYNCHRONIZE])
    duration_ns = (records["end"] - records["start"]) * (1e9 / runtime().config.ticks_per_second)
    bandwidth = np.divide(copy["bytes"], duration_ns, out=np.zeros(len(records)), where=moves & (duration_ns > 0))
    columns = {
        "grid": (MetadataKind.INT_LIST, kernel["grid"], kind == ActivityKind.KERNEL),
        "block": (MetadataKind.INT_LIST, kernel["block"], kind == ActivityKind.KERNEL),
        "bytes": (MetadataKind.INT, copy["bytes"], moves),
        "memory bandwidth (GB/s)": (MetadataKind.FLOAT, bandwidth, moves & (duration_ns > 0)),
        "fromDevice": (MetadataKind.INT, copy["from"], peer),
        "inDevice": (MetadataKind.INT, records["device"], peer),
        "toDevice": (MetadataKind.INT, copy["to"], peer),
        "cuda_sync_kind": (MetadataKind.STRING, name, sync),
        "wait_on_stream": (MetadataKind.INT, wait["event_stream"], on_event),
        "wait_on_cuda_event_id": (MetadataKind.INT, wait["event"], on_event),
        "wait_on_cuda_event_record_corr_id": (MetadataKind.INT, wait["event_correlation"], on_event),
    }
    return {key: MetadataColumn(*column) for key, column in columns.items() if column[2].any()}
