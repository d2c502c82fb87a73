"""Intervals per (user range, place): from single records to the ranges that enclose them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from devprof.link.columns import Longs, codes_of, distinct
from devprof.link.user_parents import UserParents

__all__ = ["Ancestry", "Spans", "ancestry_of", "spans_of_work", "with_enclosing"]

_DENSE = 8
"""Grouping by a table is faster than sorting while the table has at most this many places per row."""


@dataclass(frozen=True, slots=True, eq=False)
class Spans:
    """Intervals, each of one user range on one place.

    Attributes:
        user: (n,) int64, index into `Ancestry.ids`.
        place: (n,) int64, code of the (device, resource).
        start: (n,) int64, ns.
        end: (n,) int64, ns.
    """

    user: Longs
    place: Longs
    start: Longs
    end: Longs

    def __len__(self) -> int:
        return len(self.user)


@dataclass(frozen=True, slots=True, eq=False)
class Ancestry:
    """User ranges and what encloses them.

    Attributes:
        ids: (n,) int64, ascending: ranges with work, and every range around them.
        parent: (n,) int64, index of the enclosing range, -1: none.
        depth: (n,) int64, 0 for a range that nothing encloses.
    """

    ids: Longs
    parent: Longs
    depth: Longs


def ancestry_of(users: Longs, user_parents: Mapping[int, int]) -> Ancestry:
    """Follow ranges outwards; where the mapping goes in a circle, the circle is cut.

    Args:
        users: (n,) int64, distinct user ids that have work, none of them 0.
        user_parents: enclosing user range of each user id, 0 or absent: none.
    """
    ids, around = _with_ancestors(users, user_parents)
    parent = np.where(around == 0, -1, np.searchsorted(ids, around))
    depth, beyond = _climb(parent)
    if (beyond >= 0).any():
        parent[beyond[beyond >= 0]] = -1
        depth, _ = _climb(parent)
    return Ancestry(ids, parent, depth)


def _with_ancestors(users: Longs, user_parents: Mapping[int, int]) -> tuple[Longs, Longs]:
    if isinstance(user_parents, UserParents):
        return user_parents.with_ancestors(users)
    parent_of: dict[int, int] = {}
    frontier: Iterable[int] = users.tolist()
    while frontier:
        found = {user: int(user_parents.get(user, 0)) for user in frontier}
        parent_of |= found
        frontier = set(found.values()) - parent_of.keys() - {0}
    ids = np.array(sorted(parent_of), dtype=np.int64)
    return ids, np.array([parent_of[user] for user in ids.tolist()], dtype=np.int64)


def _climb(parent: Longs) -> tuple[Longs, Longs]:
    """Count how many ranges are around each one, in steps of 1, 2, 4, ... ranges at once.

    Returns:
        The counts, and where the climb is after more steps than there are ranges: -1, or in a circle.
    """
    depth, there = (parent >= 0).astype(np.int64), parent
    for _ in range(len(parent).bit_length()):
        if not (there >= 0).any():
            break
        depth = depth + np.where(there >= 0, depth[there], 0)
        there = np.where(there >= 0, there[there], -1)
    return depth, there


def spans_of_work(
    user: Longs, place: Longs, start: Longs, end: Longs, user_parents: Mapping[int, int]
) -> tuple[Spans, Ancestry]:
    """Reduce records to one interval per (user range, place), from the first start to the last end.

    Args:
        user: (n,) int64, user id of each record, none of them 0.
        place: (n,) int64, code of its (device, resource).
        start: (n,) int64, ns.
        end: (n,) int64, ns, not before `start`.
        user_parents: enclosing user range of each user id, 0 or absent: none.
    """
    # records come in runs of one range on one stream; what follows then works on runs
    changes = (user[1:] != user[:-1]) | (place[1:] != place[:-1])
    heads = np.concatenate([[0], np.flatnonzero(changes) + 1])
    user, place = user[heads], place[heads]
    start, end = np.minimum.reduceat(start, heads), np.maximum.reduceat(end, heads)
    ancestry = ancestry_of(distinct(user), user_parents)
    codes, ids = codes_of(user, ancestry.ids)
    index_of_code = np.zeros(int(codes.max()) + 1, dtype=np.int64)
    index_of_code[ids[ids >= 0]] = np.flatnonzero(ids >= 0)
    return _grouped(Spans(index_of_code[codes], place, start, end)), ancestry


def with_enclosing(spans: Spans, ancestry: Ancestry) -> Spans:
    """Add to each span those of the ranges around it, on the same place."""
    levels = [spans]
    while True:
        inner = levels[-1]
        parent = ancestry.parent[inner.user]
        up = parent >= 0
        if not up.any():
            break
        levels.append(_grouped(Spans(parent[up], inner.place[up], inner.start[up], inner.end[up])))
    if len(levels) == 1:
        return spans
    columns = ("user", "place", "start", "end")
    return _grouped(Spans(*(np.concatenate([getattr(level, column) for level in levels]) for column in columns)))


def _grouped(spans: Spans) -> Spans:
    """Merge the spans of each (user, place)."""
    n_places = int(spans.place.max()) + 1
    key = spans.user * n_places + spans.place
    n_keys = int(key.max()) + 1
    if n_keys < _DENSE * (len(key) + 128):
        first = np.full(n_keys, np.iinfo(np.int64).max)
        last = np.full(n_keys, np.iinfo(np.int64).min)
        np.minimum.at(first, key, spans.start)
        np.maximum.at(last, key, spans.end)
        found = np.flatnonzero(first <= last)
        return Spans(found // n_places, found % n_places, first[found], last[found])
    order = np.argsort(key, kind="stable")
    heads = np.concatenate([[0], np.flatnonzero(np.diff(key[order])) + 1])
    found = key[order[heads]]
    first = np.minimum.reduceat(spans.start[order], heads)
    last = np.maximum.reduceat(spans.end[order], heads)
    return Spans(found // n_places, found % n_places, first, last)
