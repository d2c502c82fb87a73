"""The structs of the bridge's C ABI, field by field as in ``csrc/block.h``, ``csrc/demand.h`` and ``csrc/host.cpp``."""

from __future__ import annotations

import ctypes
from ctypes import c_char_p, c_double, c_int, c_int32, c_int64, c_uint64, c_void_p

__all__ = ["Block", "Column", "DemandEvent", "StubTable"]


class Column(ctypes.Structure):
    """One metadata or counter column."""

    _fields_ = (
        ("key", c_char_p),
        ("kind", c_int32),
        ("width", c_int32),
        ("values", c_void_p),
        ("present", c_void_p),
    )


class Block(ctypes.Structure):
    """One block of records; every pointer is to a contiguous array of `rows` items."""

    _fields_ = (
        ("rows", c_uint64),
        ("activity_type", c_void_p),
        ("name", c_void_p),
        ("start_ns", c_void_p),
        ("end_ns", c_void_p),
        ("id", c_void_p),
        ("device", c_void_p),
        ("resource", c_void_p),
        ("linked", c_void_p),
        ("flow_id", c_void_p),
        ("flow_type", c_void_p),
        ("flow_start", c_void_p),
        ("text", c_char_p),
        ("text_offsets", c_void_p),
        ("n_texts", c_uint64),
        ("metadata", ctypes.POINTER(Column)),
        ("n_metadata", c_uint64),
        ("counters", ctypes.POINTER(Column)),
        ("n_counters", c_uint64),
    )


class DemandEvent(ctypes.Structure):
    """What Kineto did with a request from outside."""

    _fields_ = (
        ("generation", c_uint64),
        ("types", c_uint64),
        ("time_ns", c_int64),
        ("kind", c_int32),
    )


RecordFn = ctypes.CFUNCTYPE(c_uint64, ctypes.POINTER(c_int32))
ElapsedFn = ctypes.CFUNCTYPE(c_double, c_uint64, c_uint64)
NameFn = ctypes.CFUNCTYPE(None, c_char_p)
VoidFn = ctypes.CFUNCTYPE(None)
CountFn = ctypes.CFUNCTYPE(c_int)
VisitFn = ctypes.CFUNCTYPE(None, c_void_p, c_int)
EachFn = ctypes.CFUNCTYPE(None, VisitFn, c_void_p)
PushFn = ctypes.CFUNCTYPE(None, ctypes.c_uint32, c_uint64)
PopFn = ctypes.CFUNCTYPE(None, ctypes.c_uint32)


class StubTable(ctypes.Structure):
    """Python's functions behind torch's ProfilerStubs."""

    _fields_ = (
        ("record", RecordFn),
        ("elapsed_us", ElapsedFn),
        ("mark", NameFn),
        ("range_push", NameFn),
        ("range_pop", VoidFn),
        ("enabled", CountFn),
        ("on_each_device", EachFn),
        ("synchronize", VoidFn),
        ("collect", VoidFn),
    )
