"""Arrows of a Chrome trace: which slice each of their ends stands on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from devprof.store.readers.json_times import whole_number

__all__ = ["Flows"]

Longs = npt.NDArray[np.int64]

_FIRST_NAMED = 2**40
"""Numbers from here on stand for arrows whose id is text."""


class Flows:
    """Collects ends of arrows, and finds the slice of each at the end."""

    def __init__(self) -> None:
        self._parts: list[tuple[Longs, ...]] = []
        self._named: dict[str, int] = {}

    def add(self, ids: Sequence[Any], types: Longs, starts: Longs, track: Longs, ns: Longs, before: Longs) -> None:
        """Add m ends of arrows.

        Args:
            ids: their ids as the file writes them.
            types: (m,) their types, 0: not one of Kineto's.
            starts: (m,) 1 where the arrow leaves, else 0.
            track: (m,) the track that they are on.
            ns: (m,) their times.
            before: (m,) index of the last event in front of them in the file, -1: none.
        """
        self._parts.append((self._numbers(ids), types, starts, track, ns, before))

    def attach(
        self, track: Longs, start_ns: Longs, slices: npt.NDArray[np.bool_], left_out: Counter[str]
    ) -> dict[str, npt.NDArray[Any]]:
        """Return the flow columns of n events; an event has one end of an arrow at most.

        An end belongs to the slice of its track that starts at its time; Kineto writes it right behind that.

        Args:
            track: (n,) the track of each event.
            start_ns: (n,) its start.
            slices: (n,) whether it is one that an arrow may stand on.
            left_out: where ends that find no slice are counted.
        """
        n = len(track)
        columns: dict[str, npt.NDArray[Any]] = {
            "flow_id": np.zeros(n, dtype=np.int64),
            "flow_type": np.zeros(n, dtype=np.uint8),
            "flow_start": np.zeros(n, dtype=np.uint8),
        }
        if not self._parts:
            return columns
        ids, types, starts, at_track, ns, before = (np.concatenate(part) for part in zip(*self._parts, strict=True))
        if odd := int((types == 0).sum()):
            left_out["end of an arrow of a kind that is not Kineto's"] += odd
        where = _behind(before, at_track, ns, track, start_ns, slices)
        loose = np.flatnonzero((where < 0) & (types != 0))
        where[loose] = _starting_there(at_track[loose], ns[loose], track, start_ns, slices)
        found = np.flatnonzero((where >= 0) & (types != 0) & (ids != 0))
        _, first = np.unique(where[found], return_index=True)
        kept = found[first]
        columns["flow_id"][where[kept]] = ids[kept]
        columns["flow_type"][where[kept]] = types[kept]
        columns["flow_start"][where[kept]] = starts[kept]
        if lost := int((types != 0).sum()) - len(kept):
            left_out["end of an arrow without a slice of its own"] += lost
        return columns

    def _numbers(self, ids: Sequence[Any]) -> Longs:
        if set(map(type, ids)) == {int}:
            with suppress(OverflowError):
                return np.array(ids, dtype=np.int64)
        return np.array([self._number(one) for one in ids], dtype=np.int64)

    def _number(self, written: Any) -> int:
        number = whole_number(written)
        return self._named.setdefault(str(written), _FIRST_NAMED + len(self._named)) if number is None else number


def _behind(
    before: Longs, at_track: Longs, ns: Longs, track: Longs, start_ns: Longs, slices: npt.NDArray[np.bool_]
) -> Longs:
    """Return the slice in front of each end where that is the one it belongs to, else -1."""
    if not len(track):
        return np.full(len(before), -1, dtype=np.int64)
    fits = (before >= 0) & slices[before] & (track[before] == at_track) & (start_ns[before] == ns)
    return np.where(fits, before, -1)


def _starting_there(at_track: Longs, ns: Longs, track: Longs, start_ns: Longs, slices: npt.NDArray[np.bool_]) -> Longs:
    """Return the first slice of each end's track that starts at its time, else -1."""
    candidates = np.flatnonzero(slices)
    if not len(candidates) or not len(ns):
        return np.full(len(ns), -1, dtype=np.int64)
    n_tracks = int(max(track.max(), at_track.max())) + 1
    times, rank = np.unique(np.concatenate([start_ns[candidates], ns]), return_inverse=True)
    del times
    keys = rank * n_tracks + np.concatenate([track[candidates], at_track])
    own, wanted = keys[: len(candidates)], keys[len(candidates) :]
    order = np.argsort(own, kind="stable")
    at = np.minimum(np.searchsorted(own[order], wanted), len(order) - 1)
    return np.where(own[order][at] == wanted, candidates[order][at], -1)
