"""The C ABI of the native Perfetto writer, as ctypes sees it; the same layout as ``csrc/perfetto.h``."""

from __future__ import annotations

from ctypes import POINTER, Structure, c_int64, c_void_p
from enum import IntFlag
from typing import Any

from devprof.export.native_chunk import Column, Texts

__all__ = [
    "DERIVED",
    "REFUSALS",
    "SIGNATURES",
    "Block",
    "Item",
    "PerfettoTrace",
    "RowFlag",
    "Slices",
    "Sparse",
    "TypeBit",
]

DERIVED = 2
"""How many args follow from an event's ids."""


class TypeBit(IntFlag):
    """What a type of events is."""

    SLICE = 1
    OWN_ID = 2
    NO_OP = 4
    LAUNCH = 8


class RowFlag(IntFlag):
    """What is the matter with a row's slices."""

    CROSSES = 1
    OUT_OF_ORDER = 2


class Sparse(Structure):
    """Values of some events, ascending."""

    _fields_ = (("events", Column), ("values", Column))


class Item(Structure):
    """One key over the events that carry it."""

    _fields_ = (("kind", c_int64), ("key", c_int64), ("width", c_int64), ("column", Sparse), ("said", Column))


class PerfettoTrace(Structure):
    """A trace's columns."""

    _fields_ = (
        *((name, c_int64) for name in ("events", "rows", "tracks", "strings", "base_ns")),
        *((name, Column) for name in ("type", "name", "row", "start_ns", "end_ns", "id", "linked")),
        *((name, Column) for name in ("shape", "first", "on_device")),
        ("lanes", Sparse),
        *((name, Column) for name in ("end_event", "end_number", "start_event", "start_first", "start_arrows")),
        ("keys", Texts),
        ("categories", Texts),
        ("derived_key", c_int64 * DERIVED),
        ("derived_item", c_int64 * DERIVED),
        ("items", c_int64),
        ("item", POINTER(Item)),
    )


class Block(Structure):
    """Events to be written now."""

    _fields_ = (
        ("begin", c_int64),
        ("count", c_int64),
        *((name, Column) for name in ("events", "skipped", "number")),
        ("texts", Texts),
    )


class Slices(Structure):
    """What rows are looked at by."""

    _fields_ = (
        ("events", c_int64),
        ("rows", c_int64),
        *((name, Column) for name in ("type", "row", "start_ns", "end_ns", "shape")),
    )


SIGNATURES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "devprof_perfetto_trace_bytes": (c_int64, ()),
    "devprof_perfetto_block_bytes": (c_int64, ()),
    "devprof_perfetto_new": (c_int64, (POINTER(PerfettoTrace), POINTER(c_void_p))),
    "devprof_perfetto_write": (c_int64, (c_void_p, POINTER(Block), POINTER(c_void_p))),
    "devprof_perfetto_finish": (c_int64, (c_void_p, POINTER(c_void_p))),
    "devprof_perfetto_free": (None, (c_void_p,)),
    "devprof_rows_bytes": (c_int64, ()),
    "devprof_rows_mark": (c_int64, (POINTER(Slices), c_void_p)),
}
"""Result and arguments of each function of the library."""

REFUSALS = {-1: "a column has the wrong size", -2: "a text, a row or a kind is not there", -4: "there is no memory"}
"""What a result below zero says."""
