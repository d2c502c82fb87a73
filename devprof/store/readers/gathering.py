"""`EventTable`: events as a reader finds them, part by part, and then as one trace."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from devprof.store.items import ItemColumn, ItemKind
from devprof.store.places import Place, Row
from devprof.store.trace import COLUMNS, Trace

__all__ = ["EventTable", "Part"]

_EXACT_IN_FLOAT = 2**53
_TEXTS = (ItemKind.STRING, ItemKind.JSON)


class Part(NamedTuple):
    """Some values of one key; text values are numbers of the table's texts.

    Attributes:
        kind: type of the values.
        events: (m,) int64, indices of the events that carry them, as they were added; in any order.
        values: (m,) or (m, k).
    """

    kind: ItemKind
    events: npt.NDArray[np.int64]
    values: npt.NDArray[Any]


class EventTable:
    """Collects columns and items. Not thread-safe; used once.

    Beside `TraceBuilder` it takes text as numbers, so that no text is looked up twice, and puts the events in order at the end.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._columns: dict[str, list[npt.NDArray[Any]]] = {key: [] for key in COLUMNS}
        self._items: dict[str, list[Part]] = {}
        self._counters: dict[str, list[Part]] = {}
        self._n = 0

    def __len__(self) -> int:
        return self._n

    def text(self, text: str) -> int:
        """Return the number of a text, adding it if it is new."""
        return self._numbers.setdefault(text, len(self._numbers))

    def text_of(self, number: int) -> str:
        """Return the text of a number; for a few of them."""
        return next(text for text, known in self._numbers.items() if known == number)

    def texts(self, texts: Sequence[str]) -> npt.NDArray[np.int32]:
        """Return the numbers of texts: (m,) int32."""
        numbers = self._numbers
        for text in dict.fromkeys(texts):
            numbers.setdefault(text, len(numbers))
        return np.fromiter(map(numbers.__getitem__, texts), np.int32, len(texts))

    def add(self, n: int, **columns: npt.ArrayLike) -> int:
        """Add `n` events, and return the index of the first.

        Args:
            n: how many.
            columns: (n,) or one value for all; what is left out is 0, and -1 for `parent`.
        """
        for key, dtype in COLUMNS.items():
            given = columns.get(key, -1 if key == "parent" else 0)
            values = np.asarray(given).astype(dtype, copy=False)
            self._columns[key].append(np.full(n, values) if values.ndim == 0 else values)
        first, self._n = self._n, self._n + n
        return first

    def add_items(self, key: str, kind: ItemKind, events: npt.NDArray[np.int64], values: npt.NDArray[Any]) -> None:
        """Add values of a metadata key, as in `Part`."""
        if len(events):
            self._items.setdefault(key, []).append(Part(kind, events, values))

    def add_counters(self, key: str, events: npt.NDArray[np.int64], values: npt.NDArray[np.float64]) -> None:
        """Add values of a counter."""
        if len(events):
            self._counters.setdefault(key, []).append(Part(ItemKind.FLOAT, events, values))

    def column(self, key: str) -> npt.NDArray[Any]:
        """Return a column of the events so far, in the order in which they were added; what is written to it stays."""
        parts = self._columns[key]
        if len(parts) != 1:
            parts[:] = [np.concatenate(parts) if parts else np.empty(0, COLUMNS[key])]
        return parts[0]

    def build(
        self,
        places: Sequence[Place],
        rows: Sequence[Row],
        *,
        order: npt.NDArray[np.int64] | None = None,
        window_ns: tuple[int, int] = (0, 0),
        facts: Mapping[str, object],
    ) -> Trace:
        """Return the trace; the table is empty afterwards.

        Args:
            places, rows: what the column `row` indexes.
            order: (n,) the events in the order that they shall have; None: as they were added.
            window_ns: start and end of the capture window, Unix ns.
            facts: JSON values.
        """
        position = None
        if order is not None:
            position = np.empty(self._n, dtype=np.int64)
            position[order] = np.arange(self._n)
        columns: dict[str, Any] = {}
        for key in COLUMNS:
            column = self.column(key)
            columns[key] = column if order is None else column[order]
            self._columns[key] = []
        items, counters = (self._joined(parts, position) for parts in (self._items, self._counters))
        return Trace(
            strings=tuple(self._numbers),
            **columns,
            places=tuple(places),
            rows=tuple(rows),
            items=items,
            counters=counters,
            window_start_ns=window_ns[0],
            window_end_ns=window_ns[1],
            facts=facts,
        )

    def _joined(self, table: dict[str, list[Part]], position: npt.NDArray[np.int64] | None) -> dict[str, ItemColumn]:
        joined = {}
        for key in list(table):
            joined[key] = self._one(table.pop(key), position)
        return joined

    def _one(self, parts: list[Part], position: npt.NDArray[np.int64] | None) -> ItemColumn:
        """Join the parts of a key; of two types that no column holds, all become JSON."""
        parts = self._alike(parts)
        events = np.concatenate([part.events for part in parts])
        values = np.concatenate([part.values for part in parts])
        if position is not None:
            events = position[events]
        if (events[1:] <= events[:-1]).any():
            order = np.argsort(events, kind="stable")
            events, values = events[order], values[order]
            last = np.append(events[1:] != events[:-1], True)  # of two values for one event the later one holds
            events, values = events[last], values[last]
        return ItemColumn(parts[0].kind, events, values)

    def _alike(self, parts: list[Part]) -> list[Part]:
        if len({(part.kind, part.values.shape[1:]) for part in parts}) == 1:
            return parts
        if {part.kind for part in parts} == {ItemKind.INT, ItemKind.FLOAT} and all(map(_fits_float, parts)):
            return [Part(ItemKind.FLOAT, part.events, part.values.astype(np.float64)) for part in parts]
        return [self._as_json(part) for part in parts]

    def _as_json(self, part: Part) -> Part:
        if part.kind is ItemKind.JSON:
            return part
        values: Iterable[object] = part.values.tolist()
        if part.kind is ItemKind.STRING:
            strings = tuple(self._numbers)
            values = [strings[number] for number in part.values]
        elif part.kind is ItemKind.BOOL:
            values = map(bool, part.values)
        return Part(ItemKind.JSON, part.events, self.texts([json.dumps(value) for value in values]))


def _fits_float(part: Part) -> bool:
    return part.kind is ItemKind.FLOAT or bool((np.abs(part.values) <= _EXACT_IN_FLOAT).all())
