"""Columns of several traces, one behind the other, one column at a time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from devprof.model.fitting import EXACT_IN_FLOAT
from devprof.model.interning import Interner
from devprof.pipeline.ranks.numbers import ITEM_SPACES, LAUNCHES, OPS, Renumbering, renumbers_op
from devprof.store import COLUMNS, ItemColumn, ItemKind, RawJson, Trace

__all__ = ["Allocate", "Part", "joined_columns", "joined_items"]

Allocate = Callable[[tuple[int, ...], npt.DTypeLike], npt.NDArray[Any]]
"""Gives an array of a shape and dtype to be filled: in memory, or mapped to a file."""

_TEXTS = (ItemKind.STRING, ItemKind.JSON)
_DTYPES: dict[ItemKind, npt.DTypeLike] = {
    ItemKind.INT: np.int64,
    ItemKind.FLOAT: np.float64,
    ItemKind.BOOL: np.uint8,
    ItemKind.STRING: np.int32,
    ItemKind.INT_LIST: np.int64,
    ItemKind.JSON: np.int32,
}


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """One trace on its way into a merged one.

    Attributes:
        trace: the trace.
        first: index of its first event in the merged trace.
        texts: (its strings,) int32, the new number of each.
        row_of: (its rows,) int32, the new index of each.
        shift_ns: what is added to its times.
        moves: how its numbers move, by space.
    """

    trace: Trace
    first: int
    texts: npt.NDArray[np.int32]
    row_of: npt.NDArray[np.int32]
    shift_ns: int
    moves: Mapping[str, Renumbering]


def joined_columns(parts: Sequence[Part], allocate: Allocate) -> dict[str, npt.NDArray[Any]]:
    """Return the fixed columns of the merged trace."""
    n = sum(len(part.trace) for part in parts)
    return {
        key: _filled(allocate((n,), dtype), (_column(part, key) for part in parts)) for key, dtype in COLUMNS.items()
    }


def joined_items(parts: Sequence[Part], which: str, texts: Interner, allocate: Allocate) -> dict[str, ItemColumn]:
    """Return the item columns of the merged trace. A key that has two types in two traces becomes JSON.

    Args:
        parts: the traces.
        which: ``"items"`` or ``"counters"``.
        texts: the merged trace's texts; JSON may add some.
        allocate: gives the arrays.
    """
    tables: list[Mapping[str, ItemColumn]] = [getattr(part.trace, which) for part in parts]
    joined = {}
    for key in dict.fromkeys(key for table in tables for key in table):
        having = [(part, table[key]) for part, table in zip(parts, tables, strict=True) if key in table]
        having = [(part, column) for part, column in having if len(column)]
        if having:
            joined[key] = _joined(key, having, texts, allocate)
    return joined


def _column(part: Part, key: str) -> npt.NDArray[Any]:
    trace = part.trace
    match key:
        case "name":
            return part.texts[trace.name] if len(trace) else trace.name
        case "row":
            return part.row_of[trace.row] if len(trace) else trace.row
        case "parent":
            return np.where(trace.parent >= 0, trace.parent + np.int64(part.first), -1)
        case "start_ns" | "end_ns":
            times: npt.NDArray[Any] = getattr(trace, key)
            return times + part.shift_ns if part.shift_ns else times
        case "id":
            op, launch = part.moves[OPS].of_column(trace.id), part.moves[LAUNCHES].of_column(trace.id)
            return np.where(renumbers_op[trace.activity_type], op, launch)
        case "linked" | "linked_user":
            return part.moves[OPS].of_column(getattr(trace, key))
        case "flow_id":
            return part.moves[LAUNCHES].of_column(trace.flow_id)
    return getattr(trace, key)  # type: ignore[no-any-return]  # a column, by its name


def _filled(target: npt.NDArray[Any], parts: Iterator[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    at = 0
    for part in parts:
        target[at : at + len(part)] = part
        at += len(part)
    return target


def _joined(key: str, having: Sequence[tuple[Part, ItemColumn]], texts: Interner, allocate: Allocate) -> ItemColumn:
    kind, width = _common([column for _, column in having])
    n = sum(len(column) for _, column in having)
    events = _filled(allocate((n,), np.int64), (column.events + part.first for part, column in having))
    values = allocate((n, *width), _DTYPES[kind])
    return ItemColumn(kind, events, _filled(values, (_values(key, *one, texts, kind) for one in having)))


def _common(columns: Sequence[ItemColumn]) -> tuple[ItemKind, tuple[int, ...]]:
    """Return a kind that all columns of a key fit, and the shape of a value."""
    shapes = {(column.kind, column.values.shape[1:]) for column in columns}
    if len(shapes) == 1:
        return shapes.pop()
    if {kind for kind, _ in shapes} == {ItemKind.INT, ItemKind.FLOAT} and all(map(_fits_float, columns)):
        return ItemKind.FLOAT, ()
    return ItemKind.JSON, ()


def _values(key: str, part: Part, column: ItemColumn, texts: Interner, wanted: ItemKind) -> npt.NDArray[Any]:
    """Return the values of one trace's column as the merged one holds them."""
    if column.kind is ItemKind.INT and key in ITEM_SPACES:
        moved = part.moves[ITEM_SPACES[key]].of_items(column.values)
        column = ItemColumn(column.kind, column.events, moved)
    if wanted is ItemKind.JSON and column.kind is not ItemKind.JSON:
        return _as_json(column, part.trace.strings, texts)
    return part.texts[column.values] if column.kind in _TEXTS else column.values


def _as_json(column: ItemColumn, strings: Sequence[str], texts: Interner) -> npt.NDArray[np.int32]:
    distinct, which = np.unique(column.values, axis=0, return_inverse=True)
    values = ItemColumn(column.kind, np.arange(len(distinct)), distinct)
    numbers = [texts.index(_json(values.value(at, strings))) for at in range(len(distinct))]
    return np.array(numbers, dtype=np.int32)[which.reshape(-1)]


def _json(value: object) -> str:
    if isinstance(value, RawJson):
        return str(value)
    if isinstance(value, float) and not np.isfinite(value):
        value = str(value)
    return json.dumps(value)


def _fits_float(column: ItemColumn) -> bool:
    return column.kind is ItemKind.FLOAT or bool((np.abs(column.values) <= EXACT_IN_FLOAT).all())
