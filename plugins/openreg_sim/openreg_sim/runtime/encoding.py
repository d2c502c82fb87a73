"""From rows of calls to activity records, many at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from openreg_sim.runtime.records import (
    EXTERNAL_CORRELATION_DTYPE,
    KERNEL_DTYPE,
    MEMCPY_DTYPE,
    MEMORY_DTYPE,
    MEMSET_DTYPE,
    RECORD_DTYPE,
    RUNTIME_DTYPE,
    SYNCHRONIZATION_DTYPE,
    ActivityKind,
    Call,
    ExternalCorrelationKind,
)

__all__ = ["KINDS_OF_CALL", "Encoder", "Stamp"]

Rows = npt.NDArray[np.void]
Stamp = Callable[[npt.NDArray[np.int64]], npt.NDArray[np.int64]]
"""Turns host times (n,) int64 ns into what a record carries."""

_HOST_KINDS = (ActivityKind.RUNTIME, ActivityKind.MEMORY)
_DEVICE_KINDS = (ActivityKind.KERNEL, ActivityKind.MEMCPY, ActivityKind.MEMSET, ActivityKind.SYNCHRONIZATION)

_ANY_CALL = ActivityKind.RUNTIME.bit | ActivityKind.EXTERNAL_CORRELATION.bit
KINDS_OF_CALL = {
    Call.LAUNCH: _ANY_CALL | ActivityKind.KERNEL.bit,
    Call.MEMCPY: _ANY_CALL | ActivityKind.MEMCPY.bit,
    Call.MEMSET: _ANY_CALL | ActivityKind.MEMSET.bit,
    Call.EVENT_RECORD: _ANY_CALL,
    Call.STREAM_WAIT_EVENT: _ANY_CALL | ActivityKind.SYNCHRONIZATION.bit,
    Call.EVENT_DESTROY: 0,
    Call.STREAM_SYNCHRONIZE: _ANY_CALL | ActivityKind.SYNCHRONIZATION.bit,
    Call.DEVICE_SYNCHRONIZE: _ANY_CALL | ActivityKind.SYNCHRONIZATION.bit,
    Call.EVENT_SYNCHRONIZE: _ANY_CALL | ActivityKind.SYNCHRONIZATION.bit,
    Call.ALLOCATE: _ANY_CALL | ActivityKind.MEMORY.bit,
    Call.FREE: _ANY_CALL | ActivityKind.MEMORY.bit,
}
"""The kinds of records that a call can leave."""

_BODIES: Mapping[ActivityKind, tuple[np.dtype[np.void], Mapping[str, str]]] = {
    ActivityKind.KERNEL: (KERNEL_DTYPE, {}),
    ActivityKind.MEMCPY: (MEMCPY_DTYPE, {"bytes": "bytes", "copy_kind": "detail0", "from": "detail1", "to": "detail2"}),
    ActivityKind.MEMSET: (MEMSET_DTYPE, {"bytes": "bytes"}),
    ActivityKind.RUNTIME: (RUNTIME_DTYPE, {}),
    ActivityKind.SYNCHRONIZATION: (
        SYNCHRONIZATION_DTYPE,
        {"event": "detail0", "event_stream": "detail1", "event_correlation": "detail2"},
    ),
    ActivityKind.MEMORY: (
        MEMORY_DTYPE,
        {"bytes": "bytes", "address": "detail0", "allocated": "detail1", "reserved": "detail2"},
    ),
}
"""Layout of each kind, and which fields of a row fill its body."""


class Encoder:
    """Makes records of rows.

    Args:
        host_stamp: for records of the host's side.
        device_stamp: for records of the device's side.
        shapes: returns grids and blocks by shape number, shape (n, 6).
    """

    def __init__(self, host_stamp: Stamp, device_stamp: Stamp, shapes: Callable[[], npt.NDArray[np.uint32]]) -> None:
        self._host_stamp = host_stamp
        self._device_stamp = device_stamp
        self._shapes = shapes

    def encode(self, rows: Rows, now_ns: int) -> tuple[Rows, Rows]:
        """Make the records that are complete.

        Args:
            rows: shape (n,), `TRUTH_DTYPE`, in the order of the calls; their ``kinds`` are the records still to be made, and
                are changed.
            now_ns: what ended later than this is not complete.

        Returns:
            The records, shape (m,), `RECORD_DTYPE`, in the order of the calls, external ids before what they belong to; and
            the rows that still have records to come.
        """
        parts = [self._external(rows, now_ns, external) for external in ExternalCorrelationKind]
        rows["kinds"][rows["host_end_ns"] <= now_ns] &= ~ActivityKind.EXTERNAL_CORRELATION.bit
        parts += [self._kind(rows, now_ns, kind) for kind in (*_HOST_KINDS, *_DEVICE_KINDS)]
        origin = np.concatenate([part[0] for part in parts])
        records = np.concatenate([part[1].view(RECORD_DTYPE) for part in parts])
        return records[np.argsort(origin, kind="stable")], rows[rows["kinds"] != 0]

    def _external(
        self, rows: Rows, now_ns: int, external: ExternalCorrelationKind
    ) -> tuple[npt.NDArray[np.intp], Rows]:
        ids = rows["op_id"] if external is ExternalCorrelationKind.OPERATOR else rows["user_id"]
        asked = (rows["kinds"] & ActivityKind.EXTERNAL_CORRELATION.bit) != 0
        due = np.flatnonzero(asked & (ids != 0) & (rows["host_end_ns"] <= now_ns))
        records = self._header(rows[due], ActivityKind.EXTERNAL_CORRELATION, EXTERNAL_CORRELATION_DTYPE)
        records["external_id"] = ids[due]
        records["external_kind"] = external
        return due, records

    def _kind(self, rows: Rows, now_ns: int, kind: ActivityKind) -> tuple[npt.NDArray[np.intp], Rows]:
        end = "host_end_ns" if kind in _HOST_KINDS else "end_ns"
        due = np.flatnonzero(((rows["kinds"] & kind.bit) != 0) & (rows[end] <= now_ns))
        rows["kinds"][due] &= ~kind.bit
        dtype, body = _BODIES[kind]
        source = rows[due]
        records = self._header(source, kind, dtype)
        for field, column in body.items():
            records[field] = source[column]
        if kind is ActivityKind.KERNEL:
            shapes = self._shapes()[source["detail0"]]
            records["grid"], records["block"] = shapes[:, :3], shapes[:, 3:]
        return due, records

    def _header(self, rows: Rows, kind: ActivityKind, dtype: np.dtype[np.void]) -> Rows:
        records = np.zeros(len(rows), dtype)
        on_device = kind in _DEVICE_KINDS
        stamp = self._device_stamp if on_device else self._host_stamp
        records["kind"] = kind
        records["start"] = stamp(rows["start_ns" if on_device else "host_start_ns"])
        records["end"] = stamp(rows["end_ns" if on_device else "host_end_ns"])
        # the number of a call is the number of its name
        records["name"] = rows["name" if on_device else "call"]
        for field in ("call", "device", "stream", "correlation", "thread_id"):
            records[field] = rows[field]
        return records
