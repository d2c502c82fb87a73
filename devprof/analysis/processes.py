"""Whose is it: the process, or the rank of a merged trace, that a place belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from devprof.analysis.columns import Longs
from devprof.analysis.work import launches_of, places_of
from devprof.store import PlaceKind, Trace

__all__ = ["Processes", "processes_of"]


@dataclass(frozen=True, slots=True, eq=False)
class Processes:
    """The processes, or ranks, of a trace.

    Attributes:
        word: ``"rank"`` or ``"process"``.
        names: numbers of ranks, or titles of processes.
        of_place: (places,) int64, index into `names`; -1: of several, or nobody knows.
    """

    word: str
    names: tuple[int | str, ...]
    of_place: Longs

    def title(self, number: int) -> str:
        """Return what a process is called where it stands alone; -1: the others."""
        if number < 0:
            return "others"
        return f"rank {self.names[number]}" if self.word == "rank" else str(self.names[number])


def processes_of(trace: Trace) -> Processes:
    """Return the ranks of a merged trace, as its facts say; of another one its host processes.

    A device belongs to the process that launched its work, where that is known and one; where the trace has one process only,
    to that.
    """
    ranks = _ranks(trace)
    if ranks:
        of_place = np.full(len(trace.places), -1, dtype=np.int64)
        for number, places in enumerate(ranks.values()):
            of_place[places] = number
        return Processes("rank", tuple(ranks), of_place)
    hosts = [number for number, place in enumerate(trace.places) if place.kind is PlaceKind.HOST]
    if len(hosts) == 1:
        return Processes("process", (trace.places[hosts[0]].title,), np.zeros(len(trace.places), dtype=np.int64))
    of_place = np.full(len(trace.places), -1, dtype=np.int64)
    of_place[hosts] = np.arange(len(hosts))
    for device, users in _users(trace).items():
        if len(users) == 1:
            of_place[device] = of_place[users[0]]
    return Processes("process", tuple(trace.places[place].title for place in hosts), of_place)


def _ranks(trace: Trace) -> dict[int, list[int]]:
    """Return the places of each rank of a merged trace (`devprof.pipeline.ranks.merge`)."""
    entries = trace.facts.get("ranks")
    found: dict[int, list[int]] = {}
    for entry in entries if isinstance(entries, list | tuple) else ():
        if isinstance(entry, Mapping) and isinstance(entry.get("rank"), int):
            places: Any = entry.get("places")
            known = range(len(trace.places))
            listed = places if isinstance(places, list | tuple) else ()
            found[entry["rank"]] = [place for place in listed if isinstance(place, int) and place in known]
    return found


def _users(trace: Trace) -> dict[int, list[int]]:
    """Return, for each device, the processes that launched work on it."""
    launch, work = launches_of(trace, slice(None))
    pairs = np.unique(np.stack([places_of(trace, work), places_of(trace, launch.astype(np.int64))]), axis=1)
    users: dict[int, list[int]] = {}
    for device, process in pairs.T.tolist():
        users.setdefault(device, []).append(process)
    return users
