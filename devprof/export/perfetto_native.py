"""The events of a Perfetto trace, written by native code: what `devprof.export.perfetto_events` writes, faster and shorter.

Each track is a sequence of its own: the sequence says the track, and its clock counts from one packet to the next. Such packets
are of different lengths, which native code does not mind.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from ctypes import byref, c_void_p

import numpy as np
import numpy.typing as npt

from devprof.export.chunks import Chunk, distinct_keys, found
from devprof.export.launch_fields import HAS_LAUNCH, HAS_NO_OP, HAS_OWN_ID, LaunchFields
from devprof.export.native_chunk import Column, Texts, Views
from devprof.export.perfetto_abi import DERIVED, REFUSALS, Block, Item, PerfettoTrace, Sparse, TypeBit
from devprof.export.perfetto_plan import Plan
from devprof.export.shapes import IS_SLICE, category
from devprof.export.strict_json import clean
from devprof.export.text_table import TextTable
from devprof.store import ItemColumn, ItemKind

__all__ = ["native_pieces"]

_TEXTS = (ItemKind.STRING, ItemKind.JSON)
_BITS = {
    TypeBit.SLICE: IS_SLICE,
    TypeBit.OWN_ID: HAS_OWN_ID,
    TypeBit.NO_OP: HAS_NO_OP,
    TypeBit.LAUNCH: HAS_LAUNCH,
}
_NOTHING = Column(None, 0)


def native_pieces(native: ctypes.CDLL, plan: Plan) -> Iterator[bytes | memoryview]:
    """Yield the bytes of all events, some packets at a time; each is good until the next one is asked for.

    Args:
        native: the library.
        plan: the trace and where its events stand.
    """
    writer = _Writer(native, plan)
    try:
        for chunk in plan.chunks():
            is_sample, samples = plan.counters.of(chunk)
            yield b"".join(samples)
            yield writer.write(chunk, is_sample if samples else None)
        yield writer.finish()
    finally:
        writer.close()


class _Writer:
    """Writes chunks of one trace."""

    def __init__(self, native: ctypes.CDLL, plan: Plan) -> None:
        self._native = native
        self._trace = plan.trace
        self._views = Views()
        self._columns = _columns(plan, self._views)
        self._texts = TextTable(plan.trace.strings, clean)
        self._writer = c_void_p()
        self._data = c_void_p()
        self._checked(native.devprof_perfetto_new(byref(self._columns), byref(self._writer)))

    def write(self, chunk: Chunk, skipped: npt.NDArray[np.bool_] | None) -> memoryview:
        """Return the packets of a chunk, without events that are samples of counters."""
        self._know_texts(chunk)
        views = Views()
        block = Block(
            begin=chunk.events[0],
            count=len(chunk.events),
            events=views.column(None if chunk.number >= 0 else chunk.events, np.int64),
            skipped=views.column(skipped, np.uint8),
            number=views.column(self._texts.number, np.int32),
            texts=views.texts(self._texts),
        )
        return self._made(self._native.devprof_perfetto_write(self._writer, byref(block), byref(self._data)))

    def finish(self) -> memoryview:
        """Return the packets that end what is open."""
        return self._made(self._native.devprof_perfetto_finish(self._writer, byref(self._data)))

    def close(self) -> None:
        """Give the native memory back."""
        self._native.devprof_perfetto_free(self._writer)
        self._writer = c_void_p()

    def _know_texts(self, chunk: Chunk) -> None:
        self._texts.begin()
        self._texts.numbers(self._trace.name[chunk.index])
        for column in self._trace.items.values():
            if column.kind in _TEXTS:
                self._texts.numbers(found(column, chunk)[1])

    def _made(self, result: int) -> memoryview:
        size = self._checked(result)
        return memoryview((ctypes.c_char * size).from_address(self._data.value or 0)) if size else memoryview(b"")

    @staticmethod
    def _checked(result: int) -> int:
        if result < 0:
            raise RuntimeError(f"the native Perfetto writer refused a trace: {REFUSALS.get(result, result)}")
        return result


def _columns(plan: Plan, views: Views) -> PerfettoTrace:
    trace, launches = plan.trace, LaunchFields(plan.trace)
    keys = distinct_keys([*LaunchFields.FROM_IDS, *trace.items])
    number = {key: i for i, key in enumerate(keys)}
    places = {key: i for i, key in enumerate(trace.items)}
    items = [_item(number[key], column, launches.said.get(key), views) for key, column in trace.items.items()]
    shape = sum((np.where(there, np.uint8(bit), np.uint8(0)) for bit, there in _BITS.items()), np.zeros(256, np.uint8))
    long, short, octet = (
        {name: views.column(values, dtype) for name, values in columns.items()}
        for dtype, columns in (
            (np.int64, {name: getattr(trace, name) for name in ("start_ns", "end_ns", "id", "linked")}),
            (np.int32, {"name": trace.name, "row": trace.row} | _arrows(plan)),
            (np.uint8, {"type": trace.activity_type, "shape": shape, "on_device": launches.on_device}),
        )
    )
    return PerfettoTrace(
        events=len(trace),
        rows=len(trace.rows),
        tracks=len(plan.tracks.texts),
        strings=len(trace.strings),
        base_ns=plan.base_ns,
        **long,
        **short,
        **octet,
        first=views.column(plan.tracks.first, np.int64),
        lanes=Sparse(views.column(plan.lanes.events, np.int64), views.column(plan.lanes.lane, np.int64)),
        keys=_texts(list(keys.values()), views),
        categories=_texts([category(kind) for kind in range(len(IS_SLICE))], views),
        derived_key=(ctypes.c_int64 * DERIVED)(*(number[key] for key in LaunchFields.FROM_IDS)),
        derived_item=(ctypes.c_int64 * DERIVED)(*(places.get(key, -1) for key in LaunchFields.FROM_IDS)),
        items=len(items),
        item=views.side_by_side(items, Item),
    )


def _arrows(plan: Plan) -> dict[str, npt.NDArray[np.int32]]:
    ends, starts = plan.flows.ends, plan.flows.starts
    return {
        "end_event": ends.event,
        "end_number": ends.number,
        "start_event": starts.event,
        "start_first": starts.first,
        "start_arrows": starts.arrows,
    }


def _item(key: int, column: ItemColumn, said: npt.NDArray[np.int64] | None, views: Views) -> Item:
    width = column.values.shape[1] if column.kind is ItemKind.INT_LIST else 1
    values = Sparse(views.column(column.events, np.int64), views.column(column.values, column.values.dtype))
    return Item(column.kind, key, width, values, views.column(said if column.kind is ItemKind.INT else None, np.int64))


def _texts(texts: list[str], views: Views) -> Texts:
    return views.texts(TextTable.of(texts))
