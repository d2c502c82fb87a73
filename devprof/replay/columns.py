"""Batches of all sessions as one set of columns, and back."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from devprof.errors import TraceFileError
from devprof.model import ActivityBatch, MetadataColumn, MetadataKind
from devprof.model.columns import COLUMNS
from devprof.store.archive import Members, put_array

__all__ = ["BatchRows", "Texts", "batches_in", "put_batches"]

_TABLES = ("metadata", "counters")


class Texts:
    """A table of distinct texts that grows."""

    def __init__(self) -> None:
        """Begin empty."""
        self.numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        """Return the number of a text."""
        return self.numbers.setdefault(text, len(self.numbers))

    def numbers_of(self, texts: Iterable[str]) -> npt.NDArray[np.int32]:
        """Return the number of each text: (n,) int32."""
        return np.array([self.number(text) for text in texts], np.int32)


@dataclass(frozen=True, slots=True)
class BatchRows:
    """Where a batch is in the columns: its first row, the row behind its last, and its clock."""

    begin: int
    end: int
    clock: str


def put_batches(archive: zipfile.ZipFile, batches: Sequence[ActivityBatch], texts: Texts) -> list[dict[str, Any]]:
    """Write batches as members ``records/`` and ``items/``, and return what the manifest says of the items."""
    tables = [texts.numbers_of(batch.strings) for batch in batches]
    for key, dtype in COLUMNS.items():
        parts = [
            table[batch.name] if key == "name" else getattr(batch, key)
            for batch, table in zip(batches, tables, strict=True)
        ]
        put_array(archive, f"records/{key}.npy", np.concatenate([np.zeros(0, dtype), *parts]).astype(dtype))
    items = _items_of(batches, tables)
    for number, (rows, values) in enumerate(items.values()):
        put_array(archive, f"items/{number}.rows.npy", np.concatenate(rows))
        put_array(archive, f"items/{number}.npy", np.concatenate(values))
    return [{"table": table, "key": key, "kind": kind.name} for table, key, kind, _ in items]


def _items_of(batches: Sequence[ActivityBatch], tables: Sequence[npt.NDArray[np.int32]]) -> dict[Any, Any]:
    """Return rows and values by table, key, kind and width."""
    items: dict[Any, tuple[list[Any], list[Any]]] = {}
    first = 0
    for batch, texts in zip(batches, tables, strict=True):
        for table in _TABLES:
            for key, column in getattr(batch, table).items():
                there = np.arange(len(batch)) if column.present is None else np.flatnonzero(column.present)
                values = column.values[there]
                if column.kind is MetadataKind.STRING:
                    values = texts[values]
                rows, parts = items.setdefault((table, key, column.kind, values.shape[1:]), ([], []))
                rows.append(there + first)
                parts.append(values)
        first += len(batch)
    return items


def batches_in(
    members: Members, places: Sequence[BatchRows], items: Sequence[Any], strings: Sequence[str]
) -> list[ActivityBatch]:
    """Return the batches that `put_batches` wrote.

    Raises:
        TraceFileError: the members do not fit each other.
    """
    columns = {key: members.array(f"records/{key}.npy", dtype) for key, dtype in COLUMNS.items()}
    n = len(columns["start"])
    if any(column.shape != (n,) for column in columns.values()):
        raise TraceFileError("its columns of records have several lengths")
    edges = [edge for place in places for edge in (place.begin, place.end)]
    if edges != sorted(edges) or (edges and not 0 <= edges[0] <= edges[-1] <= n):
        raise TraceFileError(f"its batches do not follow each other within {n} records")
    found = [_item(members, number, entry) for number, entry in enumerate(items)]
    return [_batch(columns, found, place, strings) for place in places]


def _item(members: Members, number: int, entry: Any) -> tuple[str, str, MetadataKind, Any, Any]:
    rows = members.array(f"items/{number}.rows.npy", np.int64)
    values = members.array(f"items/{number}.npy")
    table, key, kind = str(entry["table"]), str(entry["key"]), MetadataKind[entry["kind"]]
    if table not in _TABLES or rows.ndim != 1 or values.shape[:1] != rows.shape or (rows[1:] <= rows[:-1]).any():
        raise TraceFileError(f"its items {key!r} do not hold together")
    return table, key, kind, rows, values


def _batch(columns: Any, items: Sequence[Any], place: BatchRows, strings: Sequence[str]) -> ActivityBatch:
    begin, end = place.begin, place.end
    used = Texts()
    own: dict[str, Any] = {key: column[begin:end] for key, column in columns.items()}
    own["name"] = _renumbered(own["name"], used, strings)
    tables: dict[str, dict[str, MetadataColumn]] = {table: {} for table in _TABLES}
    for table, key, kind, rows, values in items:
        first, last = np.searchsorted(rows, [begin, end])
        if first < last:
            tables[table][key] = _column(kind, rows[first:last] - begin, values[first:last], end - begin, used, strings)
    return ActivityBatch(
        tuple(used.numbers), **own, metadata=tables["metadata"], counters=tables["counters"], clock=place.clock
    )


def _column(kind: MetadataKind, rows: Any, values: Any, n: int, used: Texts, strings: Sequence[str]) -> MetadataColumn:
    if kind is MetadataKind.STRING:
        values = _renumbered(values, used, strings)
    if len(rows) == n:
        return MetadataColumn(kind, values)
    full = np.zeros((n, *values.shape[1:]), values.dtype)
    present = np.zeros(n, np.bool_)
    full[rows], present[rows] = values, True
    if kind is MetadataKind.STRING and not used.numbers:
        used.number("")
    return MetadataColumn(kind, full, present)


def _renumbered(numbers: npt.NDArray[Any], used: Texts, strings: Sequence[str]) -> npt.NDArray[np.int32]:
    found, at = np.unique(numbers, return_inverse=True)
    if len(found) and not 0 <= found[0] <= found[-1] < len(strings):
        raise TraceFileError("a record names a text that is not there")
    return used.numbers_of(strings[number] for number in found.tolist())[at] if len(found) else np.zeros(0, np.int32)
