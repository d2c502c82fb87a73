"""A trace in chunks: some of its events at a time, and the values that stand in their text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from devprof.export.strict_json import WrittenTexts, clean, json_text, quoted, verbatim
from devprof.store import ItemColumn, ItemKind, Trace

__all__ = [
    "EVENTS_AT_ONCE",
    "Chunk",
    "Field",
    "ItemFields",
    "chunks",
    "distinct_keys",
    "found",
    "number_field",
    "with_constant",
]

Longs = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

EVENTS_AT_ONCE = 2048
"""Events in a chunk: enough to pay for the calls, few enough that their texts stay in the processor's cache."""

_WORDS = ("false", "true")


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """Some events of a trace.

    Attributes:
        events: (m,) int64, their indices.
        number: position in the grid of chunks, -1 for events from all over the trace.
        kept: (m,) bool: those to be written here; None: all.
    """

    events: Longs
    number: int = -1
    kept: Mask | None = None

    @property
    def index(self) -> slice | Longs:
        """What picks these events out of a column: a slice where they stand in one piece."""
        return slice(int(self.events[0]), int(self.events[-1]) + 1) if self.number >= 0 else self.events


class Field(NamedTuple):
    """One value in the text of an event.

    Attributes:
        piece: the text, with a ``%s`` for each column; of a whole number it takes less time than ``%d``.
        columns: (m,) arrays, or the values themselves.
        present: (m,) bool: which events have it.
        written: turns a list of a column's values into what the conversion takes; None: as they are.
    """

    piece: str
    columns: tuple[npt.NDArray[Any], ...]
    present: Mask
    written: Callable[[list[Any]], Iterable[object]] | None = None


def chunks(n: int, ahead: Longs) -> Iterator[Chunk]:
    """Yield the events of a trace in the order in which they are written.

    Args:
        n: number of events.
        ahead: (j,) int64, events that come before all others, in this order.
    """
    for low in range(0, len(ahead), EVENTS_AT_ONCE):
        yield Chunk(ahead[low : low + EVENTS_AT_ONCE])
    gone = np.sort(ahead)
    for number, low in enumerate(range(0, n, EVENTS_AT_ONCE)):
        events = np.arange(low, min(low + EVENTS_AT_ONCE, n))
        inside = gone[np.searchsorted(gone, low) : np.searchsorted(gone, low + EVENTS_AT_ONCE)]
        kept = None if len(inside) == 0 else ~np.isin(events, inside)
        yield Chunk(events, number, kept)


def number_field(key: str, values: npt.NDArray[np.integer[Any]], present: Mask) -> Field:
    """Return a field of whole numbers."""
    return Field(f"{_key(key)}:%s", (values,), present)


def with_constant(field: Field) -> Field:
    """Return the field with its value in the piece, where that is the same throughout the chunk."""
    if not all(bool((column == column[0]).all()) for column in field.columns):
        return field
    written = field.written or list
    values = [one for column in field.columns for one in written(column[:1].tolist())]
    return Field((field.piece % tuple(values)).replace("%", "%%"), (), field.present)


def found(column: ItemColumn, chunk: Chunk) -> tuple[Longs, npt.NDArray[Any]]:
    """Return where in a chunk a column has values, (c,) ascending, and those."""
    if chunk.number >= 0:
        first, last = chunk.events[0], chunk.events[-1]
        low, high = np.searchsorted(column.events, [first, last + 1]).tolist()
        return column.events[low:high] - first, column.values[low:high]
    which = np.minimum(np.searchsorted(column.events, chunk.events), len(column) - 1)
    at = np.flatnonzero(column.events[which] == chunk.events) if len(column) else which[:0]
    return at, column.values[which[at]]


class ItemFields:
    """The fields of a trace's items, or of its counters."""

    def __init__(self, trace: Trace, columns: Mapping[str, ItemColumn]) -> None:
        self._columns = columns
        self._keys = {key: _key(text) for key, text in distinct_keys(columns).items()}
        self._quoted = WrittenTexts(trace.strings, quoted)
        self._verbatim = WrittenTexts(trace.strings, verbatim)

    def of(self, chunk: Chunk) -> Iterator[tuple[str, Field]]:
        """Yield key and field of each column that has values in a chunk."""
        for key, column in self._columns.items():
            at, values = found(column, chunk)
            if column.kind is ItemKind.FLOAT:
                finite = np.isfinite(values)
                at, values = at[finite], values[finite]
            if len(at):
                yield key, self._field(self._keys[key], column.kind, at, values, len(chunk.events))

    def _field(self, written_key: str, kind: ItemKind, at: Longs, values: npt.NDArray[Any], m: int) -> Field:
        present = np.ones(m, dtype=np.bool_)
        if len(at) < m:
            present[:] = False
            present[at] = True
            values = _spread(at, values, m)
        piece, columns = written_key, (values,)
        match kind:
            case ItemKind.INT:
                return Field(f"{piece}:%s", columns, present)
            case ItemKind.FLOAT:
                return Field(f"{piece}:%s", columns, present, _float_texts)
            case ItemKind.BOOL:
                return Field(f"{piece}:%s", columns, present, _words)
            case ItemKind.STRING:
                return Field(f"{piece}:%s", columns, present, self._quoted.of)
            case ItemKind.JSON:
                return Field(f"{piece}:%s", columns, present, self._verbatim.of)
            case ItemKind.INT_LIST:
                numbers = ",".join(["%s"] * values.shape[1])
                return Field(f"{piece}:[{numbers}]", tuple(values.T), present)


def distinct_keys(keys: Iterable[str]) -> dict[str, str]:
    """Return keys as they are written; of several that read the same once cleaned the later ones get a number."""
    written: dict[str, str] = {}
    taken: set[str] = set()
    for key in dict.fromkeys(keys):
        text, number = clean(key), 1
        while text in taken:
            number += 1
            text = f"{clean(key)} ({number})"
        written[key] = text
        taken.add(text)
    return written


def _spread(at: Longs, values: npt.NDArray[Any], m: int) -> npt.NDArray[Any]:
    full = np.full((m, *values.shape[1:]), values[0], dtype=values.dtype)
    full[at] = values
    return full


def _key(key: str) -> str:
    return json_text(key).replace("%", "%%")


def _float_texts(values: list[float]) -> list[str]:
    """Return the shortest texts that read back as these numbers; of few distinct ones each is made once."""
    distinct = set(values)
    if 2 * len(distinct) > len(values):
        return list(map(repr, values))
    texts = {value: repr(value) for value in distinct if value}  # -0.0 and 0.0 are equal and have different texts
    return [texts.get(value) or repr(value) for value in values]


def _words(values: list[int]) -> list[str]:
    return [_WORDS[value != 0] for value in values]
