"""`UserParents`: which user range encloses which, as columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from devprof.link.columns import Longs
from devprof.link.id_table import IdTable

__all__ = ["UserParents"]


class UserParents(Mapping[int, int]):
    """Enclosing user range of each user range: a mapping for `link`, without a Python object per range.

    Args:
        ids: (n,) int64, id of each user range, each once and none of them 0.
        parents: (n,) int64, id of the user range around it, 0: none.
    """

    def __init__(self, ids: Longs, parents: Longs) -> None:
        self._ids, self._parents, self._table = ids, parents, IdTable(ids)

    def __getitem__(self, user: int) -> int:
        at = int(self._table.find(np.array([user]))[0])
        if at < 0:
            raise KeyError(user)
        return int(self._parents[at])

    def __iter__(self) -> Iterator[int]:
        return iter(self._ids.tolist())

    def __len__(self) -> int:
        return len(self._ids)

    def knows(self, users: Longs) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Say which ids are those of a user range: (m,) bool."""
        return self._table.find(users) >= 0

    def with_ancestors(self, users: Longs) -> tuple[Longs, Longs]:
        """Return user ranges and everything around them.

        Args:
            users: (m,) int64, distinct ids, none of them 0; those of no range here have nothing around them.

        Returns:
            Ids, ascending, and for each the id of the range around it, 0: none; (k,) int64 each.
        """
        above = self._table.find(self._parents)
        reached = np.zeros(len(self), dtype=np.bool_)
        at = self._table.find(users)
        strangers, frontier = [users[at < 0]], at[at >= 0]
        while len(frontier):
            reached[frontier] = True
            outer = above[frontier]
            around = self._parents[frontier[outer < 0]]
            strangers.append(around[around != 0])
            outer = outer[outer >= 0]
            frontier = np.unique(outer[~reached[outer]])
        own, foreign = np.flatnonzero(reached), np.unique(np.concatenate(strangers))
        ids = np.concatenate([self._ids[own], foreign])
        parents = np.concatenate([self._parents[own], np.zeros(len(foreign), dtype=np.int64)])
        order = np.argsort(ids)
        return ids[order], parents[order]
