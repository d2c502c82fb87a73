"""Values of args as typed items."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from marshal import dumps
from typing import Any

import numpy as np
import numpy.typing as npt

from devprof.store.items import ItemKind
from devprof.store.readers.gathering import EventTable
from devprof.store.readers.json_chunks import Literal, TypedValues, canonical, loads_or_text

__all__ = ["LISTS", "spread", "typed_values"]

_WITHOUT_REFERENCES = 2  # version of `marshal`: what it writes depends on the value alone

LISTS = frozenset({"block", "grid", "cluster"})
"""Keys whose values are lists, each of as many whole numbers."""


def typed_values(key: str, values: Sequence[Any], table: EventTable) -> Iterator[TypedValues]:
    """Yield the values of a key by type; one that is None is left out.

    Args:
        key: the key.
        values: whole numbers, floats, texts, truth values, None, lists, objects, or JSON text in bytes-like objects.
        table: where texts get their numbers.
    """
    kinds = set(map(type, values))
    if len(kinds) == 1:
        yield from _of_one_type(key, kinds.pop(), values, np.arange(len(values)), table)
        return
    for kind in sorted(kinds, key=lambda one: one.__name__):
        at = [position for position, value in enumerate(values) if type(value) is kind]
        yield from _of_one_type(key, kind, [values[position] for position in at], np.array(at, dtype=np.int64), table)


def _of_one_type(
    key: str, kind: type, values: Sequence[Any], at: npt.NDArray[np.int64], table: EventTable
) -> Iterator[TypedValues]:
    if kind is int:
        yield from _integers(values, at, table)
    elif kind in (float, Literal):
        yield TypedValues(at, ItemKind.FLOAT, np.array(values, dtype=np.float64))
    elif kind is bool:
        yield TypedValues(at, ItemKind.BOOL, np.array(values, dtype=np.uint8))
    elif kind is str:
        yield TypedValues(at, ItemKind.STRING, table.texts(values))
    elif kind in (list, dict):
        yield from _nested(key, values, at, table)
    elif kind is not type(None):
        yield from _written(key, values, at, table)


def _integers(values: Sequence[int], at: npt.NDArray[np.int64], table: EventTable) -> Iterator[TypedValues]:
    try:
        yield TypedValues(at, ItemKind.INT, np.array(values, dtype=np.int64))
    except OverflowError:
        fits = np.array([-(2**63) <= value < 2**63 for value in values], dtype=np.bool_)
        small = [value for value, fit in zip(values, fits.tolist(), strict=True) if fit]
        large = [canonical(value) for value, fit in zip(values, fits.tolist(), strict=True) if not fit]
        yield TypedValues(at[fits], ItemKind.INT, np.array(small, dtype=np.int64))
        yield TypedValues(at[~fits], ItemKind.JSON, table.texts(large))


def _nested(key: str, values: Sequence[Any], at: npt.NDArray[np.int64], table: EventTable) -> Iterator[TypedValues]:
    distinct, which = _distinct(values)
    lists = _as_numbers(distinct) if key in LISTS else None
    if lists is not None:
        yield TypedValues(at, ItemKind.INT_LIST, lists[which])
    else:
        yield TypedValues(at, ItemKind.JSON, table.texts(list(map(canonical, distinct)))[which])


def _distinct(values: Sequence[Any]) -> tuple[list[Any], npt.NDArray[np.int64]]:
    """Return values that differ as they are written, and which of them each value is; some may be there twice."""
    written: list[Any]
    try:
        written = [dumps(value, _WITHOUT_REFERENCES) for value in values]  # several times faster than repr()
    except ValueError:  # of a number with its text, or nested too deeply
        try:
            written = list(map(repr, values))
        except RecursionError:
            return list(values), np.arange(len(values))
    number = {text: at for at, text in enumerate(dict.fromkeys(written))}
    which = np.fromiter(map(number.__getitem__, written), np.int64, len(written))
    return list(dict(zip(written, values, strict=True)).values()), which


def _as_numbers(values: Sequence[Any]) -> npt.NDArray[np.int64] | None:
    if not all(isinstance(value, list) and value for value in values):
        return None
    if len(set(map(len, values))) != 1 or not all(type(one) is int for value in values for one in value):
        return None
    try:
        return np.array(values, dtype=np.int64)
    except OverflowError:
        return None


def _written(key: str, values: Sequence[Any], at: npt.NDArray[np.int64], table: EventTable) -> Iterator[TypedValues]:
    """Yield values that come as JSON text: each different text is looked at once."""
    texts = list(map(bytes, values))
    number = {text: position for position, text in enumerate(dict.fromkeys(texts))}
    which = np.fromiter(map(number.__getitem__, texts), np.int64, len(texts))
    yield from spread(typed_values(key, [loads_or_text(text) for text in number], table), which, at)


def spread(
    found: Iterable[TypedValues], which: npt.NDArray[np.int64], at: npt.NDArray[np.int64]
) -> Iterator[TypedValues]:
    """Yield the values of m places, given those of the different ones among them.

    Args:
        found: the different values, by type.
        which: (m,) which of them each place has.
        at: (m,) the places.
    """
    for part in found:
        place = np.full(int(which.max(initial=-1)) + 1, -1, dtype=np.int64)
        place[part.at] = np.arange(len(part.at))
        there = np.flatnonzero(place[which] >= 0)
        yield TypedValues(at[there], part.kind, part.values[place[which[there]]])
