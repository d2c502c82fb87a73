"""`PlainDecoder`: chunks by the standard library, and `ObjectChunk`, events whose values are objects."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from operator import methodcaller
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from devprof.store.readers.gathering import EventTable
from devprof.store.readers.json_chunks import (
    FIELDS,
    ArgsColumn,
    Field,
    Times,
    TypedValues,
    canonical,
    loads,
    loads_or_text,
)
from devprof.store.readers.json_items import typed_values
from devprof.store.readers.json_repeated import may_repeat, repeated_keys
from devprof.store.readers.json_times import nanoseconds

__all__ = ["ObjectChunk", "ObjectColumn", "PlainDecoder", "columns_of", "groups"]

Longs = npt.NDArray[np.int64]


class ObjectColumn(NamedTuple):
    """Values of one key as objects; an `ArgsColumn`.

    Attributes:
        key: the key.
        events: (m,) int64, positions in the chunk, ascending.
        values: m values: numbers, texts, truth values, None; lists and objects as they are, or as JSON text in bytes.
    """

    key: str
    events: Longs
    values: Sequence[Any]

    def value(self, at: int) -> Any:
        """Return one value; what comes as JSON text is read."""
        value = self.values[at]
        return value if isinstance(value, _OBJECTS) else loads_or_text(bytes(value))

    def typed(self, at: Longs | None, table: EventTable) -> Iterator[TypedValues]:
        """Return the values by type, as `ArgsColumn` says."""
        return typed_values(self.key, self.values if at is None else [self.values[one] for one in at.tolist()], table)


_OBJECTS = (str, int, float, list, dict, type(None))


class ObjectChunk(NamedTuple):
    """n events; a `Chunk`.

    Attributes:
        fields: a list of n values for each of `FIELDS`; None where an event has none.
        columns: returns the columns of the events' args, as in `Chunk`.
        dropped: things in the list that are no events.
        repeated: returns the number of keys that are in their object already, as in `Chunk`.
    """

    fields: Sequence[Sequence[Any]]
    columns: Callable[[Longs], Iterable[ArgsColumn]]
    dropped: int
    repeated: Callable[[], int] = int

    def __len__(self) -> int:
        return len(self.fields[0])

    def start(self) -> Times:
        """Return the events' starts."""
        return nanoseconds(self.fields[Field.TS])

    def duration(self) -> Times:
        """Return the events' durations."""
        return nanoseconds(self.fields[Field.DUR])

    def kinds(self, numbers: Mapping[tuple[Any, Any], int]) -> Longs:
        """Return a number for each event's phase and category."""
        return self._numbered(numbers, Field.PHASE, Field.CATEGORY)

    def tracks(self, numbers: Mapping[tuple[Any, Any], int]) -> Longs:
        """Return a number for each event's process and thread."""
        return self._numbered(numbers, Field.PID, Field.TID)

    def _numbered(self, numbers: Mapping[tuple[Any, Any], int], one: int, other: int) -> Longs:
        pairs = zip(self.fields[one], self.fields[other], strict=True)
        return np.fromiter(map(numbers.__getitem__, pairs), np.int64, len(self))

    def names(self, at: Longs, table: EventTable) -> npt.NDArray[np.int32]:
        """Return the numbers of the names of some events."""
        names = self.fields[Field.NAME]
        if len(at) < len(names):
            names = [names[one] for one in at.tolist()]
        if None in names:
            names = ["" if name is None else name for name in names]
        return table.texts(names)

    def odd_scopes(self, at: Longs) -> list[tuple[int, str]]:
        """Return the scopes of some events that are not their thread's."""
        scopes = self.fields[Field.SCOPE]
        if set(scopes) <= {None, "t"}:
            return []
        return [(to, scopes[one]) for to, one in enumerate(at.tolist()) if scopes[one] not in (None, "t")]

    def ids(self, at: Longs) -> Sequence[Any]:
        """Return the ids of some events."""
        ids = self.fields[Field.ID]
        return [ids[one] for one in at.tolist()]

    def value(self, field: int, at: int) -> Any:
        """Return one field of an event."""
        return self.fields[field][at]


