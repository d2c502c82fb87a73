"""Places of several traces side by side: no two with one number, and each says whose it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from devprof.store import Place, PlaceKind, Row, Trace

__all__ = ["Placed", "placed"]


@dataclass(slots=True, eq=False)
class Placed:
    """Places and rows of a merged trace.

    Attributes:
        places, rows: of all traces, one trace after the other.
        row_of: for each trace, (its rows,) int32, the new index of each of its rows.
        places_of: for each trace, the new indices of its places.
    """

    places: list[Place] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    row_of: list[npt.NDArray[np.int32]] = field(default_factory=list)
    places_of: list[list[int]] = field(default_factory=list)


def placed(traces: Sequence[Trace], ranks: Sequence[int]) -> Placed:
    """Return the places and rows of several traces.

    A place keeps its number where it is the first that wants it; else it gets one behind all others of its kind, and its name
    says the real one. Every name says the rank. Places without a row (a machine's other devices, which Kineto lists) are left
    out. The ranks stand one below the other, each with its hosts first.

    Args:
        traces: one for each rank.
        ranks: their ranks.
    """
    kept = [sorted({row.place for row in trace.rows}) for trace in traces]
    wanted = [traces[at].places[place] for at, places in enumerate(kept) for place in places]
    numbers = iter(_distinct([(place.kind, place.backend, place.id) for place in wanted]))
    result = Placed()
    for trace, rank, places in zip(traces, ranks, kept, strict=True):
        first = len(result.places)
        ours = [_of_rank(trace.places[place], rank, next(numbers)) for place in places]
        result.places += _in_order([trace.places[place] for place in places], ours, first)
        index = {place: first + at for at, place in enumerate(places)}
        result.places_of.append(list(index.values()))
        begin = len(result.rows)
        result.rows += [replace(row, place=index[row.place]) for row in trace.rows]
        result.row_of.append(np.arange(begin, begin + len(trace.rows), dtype=np.int32))
    return result


def _distinct(wanted: Sequence[tuple[PlaceKind, str, int]]) -> list[int]:
    """Return different numbers for the places of each kind and backend, those that are wanted where possible."""
    owner: dict[tuple[PlaceKind, str, int], int] = {}
    free: dict[tuple[PlaceKind, str], int] = {}
    for at, (kind, backend, number) in enumerate(wanted):
        owner.setdefault((kind, backend, number), at)
        free[kind, backend] = max(free.get((kind, backend), 0), number + 1)
    numbers = []
    for at, (kind, backend, number) in enumerate(wanted):
        if owner[kind, backend, number] != at:
            number = free[kind, backend]
            free[kind, backend] += 1
        numbers.append(number)
    return numbers


def _of_rank(place: Place, rank: int, number: int) -> Place:
    what = "pid" if place.kind is PlaceKind.HOST else "device"
    real = "" if number == place.id else f" ({what} {place.id})"
    return replace(
        place,
        id=number,
        name=f"rank {rank}: {place.name or place.title}{real}",
        properties=_renumbered(place.properties, number),
    )


def _renumbered(properties: Mapping[str, object], number: int) -> Mapping[str, object]:
    """Return a device's properties under its new number; ``deviceProperties`` are found by it."""
    if "id" not in properties or properties["id"] == number:
        return properties
    return {**properties, "id": number, "id in its process": properties["id"]}


def _in_order(own: Sequence[Place], places: Sequence[Place], first: int) -> list[Place]:
    """Return the places with their positions in the merged trace: where they were within their own, behind `first` others."""
    order = sorted(range(len(own)), key=lambda at: _position(own[at]))
    position = {at: first + i for i, at in enumerate(order)}
    return [replace(place, sort_index=position[at]) for at, place in enumerate(places)]


def _position(place: Place) -> tuple[bool, int, int]:
    sort_index = place.id if place.sort_index is None else place.sort_index
    return place.kind is PlaceKind.DEVICE, sort_index, place.id
