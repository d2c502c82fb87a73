"""From columns to the bridge: one native copy per batch, everything cleaned on the way.

Runs on the thread that drains, before torch stops its profiler; so what is counted here is in the trace's metadata.
"""

from __future__ import annotations

import ctypes
import json
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from devprof.errors import CaptureError
from devprof.model import ActivityBatch, DeviceInfo, MetadataColumn, MetadataKind, ResourceInfo
from devprof.torch.bridge import Bridge
from devprof.torch.keys import RESERVED, fits_torch
from devprof.torch.native_types import Block, Column
from devprof.torch.rows import Rows
from devprof.torch.text import TextCleaner, unused

__all__ = ["Delivery"]


_REFUSALS = {
    0: "the capture is over",
    -1: "the native side is out of memory",
    -2: "their columns were changed after they had been handed over; a batch must not be written to again",
}


class Delivery:
    """Hands the records of one capture to the bridge.

    Args:
        bridge: the loaded bridge.
        generation: the capture's number.
        cleaner: cleans and counts texts.
    """

    def __init__(self, bridge: Bridge, generation: int, cleaner: TextCleaner) -> None:
        self._lib = bridge.lib
        self._generation = generation
        self._cleaner = cleaner

    def records(self, batch: ActivityBatch, rows: Rows, marks: Mapping[str, MetadataColumn] | None = None) -> None:
        """Copy one batch into the capture. Times are Unix ns.

        Args:
            batch: the records.
            rows: where they stand and what they are linked to.
            marks: metadata that devprof itself adds.

        Raises:
            CaptureError: the native side is out of memory, or the capture is over.
        """
        texts, name = self._texts(batch)
        self._append(batch, rows, name, texts, {**batch.metadata, **(marks or {})}, batch.counters)

    def annotations(self, spans: ActivityBatch, rows: Rows) -> None:
        """Copy spans whose names Kineto takes from the user ranges with these ids."""
        unnamed = np.full(len(spans), -1, dtype=np.int32)
        self._append(spans, rows, unnamed, (), spans.metadata, {})

    def device_rows(self, devices: Iterable[DeviceInfo], resources: Iterable[ResourceInfo]) -> None:
        """Name the rows of devices and of their streams."""
        for info in devices:
            name, label = self._bytes(info.name), self._bytes(info.label)
            self._lib.devprof_capture_device(self._generation, info.id, info.row, name, label)
        for row in resources:
            self._lib.devprof_capture_resource(self._generation, row.id, row.row, row.device_id, self._bytes(row.name))

    def metadata(self, items: Mapping[str, object], owner: str, taken: set[str]) -> None:
        """Add items to the trace's top level.

        Args:
            items: JSON values.
            owner: added to a key that is taken.
            taken: keys that the file has already; those of the items join them.
        """
        for given, value in items.items():
            key = self._cleaner.text(given)
            key = unused(f"{key} ({self._cleaner.text(owner)})", taken) if key in taken else key
            taken.add(key)
            self._lib.devprof_capture_metadata(self._generation, key.encode(), self.json(value).encode())

    def device_properties(self, devices: Sequence[Mapping[str, object]]) -> None:
        """Add objects to the trace's ``deviceProperties``."""
        text = ", ".join(self.json(dict(properties)) for properties in devices)
        self._lib.devprof_capture_device_properties(self._generation, text.encode())

    def span(self, name: str) -> None:
        """Name the row that shows the capture's interval."""
        self._lib.devprof_capture_span(self._generation, self._bytes(name))

    def json(self, value: object) -> str:
        """Return `value` as JSON text that Kineto's writer leaves valid: no escapes, no NaN."""
        return json.dumps(self._plain(value), ensure_ascii=True)

    def _plain(self, value: object) -> object:
        if isinstance(value, Mapping):
            plain: dict[str, object] = {}
            for key, item in value.items():
                plain[unused(self._cleaner.text(str(key)), plain)] = self._plain(item)
            return plain
        if isinstance(value, list | tuple | set | frozenset):
            return [self._plain(item) for item in value]
        if isinstance(value, bool | int | None):
            return value
        if isinstance(value, np.generic):
            return self._plain(value.item())
        if isinstance(value, float):
            return value if np.isfinite(value) else str(value)
        return self._cleaner.text(str(value))

    def _bytes(self, text: str) -> bytes:
        return self._cleaner.text(text).encode()

    def _texts(self, batch: ActivityBatch) -> tuple[Sequence[str], npt.NDArray[np.int32]]:
        """Clean the batch's texts; names follow stricter rules than metadata, so some get an entry of their own."""
        table = [self._cleaner.text(text) for text in batch.strings]
        used = np.flatnonzero(np.bincount(batch.name, minlength=len(table))) if len(batch) else np.empty(0, np.int64)
        names = self._cleaner.names([table[i] for i in used])
        remap = np.arange(len(table), dtype=np.int32)
        for index, name in zip(used, names, strict=True):
            if name != table[index]:
                remap[index] = len(table)
                table.append(name)
        return table, remap[batch.name] if len(table) > len(batch.strings) else batch.name

    def _append(
        self,
        batch: ActivityBatch,
        rows: Rows,
        name: npt.NDArray[np.int32],
        texts: Sequence[str],
        metadata: Mapping[str, MetadataColumn],
        counters: Mapping[str, MetadataColumn],
    ) -> None:
        encoded = [text.encode("ascii", "replace") for text in texts]
        offsets = np.zeros(len(encoded) + 1, dtype=np.uint64)
        np.cumsum([len(text) for text in encoded], out=offsets[1:])
        items, values = self._items(metadata), self._counters(counters)
        keep = [np.ascontiguousarray(column) for column in (name, batch.start, batch.end, batch.activity_type)]
        block = Block(
            rows=len(batch),
            activity_type=keep[3].ctypes.data,
            name=keep[0].ctypes.data,
            start_ns=keep[1].ctypes.data,
            end_ns=keep[2].ctypes.data,
            id=rows.id.ctypes.data,
            device=rows.device.ctypes.data,
            resource=rows.resource.ctypes.data,
            linked=rows.linked.ctypes.data,
            flow_id=rows.flow_id.ctypes.data,
            flow_type=rows.flow_type.ctypes.data,
            flow_start=rows.flow_start.ctypes.data,
            text=b"".join(encoded),
            text_offsets=offsets.ctypes.data,
            n_texts=len(encoded),
            metadata=items.array,
            n_metadata=len(items.kept),
            counters=values.array,
            n_counters=len(values.kept),
        )
        done = self._lib.devprof_capture_append(self._generation, ctypes.byref(block))
        if done != 1:
            raise CaptureError(f"{len(batch)} records could not be handed to the bridge: {_REFUSALS[done]}")

    def _items(self, columns: Mapping[str, MetadataColumn]) -> _NativeColumns:
        kept: dict[str, MetadataColumn] = {}
        for given, column in columns.items():
            key = self._cleaner.text(given)
            if key in RESERVED:
                self._cleaner.changes["reserved metadata key left out"] += 1
                continue
            if not fits_torch(key, column.kind):
                self._cleaner.changes["metadata key renamed: torch reads another type there"] += 1
                key = f"{key} (as given)"
            kept[unused(key, kept)] = self._finite(column)
        return _NativeColumns(kept)

    def _counters(self, columns: Mapping[str, MetadataColumn]) -> _NativeColumns:
        kept: dict[str, MetadataColumn] = {}
        for key, column in columns.items():
            kept[unused(self._cleaner.text(key), kept)] = self._finite(column)
        return _NativeColumns(kept)

    def _finite(self, column: MetadataColumn) -> MetadataColumn:
        if column.kind is not MetadataKind.FLOAT:
            return column
        finite = np.isfinite(column.values)
        if finite.all():
            return column
        there = finite if column.present is None else finite & column.present
        present = len(column) if column.present is None else int(column.present.sum())
        self._cleaner.changes["non-finite number left out"] += present - int(there.sum())
        return MetadataColumn(column.kind, np.where(finite, column.values, 0.0), there)


class _NativeColumns:
    """Columns as the bridge takes them, with the arrays kept alive beside them."""

    def __init__(self, kept: Mapping[str, MetadataColumn]) -> None:
        self.kept = kept
        self.array = (Column * len(kept))(*(_native(key.encode(), column) for key, column in kept.items()))


def _native(key: bytes, column: MetadataColumn) -> Column:
    width = column.values.shape[1] if column.kind is MetadataKind.INT_LIST else 1
    present = column.present.ctypes.data if column.present is not None else None
    return Column(key=key, kind=int(column.kind), width=width, values=column.values.ctypes.data, present=present)
