"""`IdTable`: from ids to the place where they stand, for many ids at once."""

from __future__ import annotations

import numpy as np

from devprof.link.columns import Longs

__all__ = ["IdTable"]

_SPARSE = 8
"""A table may have this many times more places than there are ids; beyond that, a search in the sorted ids is smaller."""


class IdTable:
    """Ids, each once and none of them 0, and where each stands. Ids that are nearly dense are looked up in one step.

    Args:
        ids: (n,) int64; 0 is no id and is never found.
    """

    def __init__(self, ids: Longs) -> None:
        places = np.flatnonzero(ids)
        ids = ids[places]
        self._low, high = (int(ids.min()), int(ids.max())) if len(ids) else (0, -1)
        self._dense = high - self._low < _SPARSE * (len(ids) + 128)
        if self._dense:
            # one place more than there are ids, where all others are sent to
            self._table = np.full(high - self._low + 2, -1, dtype=np.int64)
            self._table[ids - self._low] = places
        else:
            order = np.argsort(ids, kind="stable")
            self._ids, self._table = ids[order], places[order]

    def find(self, ids: Longs) -> Longs:
        """Return where each id stands, -1: nowhere.

        Args:
            ids: (m,) int64, any numbers.

        Returns:
            (m,) int64, positions in the ids that the table was made of.
        """
        if self._dense:
            # as unsigned numbers, what is too low is too high as well
            since = (ids - np.int64(self._low)).view(np.uint64)
            return self._table[np.minimum(since, np.uint64(len(self._table) - 1)).view(np.int64)]
        at = np.minimum(np.searchsorted(self._ids, ids), len(self._ids) - 1)
        return np.where(self._ids[at] == ids, self._table[at], -1)
