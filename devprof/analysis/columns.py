"""Small questions to whole columns that several modules here ask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["Bools", "IdIndex", "Longs", "combined", "compact", "distinct", "stable_order", "sums"]

Longs: TypeAlias = npt.NDArray[np.int64]
Bools: TypeAlias = npt.NDArray[np.bool_]

_DENSE = 8
"""A table over numbers may have this many times more places than there are numbers; beyond that, sorting is cheaper."""

_LOW_BITS = 16


def stable_order(numbers: npt.NDArray[np.integer[Any]], top: int) -> Longs:
    """Return the order that sorts small numbers, equal ones as they stand: numpy sorts 16 bits by radix.

    Args:
        numbers: (n,), 0 to `top`.
        top: greatest number that may occur, below 2**32.
    """
    if top < 1 << _LOW_BITS:
        return np.argsort(numbers.astype(np.uint16), kind="stable")
    low = np.argsort((numbers & 0xFFFF).astype(np.uint16), kind="stable")
    return low[np.argsort((numbers[low] >> _LOW_BITS).astype(np.uint16), kind="stable")]


def compact(codes: npt.NDArray[np.integer[Any]], top: int) -> tuple[Longs, int]:
    """Number the codes that occur from 0 on, without gaps.

    Args:
        codes: (n,), 0 to `top` - 1.
        top: how many codes there may be.

    Returns:
        The (n,) numbers, and how many there are.
    """
    if top > _DENSE * (len(codes) + 128):
        distinct, numbers = np.unique(codes, return_inverse=True)
        return numbers.astype(np.int64), len(distinct)
    occurs = np.zeros(top, dtype=np.bool_)
    occurs[codes] = True
    rank = np.cumsum(occurs) - 1
    return rank[codes], int(rank[-1]) + 1 if top else 0


def distinct(numbers: npt.NDArray[np.integer[Any]], top: int) -> tuple[Longs, Longs]:
    """Return the numbers that occur, ascending, and where each of the given ones stands among them.

    Args:
        numbers: (n,), -1 to `top` - 1.
        top: how many numbers there may be, beside -1.
    """
    occurs = np.zeros(top + 1, dtype=np.bool_)
    occurs[numbers] = True  # -1 is the last one
    found = np.flatnonzero(occurs[:-1])
    place = np.empty(top + 1, dtype=np.int64)
    place[found] = np.arange(len(found)) + bool(occurs[-1])
    place[-1] = 0
    return np.concatenate([np.full(int(occurs[-1]), -1), found]), place[numbers]


def combined(parts: Sequence[tuple[npt.NDArray[np.integer[Any]], int]], n: int) -> tuple[Longs, int]:
    """Number the combinations of several codes.

    Args:
        parts: codes (n,) and how many there may be, each.
        n: length of every part.

    Returns:
        The (n,) numbers of the combinations, and how many there may be; of a single part, its own.
    """
    (first, count), *others = parts or [(np.zeros(n, dtype=np.int64), min(n, 1))]
    codes: Longs = first.astype(np.int64, copy=False)
    for part, top in others:
        codes, count = compact(codes * top + part, count * top)
    return codes, count


def sums(codes: Longs, values: npt.NDArray[np.integer[Any]], count: int) -> Longs:
    """Add up whole numbers by code, exactly where the sums of their sizes stay below 2**53 (104 days of ns, 9 PB).

    Args:
        codes: (n,), 0 to `count` - 1.
        values: (n,).
        count: how many codes there are.

    Returns:
        (count,) int64.
    """
    return np.bincount(codes, weights=values, minlength=count).astype(np.int64)


class IdIndex:
    """Finds positions by id. Of equal ids the first is found; id 0 is never found."""

    def __init__(self, ids: Longs) -> None:
        """Take ids: (n,) int64; their index is what is found."""
        there = np.flatnonzero(ids != 0)
        found = ids[there]
        self._low = int(found.min()) if len(found) else 0
        width = int(found.max()) - self._low + 1 if len(found) else 0
        self._table: Longs | None = None
        if width <= _DENSE * (len(found) + 128):
            self._table = np.full(width + 1, -1, dtype=np.int64)  # the last place is where ids outside lead
            self._table[found[::-1] - self._low] = there[::-1]
        else:
            order = np.argsort(found, kind="stable")
            self._ids, self._at = found[order], there[order]

    def find(self, ids: Longs) -> Longs:
        """Return the position of each id, -1: none."""
        if self._table is not None:
            place = (ids - self._low).view(np.uint64)  # what is below the lowest is far above the highest
            return self._table.take(np.minimum(place, len(self._table) - 1).view(np.int64))
        at = np.minimum(np.searchsorted(self._ids, ids), len(self._ids) - 1)
        return np.where((self._ids[at] == ids) & (ids != 0), self._at[at], -1)
