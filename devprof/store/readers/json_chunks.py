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
        sound = [event for event in events if isinstance(event, dict)]
        fields = [_scalars(key, [event.get(key) for event in sound]) for key in FIELDS]
        return Chunk(fields, lambda kind: columns_of([_args(event) for event in sound]), len(events) - len(sound))


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


def _args(event: dict[str, Any]) -> dict[str, Any]:
    """Return an event's args, with what else it holds that has no field."""
    args = event.get("args")
    if event.keys() <= _KNOWN:
        return args if isinstance(args, dict) else {} if args is None else {"args": args}
    others = {key: value for key, value in event.items() if key not in _KNOWN}
    if isinstance(args, dict):
        return {**others, **args}
    return others if args is None else {**others, "args": args}


def columns_of(args: Sequence[dict[str, Any]]) -> Iterator[ArgsColumn]:
    """Turn dicts into columns; those with the same keys in the same order go together."""
    alike: dict[tuple[str, ...], list[int]] = {}
    for at, one in enumerate(args):
        alike.setdefault(tuple(one), []).append(at)
    for keys, events in alike.items():
        columns = zip(*(args[at].values() for at in events), strict=True)
        places = np.array(events, dtype=np.int64)
        for key, values in zip(keys, columns, strict=True):
            yield ArgsColumn(key, places, values)


def decoder() -> Decoder:
    """Return the fastest decoder that is installed."""
    try:
        from devprof.store.readers.json_fast import FastDecoder
    except ImportError:
        return PlainDecoder()
    return FastDecoder()
