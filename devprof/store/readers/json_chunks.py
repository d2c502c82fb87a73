"""`Chunk`: some events of a Chrome trace, column by column, whichever decoder has read them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from devprof.store.items import ItemKind
from devprof.store.readers.gathering import EventTable
from devprof.store.readers.json_source import NotJson, whole

__all__ = [
    "FIELDS",
    "ArgsColumn",
    "Chunk",
    "Decoder",
    "Field",
    "Literal",
    "Times",
    "TypedValues",
    "canonical",
    "loads",
    "loads_or_text",
]

Longs = npt.NDArray[np.int64]

FIELDS = ("ph", "cat", "name", "pid", "tid", "ts", "dur", "id", "s", "bp")
"""Fields of an event that are read apart, in the order of `Field`; `args` is another, and all else is kept with it."""


class Field:
    """Positions in `FIELDS`."""

    PHASE, CATEGORY, NAME, PID, TID, TS, DUR, ID, SCOPE, BINDING = range(len(FIELDS))


class Times(NamedTuple):
    """n times.

    Attributes:
        ns: (n,) int64; 0 where there is none.
        sound: (n,) bool: where there is one.
        inexact: whether one came as a float that does not say which nanosecond is meant.
    """

    ns: Longs
    sound: npt.NDArray[np.bool_]
    inexact: bool = False


class TypedValues(NamedTuple):
    """Values of one type.

    Attributes:
        at: (m,) int64, their positions.
        kind: the type.
        values: (m,) or (m, k).
    """

    at: Longs
    kind: ItemKind
    values: npt.NDArray[Any]


class ArgsColumn(Protocol):
    """Values of one key of some events' args.

    Attributes:
        key: the key.
        events: (m,) int64, positions in the chunk, ascending.
    """

    @property
    def key(self) -> str: ...  # noqa: D102
    @property
    def events(self) -> Longs: ...  # noqa: D102

    def value(self, at: int) -> Any:
        """Return the value at a position of the m, as an object."""

    def typed(self, at: Longs | None, table: EventTable) -> Iterable[TypedValues]:
        """Return the values by type, those at some positions of the m or all; one that is None is left out.

        Args:
            at: (k,) positions, ascending; None: all.
            table: where texts get their numbers.
        """


class Chunk(Protocol):
    """n events.

    Attributes:
        dropped: things in the list that are no events.
    """

    @property
    def dropped(self) -> int: ...  # noqa: D102

    def __len__(self) -> int: ...

    def start(self) -> Times:
        """Return the events' starts."""

    def duration(self) -> Times:
        """Return the events' durations."""

    def kinds(self, numbers: Mapping[tuple[Any, Any], int]) -> Longs:
        """Return a number for each event's phase and category, as `numbers` has it: (n,)."""

    def tracks(self, numbers: Mapping[tuple[Any, Any], int]) -> Longs:
        """Return a number for each event's process and thread, as `numbers` has it: (n,)."""

    def names(self, at: Longs, table: EventTable) -> npt.NDArray[np.int32]:
        """Return the numbers of the names of some events; no name is an empty one: (m,)."""

    def odd_scopes(self, at: Longs) -> list[tuple[int, str]]:
        """Return the scopes of some events that are not their thread's, with their positions among the m."""

    def ids(self, at: Longs) -> Sequence[Any]:
        """Return the ids of some events."""

    def value(self, field: int, at: int) -> Any:
        """Return one field of an event, None where it has none; the field is none of the times."""

    def columns(self, kind: Longs) -> Iterable[ArgsColumn]:
        """Return the columns of the events' args.

        Args:
            kind: (n,) numbers, alike for events of one phase and category.
        """

    def repeated(self) -> int:
        """Return how many keys of the events and of their args are in their object already; after `columns` to its end."""


class Decoder(Protocol):
    """Decodes pieces of a list of events."""

    exact: bool
    """Whether times come as their text (bytes); else as numbers, which a float holds only up to a size."""

    def decode(self, piece: memoryview) -> Chunk:
        """Return the events of a piece of a list, without its brackets; raises `NotJson`."""

    def from_objects(self, events: list[Any]) -> Chunk:
        """Return events that are objects already."""


_ENCODER = json.JSONEncoder(allow_nan=False, ensure_ascii=False)


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
    read = text.decode("utf-8", "replace")
    parse_float = Literal if exact else None
    try:
        try:
            return json.loads(read, parse_float=parse_float)
        except json.JSONDecodeError:
            raise
        except ValueError:  # more digits than Python takes
            return json.loads(read, parse_float=parse_float, parse_int=whole)
    except (ValueError, RecursionError) as error:
        raise NotJson(str(error)) from error


def loads_or_text(text: bytes) -> Any:
    """Return the value of a text that a decoder has found to be JSON; the text itself where Python cannot nest so deeply."""
    try:
        return loads(text)
    except NotJson:
        return text.decode("utf-8", "replace")
