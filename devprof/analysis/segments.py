"""Sorting, sums and running maxima within groups, for all groups at once: ten thousand streams cost what one does.

The groups' numbers are lifted apart, each group by the width of all of them, so that one sort or one pass keeps to groups.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from devprof.analysis.columns import Bools, Longs, stable_order

__all__ = ["apart", "begins", "order_within", "run_sums", "running_max", "sorted_within"]

_ROOM = 2**63
Groups = npt.NDArray[np.integer[Any]]


def begins(group: Groups) -> Bools:
    """Return which values are the first of their group: (n,) bool, for groups whose values stand together."""
    first = np.ones(len(group), dtype=np.bool_)
    np.not_equal(group[1:], group[:-1], out=first[1:])
    return first


def order_within(group: Groups, values: Longs, n_groups: int) -> Longs:
    """Return the order that sorts by group and then by value, equal ones as they stand.

    Args:
        group: (n,), 0 to `n_groups` - 1.
        values: (n,) int64.
        n_groups: how many groups there may be.
    """
    order = stable_order(group, n_groups)
    lifted, _ = _lifted(group[order], values[order], n_groups)
    if lifted is None:
        return np.lexsort((values, group))
    # what comes nearly in order is sorted several times faster by numpy's stable sort
    return order if (lifted[1:] >= lifted[:-1]).all() else order[np.argsort(lifted, kind="stable")]


def sorted_within(group: Groups, values: Longs, n_groups: int) -> Longs:
    """Return the values sorted by group and then by value; see `order_within`."""
    lifted, shift = _lifted(group, values, n_groups)
    if lifted is None:
        return values[np.lexsort((values, group))]
    lifted.sort()
    lifted -= np.repeat(shift, np.bincount(group, minlength=n_groups))
    return lifted


def running_max(group: Groups, values: Longs, n_groups: int) -> Longs:
    """Return the greatest value so far in each group: (n,) int64, for groups that ascend."""
    lifted, shift = _lifted(group, values, n_groups)
    if lifted is not None:
        np.maximum.accumulate(lifted, out=lifted)
        lifted -= shift[group]
        return lifted
    parts = np.split(values, np.flatnonzero(begins(group))[1:])
    return np.concatenate([np.maximum.accumulate(part) for part in parts])


def run_sums(values: Longs, bounds: Longs) -> Longs:
    """Return the sum of each run of values, exact: (k,) int64.

    Args:
        values: (n,) int64.
        bounds: (k + 1,), where each run begins, and where the last one ends.
    """
    sums = np.zeros(len(bounds) - 1, dtype=np.int64)
    some = bounds[1:] > bounds[:-1]
    if some.any():
        sums[some] = np.add.reduceat(values, bounds[:-1][some])
    return sums


def apart(low: int, high: int, n_groups: int, factor: int = 1) -> Longs | None:
    """Return by how much to lift each group's values, so that those of each lie above those before it, from 0 on: (n_groups,).

    Args:
        low, high: least and greatest of the values.
        n_groups: how many groups there may be.
        factor: what the lifted values are to be multiplied by.

    Returns:
        None where there is no room for that in 63 bits.
    """
    width = high - low + 1
    return np.arange(n_groups) * width - low if width * n_groups * factor < _ROOM else None


def _lifted(group: Groups, values: Longs, n_groups: int) -> tuple[Longs | None, Longs]:
    """Return the lifted values, None where there is no room, and by how much each group was lifted."""
    low, high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
    shift = apart(low, high, n_groups)
    if shift is None:
        return None, np.empty(0, dtype=np.int64)
    lifted: Longs = shift[group]
    lifted += values
    return lifted, shift
