"""The columns of a batch: their dtypes, and the checks that make any batch a right one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from devprof.model.activity import MetadataValue
from devprof.model.fitting import fitted
from devprof.model.metadata import MetadataColumn, MetadataKind

__all__ = ["COLUMNS", "check_indices", "fixed_column", "metadata_table", "repeated", "text_table", "value_at"]

COLUMNS: dict[str, npt.DTypeLike] = {
    "activity_type": np.uint8,
    "name": np.int32,
    "start": np.int64,
    "end": np.int64,
    "id": np.int64,
    "device": np.int32,
    "resource": np.int64,
    "thread_id": np.int64,
    "linked": np.int64,
    "linked_user": np.int64,
    "flow_id": np.int64,
    "flow_type": np.uint8,
    "flow_start": np.uint8,
}
"""Dtype of every fixed column, by name."""


def repeated(given: npt.ArrayLike, n: int) -> npt.NDArray[Any]:
    """Return an array, a scalar repeated `n` times."""
    array = np.asarray(given)
    return np.full(n, array) if array.ndim == 0 else array


def fixed_column(key: str, given: npt.ArrayLike, n: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return a column of length `n` and its dtype; ValueError where `given` is not one."""
    array = np.asarray(given)
    if array.shape != (n,):
        raise ValueError(f"column {key!r} has shape {array.shape}, expected ({n},)")
    return fitted(f"column {key!r}", array, dtype)


def text_table(strings: Sequence[str]) -> tuple[str, ...]:
    """Return the texts as plain `str`; ValueError where one is no text."""
    texts = tuple(strings)
    kinds = set(map(type, texts))
    if kinds <= {str}:
        return texts
    if not all(issubclass(kind, str) for kind in kinds):
        raise ValueError(f"the string table holds {', '.join(sorted(k.__name__ for k in kinds))}; expected text only")
    return tuple(str.__str__(text) for text in texts)  # numpy's texts, text enums


def metadata_table(
    what: str, columns: Mapping[str, MetadataColumn], n: int, n_strings: int
) -> dict[str, MetadataColumn]:
    """Check typed columns of length `n`, and return them in a dict of their own."""
    for key, column in columns.items():
        if not isinstance(key, str) or not isinstance(column, MetadataColumn):
            raise ValueError(f"{what} {key!r} is a {type(column).__name__}, expected a MetadataColumn under a text")
        if len(column) != n:
            raise ValueError(f"{what} column {key!r} has {len(column)} rows, expected {n}")
        if column.kind is MetadataKind.STRING:
            check_indices(f"{what} column {key!r}", column.values, n_strings)
    return dict(columns)


def check_indices(what: str, values: npt.NDArray[Any], n_strings: int) -> None:
    """Refuse indices outside a string table of `n_strings` texts."""
    if values.size and (values.min() < 0 or values.max() >= n_strings):
        raise ValueError(
            f"{what} indexes outside the string table: {values.min()}..{values.max()}, table has {n_strings} text(s)"
        )


def value_at(column: MetadataColumn, row: int, strings: Sequence[str]) -> MetadataValue:
    """Return the value in one row as an object."""
    value: Any = column.values[row]
    match column.kind:
        case MetadataKind.STRING:
            return strings[int(value)]
        case MetadataKind.INT_LIST:
            return tuple(int(v) for v in value)
        case MetadataKind.BOOL:
            return bool(value)
        case MetadataKind.FLOAT:
            return float(value)
        case MetadataKind.INT:
            return int(value)
