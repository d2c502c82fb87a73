"""`TraceBuilder`: from batches, with the rows and links that belong to them, to one `Trace`."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from devprof.model import ActivityBatch
from devprof.model.fitting import EXACT_IN_FLOAT
from devprof.model.interning import Interner
from devprof.store.items import ItemColumn, ItemKind, ItemValue, RawJson
from devprof.store.places import Place, Row
from devprof.store.trace import COLUMNS, Trace

__all__ = ["TraceBuilder"]

_FROM_BATCH = ("activity_type", "id", "linked", "linked_user", "flow_id", "flow_type", "flow_start")


class TraceBuilder:
    """Collects batches in Unix ns, then `build()`s one trace. Not thread-safe; used once."""

    def __init__(self) -> None:
        self._texts = Interner()
        self._places: list[Place] = []
        self._rows: dict[Row, int] = {}
        self._columns: dict[str, list[npt.NDArray[Any]]] = {key: [] for key in COLUMNS}
        self._items: dict[str, list[ItemColumn]] = {}
        self._counters: dict[str, list[ItemColumn]] = {}
        self._n = 0

    def __len__(self) -> int:
        return self._n

    def place(self, place: Place) -> int:
        """Return the index of a place, adding it if it is new."""
        if place not in self._places:
            self._places.append(place)
        return self._places.index(place)

    def row(self, row: Row) -> int:
        """Return the index of a row, adding it if it is new."""
        return self._rows.setdefault(row, len(self._rows))

    def text(self, text: str) -> int:
        """Return the number of a text, adding it if it is new."""
        return self._texts.index(text)

    def add(
        self,
        batch: ActivityBatch,
        row: npt.NDArray[np.integer[Any]] | int,
        *,
        parent: npt.NDArray[np.integer[Any]] | None = None,
        json_keys: Collection[str] = (),
        **columns: npt.NDArray[np.integer[Any]],
    ) -> int:
        """Add a batch, and return the index of its first event.

        Args:
            batch: n records in Unix ns.
            row: (n,) index of each record's row, or one for all.
            parent: (n,) index within the batch of the event above each, -1: none; None: none at all.
            json_keys: keys of text metadata whose values are JSON already.
            columns: `id`, `linked`, `linked_user`, `flow_id`, `flow_type` or `flow_start`, (n,), instead of the batch's own.
        """
        first, n = self._n, len(batch)
        given: dict[str, npt.ArrayLike] = {key: getattr(batch, key) for key in _FROM_BATCH}
        given |= {"start_ns": batch.start, "end_ns": batch.end, "row": np.broadcast_to(row, (n,)), **columns}
        numbers = np.array([self._texts.index(text) for text in batch.strings], dtype=np.int32)
        given["name"] = numbers[batch.name] if n else np.empty(0, dtype=np.int32)
        above = np.full(n, -1) if parent is None else np.asarray(parent)
        given["parent"] = np.where(above >= 0, above + first, -1)
        for key, dtype in COLUMNS.items():
            self._columns[key].append(np.asarray(given[key]).astype(dtype, copy=False))
        for key, column in batch.metadata.items():
            items = ItemColumn.from_metadata(column, first, json=key in json_keys)
            self._items.setdefault(key, []).append(_renumbered(items, numbers))
        for key, column in batch.counters.items():
            self._counters.setdefault(key, []).append(ItemColumn.from_metadata(column, first))
        self._n += n
        return first

    def add_items(self, key: str, kind: ItemKind, events: npt.ArrayLike, values: npt.ArrayLike | Sequence[str]) -> None:
        """Add items to events that are there.

        Args:
            key: the items' key.
            kind: their type.
            events: (m,) indices of events, ascending.
            values: (m,) or (m, k) numbers; for `STRING` and `JSON` a list of texts.
        """
        if kind in (ItemKind.STRING, ItemKind.JSON):
            values = np.array([self._texts.index(str(text)) for text in values], dtype=np.int32)  # type: ignore[union-attr]
        self._items.setdefault(key, []).append(ItemColumn(kind, np.asarray(events, np.int64), np.asarray(values)))

    def build(
        self, *, window_start_ns: int = 0, window_end_ns: int = 0, facts: Mapping[str, object] | None = None
    ) -> Trace:
        """Return the trace.

        Args:
            window_start_ns, window_end_ns: the capture window, Unix ns.
            facts: JSON values.
        """
        columns: dict[str, Any] = {
            key: np.concatenate(parts) if parts else np.empty(0, dtype=COLUMNS[key])
            for key, parts in self._columns.items()
        }
        items = {key: self._one(parts) for key, parts in self._items.items() if any(map(len, parts))}
        counters = {key: self._one(parts) for key, parts in self._counters.items() if any(map(len, parts))}
        return Trace(
            strings=self._texts.table,
            **columns,
            places=tuple(self._places),
            rows=tuple(self._rows),
            items=items,
            counters=counters,
            window_start_ns=window_start_ns,
            window_end_ns=window_end_ns,
            facts=dict(facts or {}),
        )

    def _one(self, parts: Sequence[ItemColumn]) -> ItemColumn:
        """Join the parts of a key; of two types that no column holds, all become JSON."""
        parts = [part for part in parts if len(part)]
        if len(parts) == 1:
            return parts[0]
        parts = self._alike(parts)
        events = np.concatenate([part.events for part in parts])
        values = np.concatenate([part.values for part in parts])
        if (events[1:] <= events[:-1]).any():
            order = np.argsort(events, kind="stable")
            events, values = events[order], values[order]
            last = np.append(events[1:] != events[:-1], True)  # of two values for one event the later one holds
            events, values = events[last], values[last]
        return ItemColumn(parts[0].kind, events, values)

    def _alike(self, parts: Sequence[ItemColumn]) -> Sequence[ItemColumn]:
        shapes = {(part.kind, part.values.shape[1:]) for part in parts}
        if len(shapes) == 1:
            return parts
        if {part.kind for part in parts} == {ItemKind.INT, ItemKind.FLOAT} and all(map(_fits_float, parts)):
            return [ItemColumn(ItemKind.FLOAT, part.events, part.values.astype(np.float64)) for part in parts]
        return [self._as_json(part) for part in parts]

    def _as_json(self, part: ItemColumn) -> ItemColumn:
        if part.kind is ItemKind.JSON:
            return part
        strings = self._texts.table
        texts = [_json(part.value(int(event), strings)) for event in part.events]
        return ItemColumn(ItemKind.JSON, part.events, np.array([self._texts.index(t) for t in texts], dtype=np.int32))


def _renumbered(items: ItemColumn, numbers: npt.NDArray[np.int32]) -> ItemColumn:
    if items.kind not in (ItemKind.STRING, ItemKind.JSON) or not len(items):
        return items
    return ItemColumn(items.kind, items.events, numbers[items.values])


def _fits_float(part: ItemColumn) -> bool:
    return part.kind is ItemKind.FLOAT or bool((np.abs(part.values) <= EXACT_IN_FLOAT).all())


def _json(value: ItemValue | None) -> str:
    if isinstance(value, RawJson):
        return str(value)
    if isinstance(value, float) and not np.isfinite(value):
        value = str(value)
    return json.dumps(value)
