"""`NativeEvents`: the native decoder as numpy arrays. Source of the layouts: csrc/json.cpp and csrc/events.h."""

from __future__ import annotations

import ctypes
import itertools
import os
import weakref
from collections.abc import Iterator
from ctypes import POINTER, Structure, byref, c_int32, c_int64, c_uint64, c_void_p
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["BOOL", "FLOAT", "INT", "RAW", "SOUND", "TEXT", "NativeArg", "NativeEvents", "bind"]

INT, FLOAT, BOOL, TEXT, RAW = range(5)
"""Kinds of values; another is none."""
SOUND = 1
"""State of a time that is there."""

_TEXTS, _RAWS, _KEYS = range(3)
_KIND_TABLE, _TRACK_TABLE, _ODD_TABLE = range(3)

_TRACK = np.dtype([("pid_kind", "i4"), ("tid_kind", "i4"), ("pid", "i8"), ("tid", "i8")])
_ODD = np.dtype([("event", "i4"), ("which", "i4"), ("begin", "i8"), ("end", "i8")])


class _Table(Structure):
    _fields_ = [("data", c_void_p), ("size", c_int64)]


_EVENT_COLUMNS = ("kind", "track", "name", "scope", "id_kind", "start_ns", "duration_ns", "id", "start_state")
_EVENT_DTYPES = dict(zip((*_EVENT_COLUMNS, "duration_state"), ["i4"] * 5 + ["i8"] * 3 + ["u1"] * 2, strict=True))


class _EventTable(Structure):
    _fields_ = [(name, c_void_p) for name in _EVENT_DTYPES]


class _ArgTable(Structure):
    _fields_ = [("key", c_int32), ("kind", c_int32), ("size", c_int64), ("events", c_void_p), ("values", c_void_p)]


_SIGNATURES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "devprof_json_new": (c_void_p, (c_uint64,)),
    "devprof_json_free": (None, (c_void_p,)),
    "devprof_json_decode": (c_int64, (c_void_p, c_void_p, c_int64, c_int32)),
    "devprof_json_inexact": (c_int32, (c_void_p,)),
    "devprof_json_events": (None, (c_void_p, POINTER(_EventTable))),
    "devprof_json_args": (c_int64, (c_void_p, POINTER(_ArgTable), c_int64)),
    "devprof_json_table": (None, (c_void_p, c_int32, POINTER(_Table))),
    "devprof_json_texts": (c_int64, (c_void_p, c_int32, POINTER(c_void_p), POINTER(c_void_p))),
}


def bind(library: ctypes.CDLL) -> ctypes.CDLL:
    """Return a library with the types of its functions declared. Their calls leave the interpreter free for other threads."""
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


class NativeArg(NamedTuple):
    """Values of one kind under one key.

    Attributes:
        key: number of the key.
        kind: what the values are.
        events: (m,) int64, positions in the piece, ascending.
        values: (m,) int64: numbers and truth values as they are, floats as their bits, texts and raw values as their numbers.
    """

    key: int
    kind: int
    events: npt.NDArray[np.int64]
    values: npt.NDArray[np.int64]


class NativeEvents:
    """One file's decoder. Used by one thread. What it returns are copies.

    Args:
        library: as `bind` returns it.

    Attributes:
        texts, raws, keys: texts, raw values and keys by number, of all pieces so far; raw values are bytes.
    """

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        self._decoder = library.devprof_json_new(int.from_bytes(os.urandom(8), "little"))
        if not self._decoder:
            raise MemoryError
        weakref.finalize(self, library.devprof_json_free, self._decoder)
        self.texts: list[str] = []
        self.raws: list[bytes] = []
        self.keys: list[str] = []

    def decode(self, piece: memoryview, *, exact: bool) -> int:
        """Take the events of a piece of a list, and return how many there are, -1: it is not taken.

        Args:
            piece: what is between the brackets of the list.
            exact: whether times are what their texts say; else what floats say that are made of them.
        """
        text = np.frombuffer(piece, dtype=np.uint8)
        n = int(self._library.devprof_json_decode(self._decoder, text.ctypes.data, len(text), exact))
        if n >= 0:
            self.texts += (text.decode() for text in self._new(_TEXTS, len(self.texts)))
            self.keys += (text.decode() for text in self._new(_KEYS, len(self.keys)))
            self.raws += self._new(_RAWS, len(self.raws))
        return n

    @property
    def inexact(self) -> bool:
        """Whether a time of the last piece is a float that does not say which nanosecond is meant."""
        return bool(self._library.devprof_json_inexact(self._decoder))

    def columns(self, n: int) -> dict[str, npt.NDArray[Any]]:
        """Return the columns of the last piece's `n` events, by name, each (n,)."""
        table = _EventTable()
        self._library.devprof_json_events(self._decoder, byref(table))
        return {name: _copy(getattr(table, name), n, np.dtype(dtype)) for name, dtype in _EVENT_DTYPES.items()}

    def args(self) -> list[NativeArg]:
        """Return the args of the last piece's events."""
        n = self._library.devprof_json_args(self._decoder, None, 0)
        tables = (_ArgTable * n)()
        self._library.devprof_json_args(self._decoder, tables, n)
        return [
            NativeArg(
                table.key,
                table.kind,
                _copy(table.events, table.size, np.dtype(np.int32)).astype(np.int64),
                _copy(table.values, table.size, np.dtype(np.int64)),
            )
            for table in tables
        ]

    def kinds(self) -> npt.NDArray[np.int32]:
        """Return the texts' numbers of phase and category, by kind, -1: none. Of all pieces: (k, 2)."""
        return self._table(_KIND_TABLE, np.dtype((np.void, 8))).view(np.int32).reshape(-1, 2)

    def tracks(self) -> npt.NDArray[np.void]:
        """Return process and thread by track, each a kind of value and its number. Of all pieces: (k,)."""
        return self._table(_TRACK_TABLE, _TRACK)

    def odd_times(self) -> npt.NDArray[np.void]:
        """Return where the last piece's odd times are: event, 0 for a start and 1 for a duration, and span in the piece."""
        return self._table(_ODD_TABLE, _ODD)

    def _table(self, which: int, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        table = _Table()
        self._library.devprof_json_table(self._decoder, which, byref(table))
        return _copy(table.data, table.size, dtype)

    def _new(self, which: int, known: int) -> Iterator[bytes]:
        """Yield the texts from number `known` on."""
        ends, data = c_void_p(), c_void_p()
        n = self._library.devprof_json_texts(self._decoder, which, byref(ends), byref(data))
        if n == known or ends.value is None:
            return
        borders = _copy(ends.value + 8 * known, n + 1 - known, np.dtype(np.uint64)).astype(np.int64)
        first = int(borders[0])
        text = ctypes.string_at((data.value or 0) + first, int(borders[-1]) - first) if borders[-1] > first else b""
        places = (borders - first).tolist()
        for begin, end in itertools.pairwise(places):
            yield text[begin:end]


def _copy(address: int | None, n: int, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return `n` values in the decoder's memory as an array of one's own."""
    if not n or not address:
        return np.empty(0, dtype=dtype)
    copy = np.empty(n, dtype=dtype)
    ctypes.memmove(copy.ctypes.data, address, copy.nbytes)
    return copy
