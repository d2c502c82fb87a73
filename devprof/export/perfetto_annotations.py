"""Args of a Perfetto trace: debug annotations with their types, from columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from devprof.export.chunks import Chunk, distinct_keys, found
from devprof.export.launch_fields import LaunchFields
from devprof.export.perfetto_lists import Lists
from devprof.export.perfetto_names import Names
from devprof.export.protobuf import (
    FIXED64,
    VARINT,
    Part,
    fixed64,
    message,
    number_field,
    tag,
    varint_column,
)
from devprof.store import ItemColumn, ItemKind, Trace

__all__ = ["Annotation", "Annotations"]

Longs = npt.NDArray[np.int64]

_DEBUG_ANNOTATIONS = 4  # of TrackEvent
_NAME_IID, _BOOL, _INT, _DOUBLE, _STRING_IID = 1, 2, 4, 5, 17  # of DebugAnnotation
_NAMES, _STRING_VALUES = 3, 29  # of InternedData


class Carriers:
    """Which events of a chunk have an arg; args that the same events have share one of these.

    Attributes:
        at: (c,) int64, places of the events, ascending.
        present: (m,) bool.
        rank: (m,) int64, place of an event among them; None where all m have it.
    """

    __slots__ = ("at", "present", "rank")

    def __init__(self, at: Longs, m: int) -> None:
        self.at = at
        self.present = np.ones(m, dtype=np.bool_)
        self.rank: Longs | None = None
        if len(at) < m:
            self.present[:] = False
            self.present[at] = True
            self.rank = np.cumsum(self.present) - 1


class Annotation(NamedTuple):
    """One arg: which events have it, and its bytes."""

    carriers: Carriers
    parts: list[Part]


class Annotations:
    """The args of a trace's events: those that follow from ids, and its items; what its row says it does not repeat."""

    def __init__(self, trace: Trace) -> None:
        self._items = trace.items
        self._row = trace.row
        self._launches = LaunchFields(trace)
        texts = distinct_keys([*LaunchFields.FROM_IDS, *trace.items])
        self._number = {key: i for i, key in enumerate(texts)}
        self._names = Names(_NAMES, len(texts), list(texts.values()).__getitem__)
        self._texts = Names(_STRING_VALUES, len(trace.strings), trace.strings.__getitem__)
        self._lists = Lists(_STRING_VALUES, len(trace.strings))

    def names(self) -> Iterator[bytes]:
        """Yield packets with the args' names."""
        yield from self._names.new(np.arange(len(self._number)))

    def of(self, chunk: Chunk) -> tuple[list[bytes], list[Annotation]]:
        """Return packets with what texts are new, and the annotations of a chunk."""
        shared = _Shared(len(chunk.events))
        packets: list[bytes] = []
        items: list[Annotation] = []
        fields = self._launches.from_ids(chunk)
        derived = {key: field.present for key, field in fields.items()}
        for key, column in self._items.items():
            at, values = self._unsaid(key, column, chunk)
            if len(at) == 0:
                continue
            kind = column.kind
            if kind is ItemKind.INT_LIST:
                kind, values, new = ItemKind.JSON, *self._lists.numbers(values)
                packets += new
            elif kind in (ItemKind.STRING, ItemKind.JSON):
                packets += self._texts.new(values)
            items += self._annotations(key, kind, at, values, shared)
            if key in derived:
                derived[key] = derived[key].copy()
                derived[key][at] = False
        launches: list[Annotation] = []
        for key, present in derived.items():
            at = np.flatnonzero(present)
            launches += self._annotations(key, ItemKind.INT, at, fields[key].columns[0][at], shared)
        return packets, [*launches, *items]

    def _unsaid(self, key: str, column: ItemColumn, chunk: Chunk) -> tuple[Longs, npt.NDArray[Any]]:
        """Return where in a chunk a column has values that the events' tracks do not say already, and those."""
        at, values = found(column, chunk)
        if len(at) and column.kind is ItemKind.INT and (said := self._launches.said.get(key)) is not None:
            row = self._row[chunk.index][at]
            unsaid = ~self._launches.on_device[row] | (said[row] != values)
            at, values = at[unsaid], values[unsaid]
        return at, values

    def _annotations(
        self, key: str, kind: ItemKind, at: Longs, values: npt.NDArray[Any], shared: _Shared
    ) -> Iterator[Annotation]:
        """Yield the annotation of a key; of numbers with both signs two, for negative ones take ten bytes."""
        below = values < 0 if kind is ItemKind.INT else np.zeros(0, dtype=np.bool_)
        for chosen in (below, ~below) if below.any() else (slice(None),):
            if len(some := at[chosen]):
                carriers = shared.carriers(some)
                value = _value(kind, values[chosen], carriers.rank)
                name = number_field(_NAME_IID, self._number[key] + 1)
                yield Annotation(carriers, message(_DEBUG_ANNOTATIONS, [name, *value]))


class _Shared:
    """The carriers of a chunk's args."""

    def __init__(self, m: int) -> None:
        self._m = m
        self._known: dict[int, list[Carriers]] = {}  # by how many they are

    def carriers(self, at: Longs) -> Carriers:
        """Return those at these places, the same object for the same places."""
        known = self._known.setdefault(len(at), [])
        for one in known:
            if np.array_equal(one.at, at):
                return one
        known.append(Carriers(at, self._m))
        return known[-1]


def _value(kind: ItemKind, values: npt.NDArray[Any], rank: Longs | None) -> list[Part]:
    match kind:
        case ItemKind.INT:
            return [tag(_INT, VARINT), *varint_column(values, rank)]
        case ItemKind.FLOAT:
            return [tag(_DOUBLE, FIXED64), *fixed64(values, rank)]
        case ItemKind.BOOL:
            return [tag(_BOOL, VARINT), *varint_column((values != 0).astype(np.uint64), rank)]
        case _:
            return [tag(_STRING_IID, VARINT), *varint_column(values.astype(np.int64) + 1, rank)]
