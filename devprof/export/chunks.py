"""A trace in chunks: some of its events at a time, and the args of those."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from devprof.export.strict_json import clean, json_text
from devprof.store import ItemColumn, ItemKind

__all__ = ["Chunk", "Field", "ItemFields", "chunks", "distinct_keys", "found", "number_field"]

Longs = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


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
    """One arg of the events of a chunk.

    Attributes:
        key: the key as it stands in the file, with quotes.
        kind: type of the values; numbers of `STRING` and `JSON` are those of the trace's texts.
        values: (m,) or (m, k) with the dtype of `ItemColumn`; anything where an event does not have it.
        present: (m,) bool: which events have it.
    """

    key: str
    kind: ItemKind
    values: npt.NDArray[Any]
    present: Mask

    @property
    def columns(self) -> tuple[npt.NDArray[Any], ...]:
        """The values; of lists one column for each position."""
        return tuple(self.values.T) if self.kind is ItemKind.INT_LIST else (self.values,)


def chunks(n: int, ahead: Longs, at_once: int) -> Iterator[Chunk]:
    """Yield the events of a trace in the order in which they are written.

    Args:
        n: number of events.
        ahead: (j,) int64, events that come before all others, in this order.
        at_once: most events in a chunk.
    """
    for low in range(0, len(ahead), at_once):
        yield Chunk(ahead[low : low + at_once])
    gone = np.sort(ahead)
    for number, low in enumerate(range(0, n, at_once)):
        events = np.arange(low, min(low + at_once, n))
        inside = gone[np.searchsorted(gone, low) : np.searchsorted(gone, low + at_once)]
        kept = None if len(inside) == 0 else ~np.isin(events, inside)
        yield Chunk(events, number, kept)


def number_field(key: str, values: npt.NDArray[np.int64], present: Mask) -> Field:
    """Return a field of whole numbers."""
    return Field(json_text(key), ItemKind.INT, values, present)


class ItemFields:
    """The fields of a trace's items, or of its counters."""

    def __init__(self, columns: Mapping[str, ItemColumn]) -> None:
        self._columns = columns
        self._keys = {key: json_text(text) for key, text in distinct_keys(columns).items()}

    def of(self, chunk: Chunk) -> Iterator[tuple[str, Field]]:
        """Yield key and field of each column that has values in a chunk; a number that is not finite is none."""
        m = len(chunk.events)
        for key, column in self._columns.items():
            at, values = found(column, chunk)
            if column.kind is ItemKind.FLOAT and not (finite := np.isfinite(values)).all():
                at, values = at[finite], values[finite]
            if len(at):
                present = np.ones(m, dtype=np.bool_)
                if len(at) < m:
                    present[:] = False
                    present[at] = True
                    values = _spread(at, values, m)
                yield key, Field(self._keys[key], column.kind, values, present)


def found(column: ItemColumn, chunk: Chunk) -> tuple[Longs, npt.NDArray[Any]]:
    """Return where in a chunk a column has values, ascending, and those."""
    if chunk.number >= 0:
        first, last = chunk.events[0], chunk.events[-1]
        low = column.events.searchsorted(first)  # one at a time: an array of both takes ten times as long to make
        high = column.events.searchsorted(last, "right")
        return column.events[low:high] - first, column.values[low:high]
    which = np.minimum(np.searchsorted(column.events, chunk.events), len(column) - 1)
    at = np.flatnonzero(column.events[which] == chunk.events) if len(column) else which[:0]
    return at, column.values[which[at]]


def distinct_keys(keys: Iterable[str]) -> dict[str, str]:
    """Return keys as they are written; of several that read the same once cleaned the later ones get a number."""
    written: dict[str, str] = {}
    taken: set[str] = set()
    for key in dict.fromkeys(keys):
        text, number = clean(key), 1
        while text in taken:
            number += 1
            text = f"{clean(key)} ({number})"
        taken.add(text)
        written[key] = text
    return written


def _spread(at: Longs, values: npt.NDArray[Any], m: int) -> npt.NDArray[Any]:
    full = np.full((m, *values.shape[1:]), values[0], dtype=values.dtype)
    full[at] = values
    return full
