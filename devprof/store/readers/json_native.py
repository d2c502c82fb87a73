"""`NativeDecoder`: chunks by the native decoder. What it does not take goes to a decoder in Python, so that both read the same.

It does not take what is no strict JSON in UTF-8, keys that an event or its args have twice, fields of a type that Kineto does
not write, and nesting beyond its depth: whole pieces with such things in them are read at the other decoder's pace.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from devprof.store.items import ItemKind
from devprof.store.readers.gathering import EventTable
from devprof.store.readers.json_chunks import (
    ArgsColumn,
    Chunk,
    Decoder,
    Field,
    Times,
    TypedValues,
    canonical,
    loads_or_text,
)
from devprof.store.readers.json_items import LISTS, spread, typed_values
from devprof.store.readers.json_library import (
    BOOL,
    FLOAT,
    INT,
    RAW,
    SOUND,
    TEXT,
    NativeArg,
    NativeEvents,
    bind,
)
from devprof.store.readers.json_times import nanoseconds_of

__all__ = ["NativeChunk", "NativeColumn", "NativeDecoder"]

Longs = npt.NDArray[np.int64]


class NativeDecoder:
    """Decodes one file by the native library.

    Args:
        library: that of `build_spec.JSON`.
        twin: decodes what the library does not take.
    """

    def __init__(self, library: ctypes.CDLL, twin: Decoder) -> None:
        self._file = _File(NativeEvents(bind(library)))
        self._twin = twin
        self.exact = False

    def decode(self, piece: memoryview) -> Chunk:
        """Return the events of a piece of a list; good until the next piece.

        Raises:
            NotJson: it is none, or nested too deeply.
        """
        n = self._file.decode(piece, exact=self.exact)
        if n < 0:
            self._twin.exact = self.exact
            return self._twin.decode(piece)
        return NativeChunk(self._file, n, piece)

    def from_objects(self, events: list[Any]) -> Chunk:
        """Return the events among some objects."""
        return self._twin.from_objects(events)


class _Numbers:
    """Numbers elsewhere for the decoder's numbers; each is asked for once, when it first appears in an event."""

    def __init__(self) -> None:
        self._known: Longs = np.empty(0, dtype=np.int64)

    def of(self, own: Longs, ask: Callable[[int], int]) -> Longs:
        """Return the other numbers: (m,).

        Args:
            own: (m,) the decoder's, from 0.
            ask: returns the other number of one of them.
        """
        if not len(own):
            return own
        if (missing := int(own.max()) + 1 - len(self._known)) > 0:
            more = np.full(max(missing, len(self._known)), -1, dtype=np.int64)
            self._known = np.concatenate([self._known, more])
        found = self._known[own]
        if (found < 0).any():
            missed = own[found < 0]
            new = missed[np.sort(np.unique(missed, return_index=True)[1])]  # in the order of the events
            self._known[new] = [ask(number) for number in new.tolist()]
            found = self._known[own]
        return found


class _File:
    """What the chunks of one file share: the decoder, and what its numbers are in the tables of the trace."""

    def __init__(self, events: NativeEvents) -> None:
        self.events = events
        self._kinds, self._tracks, self._texts, self._json = (_Numbers() for _ in range(4))
        self._lists: dict[int, Any] = {}
        self.kind_table, self.track_table = events.kinds(), events.tracks()

    def decode(self, piece: memoryview, *, exact: bool) -> int:
        """Take the events of a piece, and return how many there are, -1: it is not taken."""
        n = self.events.decode(piece, exact=exact)
        if n >= 0:
            self.kind_table, self.track_table = self.events.kinds(), self.events.tracks()
        return n

    def text(self, number: int) -> str | None:
        """Return a text; None for -1."""
        return self.events.texts[number] if number >= 0 else None

    def id_of(self, kind: int, number: int) -> int | str | None:
        """Return an id: a number, a text or None."""
        return number if kind == INT else self.text(number) if kind == TEXT else None

    def kinds(self, own: Longs, numbers: Mapping[tuple[Any, Any], int]) -> Longs:
        """Return numbers of kinds."""
        return self._kinds.of(own, lambda kind: numbers[self.phase_and_category(kind)])

    def phase_and_category(self, kind: int) -> tuple[str | None, str | None]:
        """Return phase and category of a kind."""
        phase, category = self.kind_table[kind].tolist()
        return self.text(phase), self.text(category)

    def pair(self, track: int) -> tuple[int | str | None, int | str | None]:
        """Return process and thread of a track."""
        pid_kind, tid_kind, pid, tid = self.track_table[track].item()
        return self.id_of(pid_kind, pid), self.id_of(tid_kind, tid)

    def tracks(self, own: Longs, numbers: Mapping[tuple[Any, Any], int]) -> Longs:
        """Return numbers of tracks."""
        return self._tracks.of(own, lambda track: numbers[self.pair(track)])

    def texts(self, own: Longs, table: EventTable) -> npt.NDArray[np.int32]:
        """Return a table's numbers of texts."""
        return self._texts.of(own, lambda number: table.text(self.events.texts[number])).astype(np.int32)

    def raw(self, number: int) -> Any:
        """Return a value that is kept as it is written."""
        return loads_or_text(self.events.raws[number])

    def json(self, own: Longs, table: EventTable) -> npt.NDArray[np.int32]:
        """Return a table's numbers of the JSON of raw values."""
        return self._json.of(own, lambda number: table.text(canonical(self.raw(number)))).astype(np.int32)

    def list_of(self, number: int) -> Any:
        """Return a raw value, which is remembered."""
        if number not in self._lists:
            self._lists[number] = self.raw(number)
        return self._lists[number]


