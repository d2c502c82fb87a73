"""Process and thread numbers of a Chrome trace, and the events that name and sort them.

Hosts and devices share one space of numbers there, and so do the threads and streams of one place. Numbers are kept where they
can be; what is taken or does not fit 31 bits gets a free one, and the name says which it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from devprof.export.strict_json import json_text
from devprof.store import Place, PlaceKind, Row

__all__ = ["Track", "Tracks", "pids_of", "place_name"]

_AFTER_HOSTS = 5_000_000  # kExceedMaxPid, libkineto/include/output_base.h
_OVERHEAD_SORT_INDEX = 0x1000000
_MOST_NUMBER = 2**31 - 1  # viewers keep 32 bits
_SPARE_THREADS = 2**30


class Track(NamedTuple):
    """One lane of a row: index of the row, the lane, its number in the file, what it is called, its position in the place."""

    row: int
    lane: int
    tid: int
    name: str
    sort_index: int


class Tracks:
    """The tracks of a trace: one for each lane of each row.

    Attributes:
        first: (rows,) int64, number of each row's first track; further lanes follow it.
        texts: by track, its process and thread as they stand in an event.
        pids: by place, its number in the file.
        place_order: by place, its position in the file.
    """

    def __init__(self, places: Sequence[Place], rows: Sequence[Row], lanes: npt.NDArray[np.int64]) -> None:
        """Number the tracks.

        Args:
            places, rows: those of the trace.
            lanes: (rows,) int64, lanes of each row.
        """
        self._places = places
        self._rows = rows
        self._lanes = lanes.tolist()
        self.pids = pids_of(places)
        self.place_order = _place_order(places)
        self._tids: list[list[int]] = [[] for _ in rows]  # by row, then lane
        for place in range(len(places)):
            self._number_rows([i for i, row in enumerate(rows) if row.place == place])
        self.first = np.cumsum(lanes) - lanes
        self.texts = [
            f'"pid":{self.pids[row.place]},"tid":{tid}'
            for row, tids in zip(rows, self._tids, strict=True)
            for tid in tids
        ]

    def names(self, at: str) -> Iterator[str]:
        """Yield the events that name and sort places and rows.

        Args:
            at: their time, as text.
        """
        for index, (place, pid) in enumerate(zip(self._places, self.pids, strict=True)):
            where = f'"ts":{at},"pid":{pid},"tid":0'
            yield _named("process_name", where, "name", place_name(place))
            label = place.label or ("CPU" if place.kind is PlaceKind.HOST else "")
            yield _named("process_labels", where, "labels", label)
            yield _named("process_sort_index", where, "sort_index", self.place_order[index])
            for track in self.of_place(index):
                where = f'"ts":{at},"pid":{pid},"tid":{track.tid}'
                yield _named("thread_name", where, "name", track.name)
                yield _named("thread_sort_index", where, "sort_index", track.sort_index)

    def of_place(self, place: int) -> Iterator[Track]:
        """Yield the tracks of a place, from the top."""
        rows = [i for i, row in enumerate(self._rows) if row.place == place]
        rows.sort(key=lambda i: self._sort_index(i))
        crowded = any(self._lanes[i] > 1 for i in rows)
        position = count()  # where a row has several lanes they must stand beside each other, before the next row
        for i in rows:
            name = self._rows[i].name or _row_name(self._rows[i], self._places[place])
            for lane, tid in enumerate(self._tids[i]):
                sort_index = next(position) if crowded else self._sort_index(i)
                yield Track(i, lane, tid, name if lane == 0 else f"{name} ({lane + 1})", sort_index)

    def _number_rows(self, rows: list[int]) -> None:
        firsts = _distinct([abs(self._rows[row].id) for row in rows], range(_MOST_NUMBER + 1), _SPARE_THREADS)
        free = _free_numbers(firsts, max(firsts, default=0) + 1)
        for row, first in zip(rows, firsts, strict=True):
            self._tids[row] = [first, *(next(free) for _ in range(self._lanes[row] - 1))]

    def _sort_index(self, row: int) -> int:
        given = self._rows[row].sort_index
        return self._tids[row][0] if given is None else given


def pids_of(places: Sequence[Place]) -> list[int]:
    """Return the process number of each place in a file: its own where no other place has it."""
    order = sorted(range(len(places)), key=lambda i: places[i].kind is PlaceKind.DEVICE)  # hosts keep their numbers
    numbers = _distinct([places[i].id for i in order], range(-_MOST_NUMBER, _MOST_NUMBER + 1), _AFTER_HOSTS)
    pids = [0] * len(places)
    for i, number in zip(order, numbers, strict=True):
        pids[i] = number
    return pids


def _distinct(wanted: Sequence[int], allowed: range, spare: int) -> list[int]:
    """Return different numbers, those that are wanted where possible, else free ones from `spare` on."""
    kept = {number: i for i, number in reversed(list(enumerate(wanted))) if number in allowed}
    free = _free_numbers(kept, spare)
    return [number if kept.get(number) == i else next(free) for i, number in enumerate(wanted)]


def _free_numbers(taken: Iterable[int], first: int) -> Iterator[int]:
    gone = set(taken)
    return (number for number in count(first if first <= _MOST_NUMBER else 1) if number not in gone)


def _place_order(places: Sequence[Place]) -> list[int]:
    hosts = [_given(place, place.id) for place in places if place.kind is PlaceKind.HOST]
    after = max([_AFTER_HOSTS, *(index + 1 for index in hosts)])
    return [_given(place, _default_order(place, after)) for place in places]


def _given(place: Place, default: int) -> int:
    return default if place.sort_index is None else place.sort_index


def _default_order(place: Place, after_hosts: int) -> int:
    if place.kind is PlaceKind.HOST:
        return place.id
    return after_hosts + place.id if place.id >= 0 else _OVERHEAD_SORT_INDEX


def place_name(place: Place) -> str:
    """Return what a place is called."""
    default = f"process {place.id}" if place.kind is PlaceKind.HOST else f"{place.backend} {place.id}"
    return place.name or default


def _row_name(row: Row, place: Place) -> str:
    return f"thread {row.id}" if place.kind is PlaceKind.HOST else f"stream {row.id}"


def _named(what: str, where: str, key: str, value: object) -> str:
    return f'{{"ph":"M","name":"{what}",{where},"args":{{"{key}":{json_text(value)}}}}}'
