"""Batches laid end to end, what each record is to linking, and tables over ids that are nearly dense."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from devprof.model import ActivityBatch, ActivityType, Role

__all__ = [
    "LAUNCH",
    "OTHER",
    "SYNC",
    "WORK",
    "Bools",
    "Longs",
    "bounds_of",
    "classes_of",
    "codes_of",
    "codes_of_rows",
    "distinct",
    "longs",
    "on_device",
    "per_distinct",
    "split",
    "stitch",
]

Longs: TypeAlias = npt.NDArray[np.int64]
Bools: TypeAlias = npt.NDArray[np.bool_]
Array = TypeVar("Array", bound=np.generic)

OTHER, LAUNCH, WORK, SYNC = range(4)
"""What a record is to linking: a host call, work that occupies a device, a wait on a device, or none of them."""

_CLASS_OF_ROLE = {Role.LAUNCH: LAUNCH, Role.KERNEL: WORK, Role.COPY: WORK, Role.SET: WORK, Role.SYNC: SYNC}
_ON_HOST_ROLES = {Role.LAUNCH, Role.OP, Role.OVERHEAD}
_ON_HOST_TYPES = {
    ActivityType.USER_ANNOTATION,
    ActivityType.EXTERNAL_CORRELATION,
    ActivityType.CPU_INSTANT_EVENT,
    ActivityType.PYTHON_FUNCTION,
}


def _by_type(value: Callable[[ActivityType], int]) -> npt.NDArray[np.uint8]:
    table = np.zeros(256, dtype=np.uint8)
    for kind in ActivityType:
        table[kind] = value(kind)
    return table


_CLASSES = _by_type(lambda kind: _CLASS_OF_ROLE.get(kind.role, OTHER))
_ON_DEVICE = _by_type(lambda kind: kind.role not in _ON_HOST_ROLES and kind not in _ON_HOST_TYPES).astype(np.bool_)

_SPARSE = 8
"""A table over ids may have this many times more places than there are ids; beyond that, sorting is cheaper."""


def stitch(batches: Sequence[ActivityBatch], column: str) -> npt.NDArray[np.generic]:
    """Return one column of all batches, end to end; a single batch's own array is not copied."""
    arrays: list[npt.NDArray[np.generic]] = [getattr(batch, column) for batch in batches]
    if len(arrays) == 1:
        return arrays[0]
    return np.concatenate(arrays) if arrays else np.empty(0, dtype=np.int64)


def longs(batches: Sequence[ActivityBatch], column: str) -> Longs:
    """Return one int64 column of all batches, end to end."""
    return stitch(batches, column).astype(np.int64, copy=False)


def bounds_of(batches: Sequence[ActivityBatch]) -> tuple[int, ...]:
    """Return the first row of each batch, and behind them the number of rows."""
    return tuple(np.cumsum([0, *(len(batch) for batch in batches)]).tolist())


def split(array: npt.NDArray[Array], bounds: Sequence[int]) -> list[npt.NDArray[Array]]:
    """Cut an array over all rows into one view per batch."""
    return [array[begin:end] for begin, end in itertools.pairwise(bounds)]


def classes_of(batches: Sequence[ActivityBatch]) -> npt.NDArray[np.uint8]:
    """Return what each record is to linking: (n,) uint8, one of `OTHER`, `LAUNCH`, `WORK`, `SYNC`."""
    return _CLASSES[stitch(batches, "activity_type").astype(np.uint8, copy=False)]


def on_device(batches: Sequence[ActivityBatch]) -> Bools:
    """Return which records have their row on a device: (n,) bool."""
    return _ON_DEVICE[stitch(batches, "activity_type").astype(np.uint8, copy=False)]


def codes_of(values: Longs, *others: Longs) -> tuple[Longs, ...]:
    """Number values compactly, without sorting them where they are nearly dense.

    Args:
        values: (n,) int64.
        others: further arrays to number alike.

    Returns:
        Codes of each array, int64, from 0, equal where values are equal; a value of `others` that is not among `values` gets
        -1 or a code that none of `values` has. Codes are below ``8 * (n + 128)`` plus the lengths of `others`; not every code
        need occur.
    """
    if len(values) == 0:
        return (values, *(np.full(len(other), -1, dtype=np.int64) for other in others))
    low, high = int(values.min()), int(values.max())
    if high - low < _SPARSE * (len(values) + 128):
        return (values - low, *(_shifted(other, low, high) for other in others))
    return _ranked(values, *others)


def codes_of_rows(*columns: Longs) -> Longs:
    """Number the rows of some columns compactly: equal where all columns are; (n,) int64 from 0."""
    (found,) = codes_of(columns[0])
    for column in columns[1:]:
        (code,) = codes_of(column)
        (found,) = codes_of(found * (int(code.max(initial=0)) + 1) + code)
    return found


def distinct(values: Longs) -> Longs:
    """Return the distinct values, ascending, without sorting them where they are nearly dense."""
    (codes,) = codes_of(values)
    if len(codes) == 0:
        return codes
    value_of = np.zeros(int(codes.max()) + 1, dtype=np.int64)
    value_of[codes] = values
    occurs = np.zeros(len(value_of), dtype=np.bool_)
    occurs[codes] = True
    return value_of[occurs]


def per_distinct(values: Longs, ask: Callable[[Longs], Bools]) -> Bools:
    """Ask a question about each distinct value once.

    Args:
        values: (n,) int64.
        ask: takes distinct values, ascending, and answers each with a bool.

    Returns:
        (n,) bool.
    """
    if len(values) == 0:
        return np.zeros(0, dtype=np.bool_)
    some = distinct(values)
    codes, codes_of_some = codes_of(values, some)
    answers = np.zeros(int(codes.max()) + 1, dtype=np.bool_)
    answers[codes_of_some] = np.asarray(ask(some), dtype=np.bool_)
    return answers[codes]


def _shifted(values: Longs, low: int, high: int) -> Longs:
    if len(values) == 0 or (low <= int(values.min()) and int(values.max()) <= high):
        return values - low
    return np.where((values >= low) & (values <= high), values - low, -1)


def _ranked(values: Longs, *others: Longs) -> tuple[Longs, ...]:
    every = np.concatenate([values, *others])
    order = np.argsort(every)
    ordered = every[order]
    rank = np.concatenate([[0], np.cumsum(ordered[1:] != ordered[:-1])])
    codes = np.empty(len(every), dtype=np.int64)
    codes[order] = rank
    found, *rest = np.split(codes, np.cumsum([len(values), *map(len, others)])[:-1])
    occurs = np.zeros(int(rank[-1]) + 1, dtype=np.bool_)
    occurs[found] = True
    return (found, *(np.where(occurs[one], one, -1) for one in rest))
