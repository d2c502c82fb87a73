"""`Chunk`: some events of a Chrome trace as columns of objects, and the two decoders that make it.

msgspec reads an event into a struct and leaves its args alone until all args of one kind of event can be read together, by a
struct that is made for their keys. The other decoder makes dicts by the standard library. They make the same chunks.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from devprof.store.readers.json_source import NotJson

__all__ = [
    "FIELDS",
    "ArgsColumn",
    "Chunk",
    "Decoder",
    "Literal",
    "PlainDecoder",
    "canonical",
    "columns_of",
    "decoder",
    "groups",
    "loads",
]

FIELDS = ("ph", "cat", "name", "pid", "tid", "ts", "dur", "id", "s", "bp")
"""Fields of an event that are read apart, in the order of `Chunk.fields`; `args` is another, and all else is kept with it."""


_ENCODER = json.JSONEncoder(allow_nan=False, ensure_ascii=False)


class ArgsColumn(NamedTuple):
    """Values of one key of some events' args.

    Attributes:
        key: the key.
        events: (m,) int64, positions in the chunk, ascending.
        values: m values: numbers, texts, truth values, None; lists and objects as JSON text, in bytes.
    """

    key: str
    events: npt.NDArray[np.int64]
    values: Sequence[Any]


class Chunk(NamedTuple):
    """n events.

    Attributes:
        fields: a list of n values for each of `FIELDS`; None where an event has none.
        columns: returns the columns of the events' args, given a number for each event, alike for those of one phase and
            category.
        dropped: things in the list that are no events.
    """

    fields: Sequence[Sequence[Any]]
    columns: Callable[[npt.NDArray[np.int64]], Iterable[ArgsColumn]]
    dropped: int

    def __len__(self) -> int:
        return len(self.fields[0])


class Decoder(Protocol):
    """Decodes the text of a list of events."""

    exact: bool
    """Whether times come as their text (bytes); else as numbers, which a float holds only up to a size."""

    def decode(self, text: bytes) -> Chunk:
        """Return the events; raises `NotJson`."""

    def from_objects(self, events: list[Any]) -> Chunk:
        """Return events that are objects already."""


def canonical(value: Any) -> str:
    """Return a value as strict JSON text; numbers that are none become texts."""
    try:
        return _ENCODER.encode(value)
    except (ValueError, RecursionError):
        return _ENCODER.encode(_finite(value, 0))


def _finite(value: Any, depth: int) -> Any:
    if depth > 200:
        return "..."
    if isinstance(value, float) and value - value != 0:
        return str(value)
    if isinstance(value, list):
        return [_finite(one, depth + 1) for one in value]
    if isinstance(value, dict):
        return {key: _finite(one, depth + 1) for key, one in value.items()}
    return value


class PlainDecoder:
    """Decodes by the standard library."""

    def __init__(self) -> None:
        self.exact = False

    def decode(self, text: bytes) -> Chunk:
        """Return the events of a list.

        Raises:
            NotJson: it is none, or nested too deeply.
        """
        return self.from_objects(loads(text, exact=self.exact))

    def from_objects(self, events: list[Any]) -> Chunk:
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
        return Chunk(fields, lambda kind: columns_of(args), len(events) - len(sound))


class Literal(float):
    """A number with its text, which may say more."""

    text: str

    def __new__(cls, text: str) -> Literal:
        """Return the number that a text says."""
        number = super().__new__(cls, text)
        number.text = text
        return number


def loads(text: bytes, *, exact: bool = False) -> Any:
    """Return the value of a text; what is no UTF-8 in it is replaced.

    Args:
        text: JSON, with NaN and Infinity as numbers.
        exact: return numbers with a fraction as `Literal`.

    Raises:
        NotJson: it is no JSON, or is nested too deeply.
    """
    try:
        return json.loads(text.decode("utf-8", "replace"), parse_float=Literal if exact else None)
    except (ValueError, RecursionError) as error:
        raise NotJson(str(error)) from error


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


def columns_of(args: Sequence[dict[str, Any]]) -> Iterator[ArgsColumn]:
    """Turn dicts into columns; those with the same keys in the same order go together."""
    shapes = list(map(tuple, args))
    number = {shape: at for at, shape in enumerate(dict.fromkeys(shapes))}
    which = np.fromiter(map(number.__getitem__, shapes), np.int64, len(shapes))
    for events in groups(which):
        alike = [args[event] for event in events.tolist()]
        for key, values in zip(alike[0], zip(*map(dict.values, alike), strict=True), strict=True):
            yield ArgsColumn(key, events, values)


def groups(which: npt.NDArray[np.int64]) -> Iterator[npt.NDArray[np.int64]]:
    """Yield the positions of each number, ascending."""
    order = np.argsort(which, kind="stable")
    ends = np.flatnonzero(np.diff(which[order])) + 1
    return (group for group in np.split(order, ends) if len(group))


def decoder() -> Decoder:
    """Return the fastest decoder that is installed."""
    try:
        from devprof.store.readers.json_fast import FastDecoder
    except ImportError:
        return PlainDecoder()
    return FastDecoder()
