"""A trace as the sink's native part reads it: copies of its arrays, before places, items and the tree are made of them."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["Columns", "DeviceEntry", "ResourceEntry", "RowEntry", "SpanEntry", "Typed", "columns_of"]

Longs = npt.NDArray[np.int64]

# by the order of the kinds in csrc/sink.h
_ITEM_DTYPES: tuple[npt.DTypeLike, ...] = (np.int64, np.float64, np.uint8, np.int32, np.int32)
_FIXED: dict[str, npt.DTypeLike] = {
    "type": np.uint8,
    "flow_type": np.uint8,
    "flow_start": np.uint8,
    "name": np.int32,
    "row": np.int32,
    "linked_event": np.int32,
    "start": np.int64,
    "end": np.int64,
    "id": np.int64,
    "linked": np.int64,
    "flow_id": np.int64,
}


class Typed(NamedTuple):
    """Values of one type under a key.

    Attributes:
        kind: number of an `ItemKind`.
        events: (m,) int64, in the order in which the events were read.
        values: (m,), as the kind says.
    """

    kind: int
    events: Longs
    values: npt.NDArray[Any]


class RowEntry(NamedTuple):
    """A row in use: device or process, stream or thread, torch's number of the thread (-1: not known)."""

    device: int
    resource: int
    on_device: bool
    torch_thread: int


class DeviceEntry(NamedTuple):
    """A process or device that Kineto names."""

    id: int
    sort_index: int
    name: str
    label: str


class ResourceEntry(NamedTuple):
    """A thread or stream that Kineto names."""

    device: int
    id: int
    sort_index: int
    name: str


class SpanEntry(NamedTuple):
    """A buffer's window, Unix ns."""

    start_ns: int
    end_ns: int
    op_count: int
    iteration: int
    name: str
    prefix: str


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """One trace of n activities. Times are Unix ns.

    Attributes:
        texts: distinct texts, which names and text items index.
        fixed: (n,) columns by name, see `csrc/sink_trace.h`.
        items, counters: values by key and type.
        rows, devices, resources, spans: tables.
        facts: the trace's metadata, JSON text by key.
        lines: Kineto's own log lines, with their severity.
        device_properties: JSON objects, comma-joined.
        window_start_ns, window_end_ns: torch's start of the trace, Kineto's end of its window.
    """

    texts: list[str]
    fixed: dict[str, npt.NDArray[Any]]
    items: dict[str, list[Typed]]
    counters: dict[str, list[Typed]]
    rows: list[RowEntry]
    devices: list[DeviceEntry]
    resources: list[ResourceEntry]
    spans: list[SpanEntry]
    facts: dict[str, str]
    lines: list[tuple[str, str]]
    device_properties: str
    window_start_ns: int
    window_end_ns: int


def columns_of(view: Any) -> Columns:
    """Copy what a native reader shows.

    Args:
        view: a `devprof.torch.sink_native.ColumnsView`, valid for the length of the call.
    """
    fixed = {name: _array(getattr(view, name), view.n, dtype) for name, dtype in _FIXED.items()}
    rows = [RowEntry(e.device, e.resource, bool(e.on_device), e.torch_thread) for e in view.rows[: view.n_rows]]
    devices = [DeviceEntry(e.id, e.sort, _text(e.name), _text(e.label)) for e in view.devices[: view.n_devices]]
    resources = [ResourceEntry(e.device, e.id, e.sort, _text(e.name)) for e in view.resources[: view.n_resources]]
    spans = [
        SpanEntry(e.start_ns, e.end_ns, e.op_count, e.iteration, _text(e.name), _text(e.prefix))
        for e in view.spans[: view.n_spans]
    ]
    return Columns(
        texts=list(_texts(view)),
        fixed=fixed,
        items=dict(_items(view.items, view.n_items)),
        counters=dict(_items(view.counters, view.n_counters)),
        rows=rows,
        devices=devices,
        resources=resources,
        spans=spans,
        facts={_text(e.key): _text(e.value) for e in view.facts[: view.n_facts]},
        lines=[(_text(e.key), _text(e.value)) for e in view.lines[: view.n_lines]],
        device_properties=_text(view.device_properties),
        window_start_ns=view.window_start_ns,
        window_end_ns=view.window_end_ns,
    )


def _texts(view: Any) -> Iterator[str]:
    offsets = _array(view.text_offsets, view.n_texts + 1, np.uint64).tolist()
    text = ctypes.string_at(view.text, offsets[-1])
    return (_text(text[start:stop]) for start, stop in itertools.pairwise(offsets))


def _items(entries: Any, n: int) -> Iterator[tuple[str, list[Typed]]]:
    for entry in entries[:n]:
        parts = []
        for kind, dtype in enumerate(_ITEM_DTYPES):
            if count := entry.counts[kind]:
                events = _array(entry.events[kind], count, np.uint32).astype(np.int64)
                # JSON text is kind 4 there and 5 here, because lists of numbers come as text
                parts.append(Typed(kind + (kind == 4), events, _array(entry.values[kind], count, dtype)))
        if parts:
            yield _text(ctypes.string_at(entry.key, entry.key_size)), parts


def _array(pointer: Any, n: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    if not n:
        return np.empty(0, dtype=dtype)
    address = ctypes.cast(pointer, ctypes.c_void_p).value or 0
    raw = (ctypes.c_uint8 * (n * np.dtype(dtype).itemsize)).from_address(address)
    return np.ctypeslib.as_array(raw).view(dtype).copy()


def _text(given: bytes) -> str:
    """Decode a text; a byte that is no UTF-8 stays readable, as an escape."""
    return given.decode("utf-8", "backslashreplace")