class PlainDecoder:
    """Decodes by the standard library."""

    def __init__(self) -> None:
        self.exact = False

    def decode(self, piece: memoryview) -> ObjectChunk:
        """Return the events of a piece of a list.

        Raises:
            NotJson: it is none, or nested too deeply.
        """
        text = b"".join((b"[", piece, b"]"))
        events = loads(text, exact=self.exact)
        chunk = self.from_objects(events)
        if not may_repeat(text, _keys_in(events)):
            return chunk
        count = repeated_keys(text)
        return ObjectChunk(chunk.fields, chunk.columns, chunk.dropped, lambda: count)

    def from_objects(self, events: list[Any]) -> ObjectChunk:
        """Return the events among some objects."""
        sound = events if set(map(type, events)) == {dict} else [event for event in events if isinstance(event, dict)]
        columns: dict[str, npt.NDArray[Any]] = {key: np.full(len(sound), None, dtype=object) for key in _KNOWN}
        others: dict[int, dict[str, Any]] = {}
        for column in columns_of(sound):
            if column.key in _KNOWN:
                columns[column.key][column.events] = _objects(column.values)
            else:
                for at, value in zip(column.events.tolist(), column.values, strict=True):
                    others.setdefault(at, {})[column.key] = value
        fields = [_scalars(key, columns[key].tolist()) for key in FIELDS]
        args = _args(columns["args"].tolist(), others)
        return ObjectChunk(fields, lambda kind: columns_of(args), len(events) - len(sound))


def _keys_in(events: list[Any]) -> int:
    found = [event for event in events if isinstance(event, dict)]
    args = [one for one in map(_ARGS, found) if isinstance(one, dict)]
    return sum(map(len, found)) + sum(map(len, args))


_ARGS = methodcaller("get", "args")
_KNOWN = {*FIELDS, "args"}
_TEXTS = frozenset({"ph", "cat", "name", "s", "bp"})
_NESTED = frozenset({list, dict})
_TEXT_OR_NONE = frozenset({str, type(None)})


def _scalars(key: str, values: list[Any]) -> list[Any]:
    """Return a field's values as its column may hold them: texts, or numbers where it is one of numbers."""
    kinds = set(map(type, values))
    if kinds <= _TEXT_OR_NONE or (key not in _TEXTS and not kinds & _NESTED):
        return values
    keeps = _TEXT_OR_NONE if key in _TEXTS else kinds - _NESTED
    return [value if type(value) in keeps else canonical(value) for value in values]


def _objects(values: Sequence[Any]) -> npt.NDArray[Any]:
    """Return objects as an array of them, whatever they are."""
    return np.fromiter(values, dtype=object, count=len(values))


def _args(args: list[Any], others: dict[int, dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the events' args, with what else they hold that has no field."""
    if not others and set(map(type, args)) == {dict}:
        return args
    given = [one if isinstance(one, dict) else {} if one is None else {"args": one} for one in args]
    for at, more in others.items():
        given[at] = {**more, **given[at]}
    return given


def columns_of(args: Sequence[dict[str, Any]]) -> Iterator[ObjectColumn]:
    """Turn dicts into columns; those with the same keys in the same order go together."""
    number: defaultdict[tuple[str, ...], int] = defaultdict(count().__next__)  # so that each shape is hashed once
    which = np.fromiter(map(number.__getitem__, map(tuple, args)), np.int64, len(args))
    for events in groups(which):
        alike = [args[event] for event in events.tolist()]
        for key, values in zip(alike[0], zip(*map(dict.values, alike), strict=True), strict=True):
            yield ObjectColumn(key, events, values)


def groups(which: npt.NDArray[np.int64]) -> Iterator[npt.NDArray[np.int64]]:
    """Yield the positions of each number, ascending."""
    order = np.argsort(which, kind="stable")
    ends = np.flatnonzero(np.diff(which[order])) + 1
    return (group for group in np.split(order, ends) if len(group))
