"""Metadata items of one record: read once, checked, and matched with those of other records."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from numbers import Real
from typing import NamedTuple, TypeAlias, cast

import numpy as np

from devprof.model.fitting import EXACT_IN_FLOAT
from devprof.model.metadata import MetadataKind

__all__ = ["Item", "MixedKindsError", "RecordError", "Shape", "merged", "read_counters", "read_items", "whole"]

Item: TypeAlias = bool | int | float | str | tuple[int, ...]
"""A checked value, of exactly one of these types."""


class RecordError(ValueError):
    """A record that no batch can hold.

    Attributes:
        reason: which field and what is wrong, without its value: few different texts, good for counting.
    """

    def __init__(self, reason: str, details: str = "") -> None:
        super().__init__(f"{reason}{details}")
        self.reason = reason


class MixedKindsError(RecordError):
    """A record that fits a batch, but not the same batch as those before it."""


class Shape(NamedTuple):
    """Type of a metadata key.

    Attributes:
        kind: type of its values.
        width: numbers per value of an `INT_LIST`, else 0.
        exact: False for an `INT` that a float64 cannot hold.
    """

    kind: MetadataKind
    width: int = 0
    exact: bool = True

    @property
    def dtype(self) -> type[np.generic]:
        """Dtype of a column of such values, before strings become indices."""
        return np.float64 if self.kind is MetadataKind.FLOAT else np.int64


_BOOL, _FLOAT, _STRING = Shape(MetadataKind.BOOL), Shape(MetadataKind.FLOAT), Shape(MetadataKind.STRING)
_INT, _BIG_INT = Shape(MetadataKind.INT), Shape(MetadataKind.INT, exact=False)
_READY: dict[type, Shape] = {bool: _BOOL, float: _FLOAT, str: _STRING}  # the usual types, which need no conversion


def whole(field: str, value: object, low: int = -(2**63), high: int = 2**63 - 1) -> int:
    """Return `value` as a Python int within bounds; a float or a text is not a whole number here.

    Raises:
        RecordError: it is something else.
    """
    if type(value) is not int:
        try:
            value = int(operator.index(value))  # type: ignore[arg-type]  # the call is the check
        except TypeError:
            raise RecordError(f"{field} is a {type(value).__name__}", ", expected a whole number") from None
    if not low <= value <= high:
        raise RecordError(f"{field} is out of range", f": {value}, expected {low}..{high}")
    return value


def read_items(items: object) -> tuple[dict[str, Item], dict[str, Shape]]:
    """Read the metadata of one record: values and shapes by key. An item that is None is left out.

    Raises:
        RecordError: it is no mapping, a key is no text, or a value is of no type that metadata may have.
    """
    values: dict[str, Item] = {}
    shapes: dict[str, Shape] = {}
    for key, value in _pairs("metadata", items):
        if value is not None:
            values[key], shapes[key] = _item(key, value)
    return values, shapes


def read_counters(counters: object) -> dict[str, Item]:
    """Read the counter values of one record.

    Raises:
        RecordError: they are no mapping, a name is no text, or a value is no number.
    """
    values: dict[str, Item] = {}
    for name, value in _pairs("counter_values", counters):
        if not isinstance(value, Real):
            raise RecordError(f"a counter value is a {type(value).__name__}", f": {name!r}, expected a number")
        values[name] = float(value)
    return values


def merged(known: Mapping[str, Shape], more: Mapping[str, Shape]) -> dict[str, Shape]:
    """Return one shape per key that both sides fit.

    Raises:
        MixedKindsError: a key has two types that no column can hold, or lists of two lengths.
    """
    return {**known, **{key: _common(key, known.get(key, shape), shape) for key, shape in more.items()}}


def _pairs(field: str, items: object) -> list[tuple[str, object]]:
    if not isinstance(items, Mapping):
        raise RecordError(f"{field} is a {type(items).__name__}", ", expected a mapping")
    pairs = list(items.items())
    for key, _ in pairs:
        if not isinstance(key, str):
            raise RecordError(f"a key of {field} is a {type(key).__name__}", ", expected text")
    return pairs


def _item(key: str, value: object) -> tuple[Item, Shape]:
    ready = _READY.get(type(value))
    if ready is not None:
        return cast(Item, value), ready
    if isinstance(value, np.bool_):
        return bool(value), _BOOL
    if isinstance(value, int | np.integer):
        number = whole("a metadata number", value)
        return number, _INT if -EXACT_IN_FLOAT <= number <= EXACT_IN_FLOAT else _BIG_INT
    if isinstance(value, float | np.floating):
        return float(value), _FLOAT
    if isinstance(value, str):
        return str.__str__(value), _STRING  # a member of a text enum as its text
    if isinstance(value, tuple | list | np.ndarray):
        numbers = tuple(whole("an item of a metadata list", one) for one in value)
        return numbers, Shape(MetadataKind.INT_LIST, len(numbers))
    raise RecordError(
        f"a metadata value is a {type(value).__name__}", f": {key!r}, expected bool, int, float, str or a tuple of ints"
    )


def _common(key: str, one: Shape, other: Shape) -> Shape:
    if one == other:
        return one
    kinds = {one.kind, other.kind}
    if kinds == {MetadataKind.INT}:
        return _BIG_INT
    if kinds == {MetadataKind.INT, MetadataKind.FLOAT} and one.exact and other.exact:
        return _FLOAT
    found = " and ".join(f"{s.kind.name}{f' of length {s.width}' if s.width else ''}" for s in (one, other))
    raise MixedKindsError("metadata of two types under one key", f": {key!r} holds {found} in one batch")
