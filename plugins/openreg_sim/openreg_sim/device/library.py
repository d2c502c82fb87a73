"""The native library's C interface: prototypes, and a check that both sides mean the same by a ring record."""

from __future__ import annotations

import ctypes
from ctypes import (
    CFUNCTYPE,
    POINTER,
    c_char_p,
    c_double,
    c_int,
    c_int32,
    c_int64,
    c_size_t,
    c_uint32,
    c_uint64,
    c_void_p,
)
from enum import IntEnum

from openreg_sim.ring import RING_DTYPE

__all__ = ["API_CALLBACK", "DRAIN_CALLBACK", "INTERRUPTED", "ApiCall", "MemoryFigure", "declare"]

DRAIN_CALLBACK = CFUNCTYPE(c_int)
API_CALLBACK = CFUNCTYPE(c_double, c_int32, c_int64, c_int64, c_void_p, c_size_t)
INTERRUPTED = 1


class ApiCall(IntEnum):
    """Blocking calls and queries, as `csrc/ring.h` numbers them."""

    DEVICE_SYNCHRONIZE = 1
    STREAM_SYNCHRONIZE = 2
    STREAM_QUERY = 3
    EVENT_SYNCHRONIZE = 4
    EVENT_QUERY = 5
    EVENT_ELAPSED = 6


class MemoryFigure(IntEnum):
    """What `orMemory` can be asked for, in bytes."""

    ALLOCATED = 0
    PEAK_ALLOCATED = 1
    RESERVED = 2
    PEAK_RESERVED = 3


_PROTOTYPES: dict[str, tuple[object, tuple[object, ...]]] = {
    "orLastError": (c_char_p, ()),
    "orInit": (c_int, (c_int,)),
    "orSettleAutograd": (c_int, (c_int64,)),
    "orShutdown": (c_int, ()),
    "orSetDrainCallback": (None, (DRAIN_CALLBACK,)),
    "orSetApiCallback": (None, (API_CALLBACK,)),
    "orRingDrain": (c_size_t, (c_void_p, c_size_t)),
    "orRingPending": (c_size_t, ()),
    "orRingDropped": (c_uint64, ()),
    "orSetRingCapacity": (None, (c_size_t,)),
    "orRecordSize": (c_size_t, ()),
    "orOpName": (c_char_p, (c_uint32,)),
    "orSignature": (c_size_t, (c_uint32, POINTER(c_int64), c_size_t)),
    "orDtypeName": (c_char_p, (c_int64,)),
    "orDeviceCount": (c_int, ()),
    "orCurrentDevice": (c_int, ()),
    "orSetDevice": (c_int, (c_int,)),
    "orCurrentStream": (c_int, (c_int,)),
    "orEventCreate": (c_uint64, ()),
    "orEventRecord": (None, (c_uint64, c_int, c_int)),
    "orEventDestroy": (None, (c_uint64,)),
    "orMemory": (c_int64, (c_int, c_int)),
    "orSetMemoryLimit": (None, (c_int, c_int64)),
    "orMemoryInfo": (None, (c_int, POINTER(c_uint64), POINTER(c_uint64))),
    "orResetPeakMemory": (None, (c_int,)),
    "orEmptyCache": (None, ()),
    "orManualSeed": (None, (c_int, c_uint64)),
    "orInitialSeed": (c_uint64, (c_int,)),
    "orSeed": (c_uint64, (c_int,)),
    "orGetRngState": (c_size_t, (c_int, c_void_p, c_size_t)),
    "orSetRngState": (c_int, (c_int, c_void_p, c_size_t)),
    "orActivityEnableTracing": (None, (c_uint32,)),
    "orActivityDisableTracing": (None, (c_uint32,)),
    "orTracerPush": (None, (c_uint32, c_uint64)),
    "orTracerPop": (None, (c_uint32,)),
    "orTracerTop": (c_uint64, (c_uint32,)),
    "orTracerUnbalancedPops": (c_uint64, ()),
    "orActivityPushExternalCorrelationId": (c_int, (c_uint32, c_uint64)),
    "orActivityPopExternalCorrelationId": (c_int, (c_uint32, POINTER(c_uint64))),
}
"""Every exported function: result and arguments."""


def declare(library: ctypes.CDLL) -> ctypes.CDLL:
    """Set the prototypes of the library's functions and return it.

    Raises:
        RuntimeError: the library's ring record has another size than `RING_DTYPE`.
    """
    for name, (result, arguments) in _PROTOTYPES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    size = library.orRecordSize()
    if size != RING_DTYPE.itemsize:
        raise RuntimeError(
            f"ring records have {size} bytes in the native library and {RING_DTYPE.itemsize} in RING_DTYPE"
        )
    return library
