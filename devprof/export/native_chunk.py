"""The C ABI of the native JSON writer, as ctypes sees it; the same layout as ``csrc/chunk.h``."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, Structure, c_int64, c_void_p
from typing import Any

import numpy as np
import numpy.typing as npt

from devprof.export.text_table import TextTable

__all__ = ["REFUSALS", "SIGNATURES", "Chunk", "Field", "Views"]


class Column(Structure):
    """Address and size of an array."""

    _fields_ = (("data", c_void_p), ("bytes", c_int64))


class Texts(Structure):
    """Texts one after the other."""

    _fields_ = (("bytes", Column), ("offsets", Column))


class Field(Structure):
    """One arg."""

    _fields_ = (("kind", c_int64), ("key", c_int64), ("width", c_int64), ("values", Column), ("present", Column))


class Chunk(Structure):
    """Events to be written."""

    _fields_ = (
        ("events", c_int64),
        ("fields", c_int64),
        ("field", POINTER(Field)),
        *((name, Column) for name in ("type", "name", "track", "since_ns", "lasted_ns", "arrow", "arrow_number")),
        *((name, Column) for name in ("kept", "shape")),
        *((name, Texts) for name in ("heads", "arrow_heads", "arrow_tails", "tracks", "quoted", "verbatim", "keys")),
    )


SIGNATURES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "devprof_json_chunk_bytes": (c_int64, ()),
    "devprof_json_field_bytes": (c_int64, ()),
    "devprof_json_encode": (c_int64, (POINTER(Chunk), c_int64, c_void_p, c_int64, POINTER(c_int64))),
}
"""Result and arguments of each function of the library."""

REFUSALS = {-1: "a column has the wrong size", -2: "a text or a kind is not there", -3: "a number is not finite"}
"""What a result below zero says."""


class Views:
    """Arrays as native code sees them; holds them while it does."""

    def __init__(self) -> None:
        self._held: list[object] = []

    def column(self, values: npt.NDArray[Any] | None, dtype: npt.DTypeLike) -> Column:
        """Return a view of an array, of a copy where its memory is not in order; None: an empty one."""
        if values is None:
            return Column(None, 0)
        array = np.require(values, dtype, ["C_CONTIGUOUS", "ALIGNED"])
        self._held.append(array)
        return Column(array.ctypes.data, array.nbytes)

    def texts(self, table: TextTable) -> Texts:
        """Return a view of a table."""
        data, offsets = table.block()
        return Texts(self.column(data, np.uint8), self.column(offsets, np.int64))

    def side_by_side(self, structures: list[Any], kind: type[Structure]) -> Any:
        """Return structures of one kind side by side, as a pointer takes them."""
        array = (kind * len(structures))(*structures)
        self._held.append(array)
        return ctypes.cast(array, POINTER(kind))
