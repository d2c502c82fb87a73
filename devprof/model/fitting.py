"""Fit an array to a column's dtype without changing a value."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["EXACT_IN_FLOAT", "fitted"]

EXACT_IN_FLOAT = 2**53
"""Greatest magnitude up to which every whole number is a float64."""


def fitted(what: str, given: npt.ArrayLike, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return `given` as a contiguous, read-only array of `dtype` that holds the same values.

    An array that is already so is not copied; the result is a view of it.

    Args:
        what: name of the column, for the message.
        given: numbers of any numeric dtype and any shape but ().
        dtype: dtype of the column.

    Raises:
        ValueError: it is not numeric, or a value would change.
    """
    array, target = np.asarray(given), np.dtype(dtype)
    if array.dtype != target:
        if array.size and not _same_values(array, target):
            raise ValueError(f"{what} does not fit {target}: it has dtype {array.dtype}{_extent(array)}")
        array = array.astype(target)
    # a copy where it is not contiguous; the view's flag leaves the owner's array writeable
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def _same_values(array: npt.NDArray[Any], target: np.dtype[Any]) -> bool:
    kind = array.dtype.kind
    if kind == "b":
        return True
    if kind == "f":
        return target.kind == "f" or (bool(np.all(np.trunc(array) == array)) and _inside(array, target))
    return kind in "iu" and _inside(array, target)


def _inside(array: npt.NDArray[Any], target: np.dtype[Any]) -> bool:
    # as Python's numbers: numpy would compare int64 and uint64 or float64 inexactly
    if target.kind == "f":
        bounds = -EXACT_IN_FLOAT, EXACT_IN_FLOAT
    elif target.kind == "b":
        bounds = 0, 1
    else:
        bounds = int(np.iinfo(target).min), int(np.iinfo(target).max)
    return bool(array.min().item() >= bounds[0] and array.max().item() <= bounds[1])


def _extent(array: npt.NDArray[Any]) -> str:
    return f" and values from {array.min()} to {array.max()}" if array.dtype.kind in "iuf" else ""