class NativeColumn(NamedTuple):
    """Values of one kind under one key; an `ArgsColumn`."""

    file: _File
    arg: NativeArg

    @property
    def key(self) -> str:
        """The key."""
        return self.file.events.keys[self.arg.key]

    @property
    def events(self) -> Longs:
        """(m,) positions in the chunk."""
        return self.arg.events

    def value(self, at: int) -> Any:
        """Return one value."""
        kind, number = self.arg.kind, int(self.arg.values[at])
        if kind == FLOAT:
            return float(self.arg.values[at : at + 1].view(np.float64)[0])
        if kind == RAW:
            return self.file.raw(number)
        return bool(number) if kind == BOOL else self.file.id_of(kind, number)

    def typed(self, at: Longs | None, table: EventTable) -> Iterator[TypedValues]:
        """Return the values by type, as `ArgsColumn` says."""
        kind, values = self.arg.kind, self.arg.values if at is None else self.arg.values[at]
        places = np.arange(len(values))
        if kind == INT:
            yield TypedValues(places, ItemKind.INT, values)
        elif kind == FLOAT:
            yield TypedValues(places, ItemKind.FLOAT, values.view(np.float64))
        elif kind == BOOL:
            yield TypedValues(places, ItemKind.BOOL, values.astype(np.uint8))
        elif kind == TEXT:
            yield TypedValues(places, ItemKind.STRING, self.file.texts(values, table))
        elif kind == RAW and self.key in LISTS:
            distinct, which = np.unique(values, return_inverse=True)
            lists = [self.file.list_of(number) for number in distinct.tolist()]
            yield from spread(typed_values(self.key, lists, table), which, places)
        elif kind == RAW:
            yield TypedValues(places, ItemKind.JSON, self.file.json(values, table))


class NativeChunk:
    """n events; a `Chunk`. Good until the decoder's next piece.

    Args:
        file: what the chunks share.
        n: how many.
        piece: the text that they are from.
    """

    dropped = 0

    def __init__(self, file: _File, n: int, piece: memoryview) -> None:
        self._file = file
        self._n = n
        self._columns = file.events.columns(n)
        self._inexact = file.events.inexact
        self._take_odd_times(piece)

    def _take_odd_times(self, piece: memoryview) -> None:
        for event, which, begin, end in self._file.events.odd_times().tolist():
            name = "duration" if which else "start"
            ns = nanoseconds_of(bytes(piece[begin:end]))
            self._columns[f"{name}_ns"][event] = ns or 0
            self._columns[f"{name}_state"][event] = SOUND if ns is not None else 0

    def __len__(self) -> int:
        return self._n

    def start(self) -> Times:
        """Return the events' starts."""
        return self._times("start")

    def duration(self) -> Times:
        """Return the events' durations."""
        return self._times("duration")

    def _times(self, name: str) -> Times:
        return Times(self._columns[f"{name}_ns"], self._columns[f"{name}_state"] == SOUND, self._inexact)

    def kinds(self, numbers: Mapping[tuple[Any, Any], int]) -> Longs:
        """Return a number for each event's phase and category."""
        return self._file.kinds(self._columns["kind"], numbers)

    def tracks(self, numbers: Mapping[tuple[Any, Any], int]) -> Longs:
        """Return a number for each event's process and thread."""
        return self._file.tracks(self._columns["track"], numbers)

    def names(self, at: Longs, table: EventTable) -> npt.NDArray[np.int32]:
        """Return the numbers of the names of some events."""
        own = self._columns["name"][at]
        none = own < 0
        if not none.any():
            return self._file.texts(own, table)
        numbers = np.full(len(own), table.text(""), dtype=np.int32)
        numbers[~none] = self._file.texts(own[~none], table)
        return numbers

    def odd_scopes(self, at: Longs) -> list[tuple[int, str]]:
        """Return the scopes of some events that are not their thread's."""
        own = self._columns["scope"][at]
        texts = [(to, self._file.events.texts[own[to]]) for to in np.flatnonzero(own >= 0).tolist()]
        return [(to, text) for to, text in texts if text != "t"]

    def ids(self, at: Longs) -> Sequence[Any]:
        """Return the ids of some events."""
        kinds, numbers = self._columns["id_kind"][at].tolist(), self._columns["id"][at].tolist()
        return [self._file.id_of(kind, number) for kind, number in zip(kinds, numbers, strict=True)]

    def value(self, field: int, at: int) -> Any:
        """Return one field of an event."""
        if field == Field.NAME:
            return self._file.text(self._columns["name"][at])
        if field == Field.ID:
            return self._file.id_of(self._columns["id_kind"][at], int(self._columns["id"][at]))
        if field in (Field.PID, Field.TID):
            return self._file.pair(self._columns["track"][at])[field - Field.PID]
        return self._file.phase_and_category(self._columns["kind"][at])[field - Field.PHASE]

    def columns(self, kind: Longs) -> Iterator[ArgsColumn]:
        """Return the columns of the events' args."""
        return (NativeColumn(self._file, arg) for arg in self._file.events.args())

    def repeated(self) -> int:
        """Return 0: a piece with a key that is there twice is not taken."""
        return 0
