"""Records that were delivered twice. They would count an op's device time twice, so the second one does not stay."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from devprof.link.columns import Bools, Longs, bounds_of, longs, split
from devprof.link.join import LaunchJoin
from devprof.link.overlaps import RowOverlaps
from devprof.model import ActivityBatch

__all__ = ["duplicates", "may_hold_duplicates"]

_COLUMNS = ("id", "activity_type", "device", "resource", "thread_id", "start", "end")


def may_hold_duplicates(join: LaunchJoin, overlaps: RowOverlaps) -> bool:
    """Say whether it is worth looking: a second copy overlaps the first on its row, or is a second launch of its number."""
    return bool(overlaps.n_overrun or join.n_shared)


def duplicates(batches: Sequence[ActivityBatch]) -> tuple[Bools, ...]:
    """Say which records repeat an earlier one: same number, kind, place, times and name.

    Records without a number are left alone, since nothing says that they are not two.

    Args:
        batches: all batches of one plugin in one session, on one clock.

    Returns:
        Per batch, (n,) bool.
    """
    bounds = bounds_of(batches)
    repeated = np.zeros(bounds[-1], dtype=np.bool_)
    rows = np.flatnonzero(longs(batches, "id"))
    columns = [*(longs(batches, name)[rows] for name in _COLUMNS), _names(batches)[rows]]
    order = np.lexsort(columns)  # stable, so of equal records the earliest comes first
    same = np.ones(max(len(rows) - 1, 0), dtype=np.bool_)
    for column in columns:
        same &= column[order][1:] == column[order][:-1]
    repeated[rows[order[1:]][same]] = True
    return tuple(split(repeated, bounds))


def _names(batches: Sequence[ActivityBatch]) -> Longs:
    """Number the records' names over all batches, whose tables of strings differ."""
    numbers: dict[str, int] = {}
    parts = [np.empty(0, dtype=np.int64)]
    for batch in batches:
        table = np.array([numbers.setdefault(text, len(numbers)) for text in batch.strings], dtype=np.int64)
        parts.append(table[batch.name])
    return np.concatenate(parts)
