"""What one call leaves behind: a row of the truth, and the activity records made of it.

Rows are packed int64, so that a call costs one `pack`; records are made of many rows at a time, with numpy.
"""

from __future__ import annotations

import struct
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from openreg_sim.ring import CallKind

__all__ = [
    "EXTERNAL_CORRELATION_DTYPE",
    "KERNEL_DTYPE",
    "MEMCPY_DTYPE",
    "MEMORY_DTYPE",
    "MEMSET_DTYPE",
    "RECORD_BYTES",
    "RECORD_DTYPE",
    "RUNTIME_DTYPE",
    "SYNCHRONIZATION_DTYPE",
    "TRUTH_DTYPE",
    "ActivityKind",
    "Call",
    "ExternalCorrelationKind",
    "pack_row",
    "rows_of",
]


class Call(IntEnum):
    """A call of the runtime; the first numbers are those of `openreg_sim.ring.CallKind`."""

    LAUNCH = CallKind.LAUNCH
    MEMCPY = CallKind.MEMCPY
    MEMSET = CallKind.MEMSET
    EVENT_RECORD = CallKind.EVENT_RECORD
    STREAM_WAIT_EVENT = CallKind.STREAM_WAIT_EVENT
    EVENT_DESTROY = CallKind.EVENT_DESTROY
    STREAM_SYNCHRONIZE = 7
    DEVICE_SYNCHRONIZE = 8
    EVENT_SYNCHRONIZE = 9
    ALLOCATE = 10
    FREE = 11

    @property
    def api_name(self) -> str:
        """Name of the call in the vendor's API, as runtime records carry it."""
        return _API_NAMES[self]


_API_NAMES = {
    Call.LAUNCH: "orLaunchKernel",
    Call.MEMCPY: "orMemcpyAsync",
    Call.MEMSET: "orMemsetAsync",
    Call.EVENT_RECORD: "orEventRecord",
    Call.STREAM_WAIT_EVENT: "orStreamWaitEvent",
    Call.EVENT_DESTROY: "orEventDestroy",
    Call.STREAM_SYNCHRONIZE: "orStreamSynchronize",
    Call.DEVICE_SYNCHRONIZE: "orDeviceSynchronize",
    Call.EVENT_SYNCHRONIZE: "orEventSynchronize",
    Call.ALLOCATE: "orMalloc",
    Call.FREE: "orFree",
}


class ActivityKind(IntEnum):
    """Kinds of activity records, to enable one by one."""

    KERNEL = 1
    MEMCPY = 2
    MEMSET = 3
    RUNTIME = 4
    EXTERNAL_CORRELATION = 5
    SYNCHRONIZATION = 6
    MEMORY = 7

    @property
    def bit(self) -> int:
        """The kind in a set of kinds."""
        return 1 << self


class ExternalCorrelationKind(IntEnum):
    """Whose ids a thread's stack holds; one stack per thread and kind."""

    OPERATOR = 0
    USER = 1


TRUTH_DTYPE = np.dtype(
    [
        (name, "<i8")
        for name in (
            "call",  # Call
            "kinds",  # set of ActivityKind bits that were enabled for it
            "correlation",  # number of the call, from 1
            "host_start_ns",
            "host_end_ns",
            "thread_id",  # native id of the calling thread
            "op_id",  # external ids current at the call, 0: none
            "user_id",
            "device",
            "stream",
            "start_ns",  # device work: when it really ran, on the host's clock; else when the call took effect
            "end_ns",
            "name",  # number of the text for `Runtime.name_of`
            "bytes",
            "detail0",  # launch: shape number; copy: CopyKind; event calls: event; memory: address
            "detail1",  # copy: source device; wait: stream of the event; memory: bytes in use
            "detail2",  # copy: destination device; wait: correlation of the event's record; memory: bytes reserved
        )
    ]
)
"""One call: what really happened, independent of clients, buffers and the device clock's error."""

pack_row = struct.Struct(f"<{len(TRUTH_DTYPE.names or ())}q").pack


def rows_of(packed: bytes) -> npt.NDArray[np.void]:
    """Return packed rows as a writable array of `TRUTH_DTYPE`, shape (n,)."""
    return np.frombuffer(bytearray(packed), TRUTH_DTYPE)


_HEADER = [
    ("kind", "u1"),  # ActivityKind
    ("call", "u1"),  # Call
    ("device", "<i2"),
    ("stream", "<i4"),
    ("start", "<i8"),
    ("end", "<i8"),
    ("correlation", "<u8"),  # of the call; its runtime record and its device record share it
    ("thread_id", "<i8"),  # native id of the calling thread
    ("name", "<u4"),  # text for orActivityGetName
    ("pad", "V4"),
]
RECORD_BYTES = 80


def _record(*body: tuple[str, str] | tuple[str, str, tuple[int, ...]]) -> np.dtype[np.void]:
    fields = [*_HEADER, *body]
    rest = RECORD_BYTES - np.dtype(fields).itemsize
    return np.dtype([*fields, ("rest", f"V{rest}")] if rest else fields)


RECORD_DTYPE = _record()
"""Any record: the fields that all kinds share. A view of the other types shows the rest."""
KERNEL_DTYPE = _record(("grid", "<u4", (3,)), ("block", "<u4", (3,)))
MEMCPY_DTYPE = _record(("bytes", "<i8"), ("copy_kind", "u1"), ("from", "<i2"), ("to", "<i2"))
MEMSET_DTYPE = _record(("bytes", "<i8"))
RUNTIME_DTYPE = _record()
EXTERNAL_CORRELATION_DTYPE = _record(("external_id", "<u8"), ("external_kind", "u1"))
SYNCHRONIZATION_DTYPE = _record(("event", "<u8"), ("event_correlation", "<u8"), ("event_stream", "<i8"))
MEMORY_DTYPE = _record(("bytes", "<i8"), ("address", "<u8"), ("allocated", "<i8"), ("reserved", "<i8"))

assert {RECORD_DTYPE.itemsize, KERNEL_DTYPE.itemsize, MEMCPY_DTYPE.itemsize, MEMORY_DTYPE.itemsize} == {RECORD_BYTES}
