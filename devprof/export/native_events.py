"""The events of a Chrome trace, written by native code: the same text as `devprof.export.events`, several times faster.

Python orders and places the events and makes each distinct text once; native code puts numbers and texts side by side.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterator
from ctypes import byref, c_int64

import numpy as np
import numpy.typing as npt

from devprof.export.arrows import ARROW_NAMES
from devprof.export.chunks import Field, chunks
from devprof.export.native_chunk import REFUSALS, Views
from devprof.export.native_chunk import Chunk as NativeChunk
from devprof.export.native_chunk import Field as NativeField
from devprof.export.placing import Placed, Placing
from devprof.export.shapes import IS_COUNTER, IS_SLICE, arrow_texts, head_of
from devprof.export.strict_json import quoted, verbatim
from devprof.export.text_table import TextTable
from devprof.store import ItemKind

__all__ = ["native_event_texts"]

EVENTS_AT_ONCE = 8192
"""Events in a chunk: enough to pay for the columns' preparation, few enough that they stay in the processor's cache."""

_BUFFER_BYTES = 1 << 20
_SHAPES = np.where(IS_COUNTER, 2, np.where(IS_SLICE, 0, 1)).astype(np.uint8)  # Shape in csrc/chunk.h
_ARROW_KINDS = 2 * max(ARROW_NAMES) + 2
_DTYPES = {
    ItemKind.INT: np.int64,
    ItemKind.FLOAT: np.float64,
    ItemKind.BOOL: np.uint8,
    ItemKind.STRING: np.int32,
    ItemKind.INT_LIST: np.int64,
    ItemKind.JSON: np.int32,
}


def native_event_texts(native: ctypes.CDLL, placing: Placing) -> Iterator[memoryview]:
    """Yield the texts of all events, some joined at a time; each is good until the next one is asked for.

    Args:
        native: the library.
        placing: the trace and where its events stand.
    """
    writer = _Writer(native, placing)
    for chunk in chunks(len(placing.trace), placing.lanes.ahead, EVENTS_AT_ONCE):
        yield from writer.texts(placing.of(chunk))


@functools.cache
def _phrases() -> dict[str, TextTable]:
    """Return the tables that are the same for all traces."""
    arrows = [arrow_texts(kind) if kind >> 1 in ARROW_NAMES else ("", "") for kind in range(_ARROW_KINDS)]
    return {
        "heads": TextTable.of(head_of(kind) for kind in range(len(_SHAPES))),
        "arrow_heads": TextTable.of(start for start, _ in arrows),
        "arrow_tails": TextTable.of(end for _, end in arrows),
    }


class _Writer:
    """Writes chunks of one trace."""

    def __init__(self, native: ctypes.CDLL, placing: Placing) -> None:
        self._encode = native.devprof_json_encode
        strings = placing.trace.strings
        self._quoted = TextTable(strings, quoted)
        self._verbatim = TextTable(strings, verbatim)
        self._constant = {**_phrases(), "tracks": TextTable.of(placing.tracks.texts)}
        self._buffer = np.empty(_BUFFER_BYTES, dtype=np.uint8)

    def texts(self, placed: Placed) -> Iterator[memoryview]:
        """Yield the texts of a chunk's events, as many at a time as the buffer holds."""
        views = Views()
        chunk = self._chunk(placed, views)
        first, written = 0, c_int64()
        while first < chunk.events:
            done = self._encode(byref(chunk), first, self._buffer.ctypes.data, len(self._buffer), byref(written))
            if done < 0:
                raise RuntimeError(f"the native JSON writer refused a chunk: {REFUSALS.get(done, done)}")
            if done == 0:
                self._buffer = np.empty(2 * len(self._buffer), dtype=np.uint8)  # for one event that is larger
            if written.value:
                yield self._buffer[: written.value].data
            first += done

    def _chunk(self, placed: Placed, views: Views) -> NativeChunk:
        column, has_arrows = views.column, bool(placed.arrow.any())
        self._quoted.begin()
        self._verbatim.begin()
        names = self._quoted.numbers(placed.name)
        fields = [self._field(number, field, views) for number, field in enumerate(placed.fields)]
        keys = TextTable.of(f"{field.key}:" for field in placed.fields)
        chunk = NativeChunk(
            events=len(placed.types),
            fields=len(fields),
            field=views.side_by_side(fields, NativeField),
            type=column(placed.types, np.uint8),
            name=column(names, np.int32),
            track=column(placed.track, np.int64),
            since_ns=column(placed.since_ns, np.uint64),
            lasted_ns=column(placed.lasted_ns, np.uint64),
            arrow=column(placed.arrow if has_arrows else None, np.uint8),
            arrow_number=column(placed.arrow_number if has_arrows else None, np.int64),
            kept=column(placed.kept, np.uint8),
            shape=column(_SHAPES, np.uint8),
        )
        tables = self._constant | {"quoted": self._quoted, "verbatim": self._verbatim, "keys": keys}
        for name, table in tables.items():
            setattr(chunk, name, views.texts(table))
        return chunk

    def _field(self, number: int, field: Field, views: Views) -> NativeField:
        values: npt.NDArray[np.generic] = field.values
        if field.kind is ItemKind.STRING:
            values = self._quoted.numbers(field.values)
        elif field.kind is ItemKind.JSON:
            values = self._verbatim.numbers(field.values)
        width = field.values.shape[1] if field.kind is ItemKind.INT_LIST else 1
        present = None if field.present.all() else field.present
        return NativeField(
            field.kind, number, width, views.column(values, _DTYPES[field.kind]), views.column(present, np.uint8)
        )
