"""`read_kineto`: a trace of Kineto, or of anybody else, in Chrome's JSON.

Source: libkineto/src/output_json.cpp for the keys and their meaning. Events come in pieces, each of which is decoded and turned
into columns before the next one is read, so memory grows with the columns and not with the text.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from devprof.errors import TraceFileError
from devprof.model import ActivityType, Role
from devprof.store.items import ItemKind
from devprof.store.places import PlaceKind
from devprof.store.readers.gathering import EventTable
from devprof.store.readers.json_blocks import Progress
from devprof.store.readers.json_choice import python_decoder
from devprof.store.readers.json_chunks import ArgsColumn, Chunk, Decoder, Field, Times
from devprof.store.readers.json_plain import PlainDecoder
from devprof.store.readers.json_repeated import REPEATED
from devprof.store.readers.json_source import JsonSource, NotJson, Truncated
from devprof.store.readers.kineto_args import ChunkArgs
from devprof.store.readers.kineto_facts import START_MARK, STOP_MARK, backends_of, base_ns_of, facts_of, span_of
from devprof.store.readers.kineto_flows import Flows
from devprof.store.readers.kineto_kinds import Kinds, Meaning
from devprof.store.readers.kineto_pairs import Half, Pairs
from devprof.store.readers.kineto_places import Tracks
from devprof.store.trace import Trace

__all__ = ["MAX_BYTES", "read_kineto"]

MAX_BYTES = 64 << 30
"""Most bytes of text, unpacked, that are read unless the caller allows more."""
_PIECE_BYTES = 4 << 20

_SPECIAL = (Meaning.METADATA, Meaning.HALF, Meaning.SPAN)


def read_kineto(
    path: Path,
    *,
    max_bytes: int = MAX_BYTES,
    piece_bytes: int = _PIECE_BYTES,
    decoder: Decoder | None = None,
    progress: Progress | None = None,
) -> Trace:
    """Read a trace in Chrome's JSON, plain or gzip, an object or a bare list of events.

    Times are exact to the nanosecond. No event has a parent yet; the events of a row are in the order of entering. The args
    "External id" and "correlation" become the columns `id` and `linked`; all others become items, lists and objects as JSON
    text; an arg that is null is left out. What is left out otherwise is counted in ``facts["file"]``.

    Args:
        path: the file.
        max_bytes: most bytes of text, unpacked; guards against files that unpack without end.
        piece_bytes: about how much text is decoded at once.
        decoder: reads the events; a new one. None: by msgspec where it is installed, else by the standard library.
        progress: called now and then while the file is read.

    Raises:
        TraceFileError: it is no JSON, holds no events, is too large, or cannot be read.
    """
    source = JsonSource(path, max_bytes, piece_bytes, progress)
    with _paused_gc():
        return _Kineto(path, source, python_decoder() if decoder is None else decoder).trace()


class _Kineto:
    def __init__(self, path: Path, source: JsonSource, decode: Decoder) -> None:
        self._path = path
        self._source = source
        self._decoder = decode
        self._table = EventTable()
        self._kinds = Kinds()
        self._tracks = Tracks()
        self._flows = Flows()
        self._pairs = Pairs()
        self._found = False
        self._left_out: Counter[str] = Counter()
        self._notes: list[str] = []
        self._top: dict[str, Any] = {}
        self._others: list[dict[str, Any]] = []  # metadata events that are about no place
        self._marks: dict[str, int] = {}
        self._spans: list[dict[str, Any]] = []
        self._kind_parts: list[npt.NDArray[np.int64]] = []

    def trace(self) -> Trace:
        self._read()
        if events := self._pairs.events(self._left_out):
            self._take(*_timed(PlainDecoder().from_objects(events)))
        return self._build()

    # reading

    def _read(self) -> None:
        try:
            if self._source.begins_with_list():
                self._found = True
                self._take_events()
            else:
                self._read_object()
        except Truncated:
            self._notes.append(
                "the file ends before its JSON does" + (f": {note}" if (note := self._source.note) else "")
            )
        except NotJson as error:
            self._notes.append(f"a fact of the file cannot be read: {error}")
        else:
            self._source.end()
        if not self._found and "schemaVersion" not in self._top:
            raise TraceFileError(
                f"{self._path} holds no trace: expected a list of events, or an object with traceEvents; found "
                f"{', '.join(list(self._top)[:8]) or 'nothing that can be read'}"
            )
        if self._source.unreadable:
            self._left_out["event that is no JSON"] += self._source.unreadable

    def _read_object(self) -> None:
        try:
            while (key := self._source.key()) is not None:
                if key in self._top or (key == "traceEvents" and self._found):
                    self._source.lax[REPEATED] += 1
                if key == "traceEvents" and self._source.starts_list():
                    self._found = True
                    self._take_events()
                else:
                    self._top[key] = self._source.value()
        except (NotJson, Truncated) as error:
            # a fact that is no JSON may look like one that goes on to the end of the file
            if self._found or not self._source.find_events():
                raise
            self._notes.append("facts in front of the events cannot be read" + (f": {error}" if str(error) else ""))
            self._found = True
            self._take_events()

    def _take_events(self) -> None:
        for chunk in self._source.pieces(self._decoded, self._from_objects):
            self._take(*chunk)

    def _decoded(self, piece: memoryview) -> tuple[Chunk, Times, Times]:
        timed = _timed(self._decoder.decode(piece))
        if not self._decoder.exact and any(times.inexact for times in timed[1:]):
            self._decoder.exact = True
            timed = _timed(self._decoder.decode(piece))
        return timed

    def _from_objects(self, events: list[Any]) -> tuple[Chunk, Times, Times]:
        return _timed(self._decoder.from_objects(events))

    # one chunk

    def _take(self, chunk: Chunk, start: Times, duration: Times) -> None:
        if chunk.dropped:
            self._left_out["thing that is no event"] += chunk.dropped
        if not len(chunk):
            return
        kind = chunk.kinds(self._kinds)
        meaning = np.array([int(one.meaning) for one in self._kinds.table], dtype=np.int64)[kind]
        track = chunk.tracks(self._tracks)
        kept = start.sound & (meaning <= Meaning.COUNTER) & ~self._window_marks(chunk, meaning, start)
        special = np.isin(meaning, _SPECIAL)
        args = self._add(chunk, kept, special, kind, track, start.ns, start.ns + duration.ns)
        self._source.lax[REPEATED] += chunk.repeated()
        self._count_lost(chunk, meaning, start.sound)
        for at in np.flatnonzero(special).tolist():
            self._take_special(chunk, at, Meaning(meaning[at]), start, duration, args.get(at, {}))
        flows = np.flatnonzero((meaning == Meaning.FLOW) & start.sound)
        if len(flows):
            self._add_flows(chunk.ids(flows), flows, kind, track, start, kept)

    def _add(
        self,
        chunk: Chunk,
        kept: npt.NDArray[np.bool_],
        special: npt.NDArray[np.bool_],
        kind: npt.NDArray[np.int64],
        track: npt.NDArray[np.int64],
        start_ns: npt.NDArray[np.int64],
        end_ns: npt.NDArray[np.int64],
    ) -> dict[int, dict[str, Any]]:
        """Add the chunk's events, and return the args of the special ones."""
        there = np.flatnonzero(kept)
        kinds = kind[there]
        types = np.array([int(one.activity_type) for one in self._kinds.table], dtype=np.uint8)[kinds]
        counters = np.array([one.meaning is Meaning.COUNTER for one in self._kinds.table], dtype=np.bool_)[kinds]
        first = len(self._table)
        args = ChunkArgs(self._table, first, types, counters)
        others = _share_out(chunk.columns(kind), there, special, args)
        self._table.add(
            len(there),
            activity_type=types,
            name=chunk.names(there, self._table),
            start_ns=start_ns[there],
            end_ns=end_ns[there],
            row=track[there],
            id=args.id,
            linked=args.linked,
        )
        self._kind_parts.append(kinds)
        self._add_categories(kinds, first)
        if odd := chunk.odd_scopes(there):
            events = np.array([at for at, _ in odd], dtype=np.int64) + first
            self._table.add_items("scope", ItemKind.STRING, events, self._table.texts([scope for _, scope in odd]))
        return others

    def _add_categories(self, kinds: npt.NDArray[np.int64], first: int) -> None:
        """Keep the categories that a type does not tell."""
        for number, one in enumerate(self._kinds.table):
            if one.category and len(there := np.flatnonzero(kinds == number)):
                text = np.full(len(there), self._table.text(one.category), dtype=np.int32)
                self._table.add_items("cat", ItemKind.STRING, there + first, text)

    # what is no event

    def _window_marks(self, chunk: Chunk, meaning: npt.NDArray[np.int64], start: Times) -> npt.NDArray[np.bool_]:
        """Take the instants that mark the window, and return which they are."""
        marks = np.zeros(len(meaning), dtype=np.bool_)
        for at in np.flatnonzero((meaning == Meaning.INSTANT) & start.sound).tolist():
            name, pid = chunk.value(Field.NAME, at), chunk.value(Field.PID, at)
            if isinstance(name, str) and pid in ("Traces", "") and name.startswith((START_MARK, STOP_MARK)):
                self._marks.setdefault(name, int(start.ns[at]))
                marks[at] = True
        return marks

    def _count_lost(self, chunk: Chunk, meaning: npt.NDArray[np.int64], sound: npt.NDArray[np.bool_]) -> None:
        for at in np.flatnonzero(meaning == Meaning.UNKNOWN).tolist():
            self._left_out[f"event of phase {str(chunk.value(Field.PHASE, at))[:20]!r}"] += 1
        if lost := int((~sound & (meaning < Meaning.UNKNOWN) & (meaning != Meaning.METADATA)).sum()):
            self._left_out["event without a time that can be"] += lost

    def _take_special(
        self, chunk: Chunk, at: int, meaning: Meaning, start: Times, duration: Times, args: dict[str, Any]
    ) -> None:
        name, pid, tid = (chunk.value(field, at) for field in (Field.NAME, Field.PID, Field.TID))
        if meaning is Meaning.METADATA:
            if pid != "Spans" and not self._tracks.describe(str(name), pid, tid, args):
                self._others.append({"name": name, "pid": pid, "tid": tid, "args": args})
        elif not start.sound[at]:
            return
        elif meaning is Meaning.SPAN:
            self._spans.append(span_of(str(name), tid, int(start.ns[at]), int(duration.ns[at]), args))
        else:
            phase, category, number = (chunk.value(field, at) for field in (Field.PHASE, Field.CATEGORY, Field.ID))
            self._pairs.add(Half(phase, category, name, pid, tid, number, int(start.ns[at]), args))

    def _add_flows(
        self,
        ids: Sequence[Any],
        flows: npt.NDArray[np.int64],
        kind: npt.NDArray[np.int64],
        track: npt.NDArray[np.int64],
        start: Times,
        kept: npt.NDArray[np.bool_],
    ) -> None:
        before = len(self._table) - int(kept.sum()) + np.cumsum(kept)[flows] - 1
        types = np.array([one.flow_type for one in self._kinds.table], dtype=np.int64)[kind[flows]]
        starts = np.array([one.starts for one in self._kinds.table], dtype=np.int64)[kind[flows]]
        self._flows.add(ids, types, starts, track[flows], start.ns[flows], before)

    # the trace

    def _build(self) -> Trace:
        table = self._table
        base_ns = base_ns_of(self._top, self._notes)
        start, end, row = (table.column(key) for key in ("start_ns", "end_ns", "row"))
        types, track = table.column("activity_type"), row.astype(np.int64)
        kinds = np.concatenate([*self._kind_parts, np.empty(0, dtype=np.int64)])
        arrows = ~np.isin(types, [int(kind) for kind in ActivityType if kind.role is Role.COUNTER])
        for key, values in self._flows.attach(track, start, arrows, self._left_out).items():
            table.column(key)[:] = values
        undecided = np.array([bool(one.category) for one in self._kinds.table] or [False], dtype=np.bool_)[kinds]
        given = self._top.get("deviceProperties")
        properties = given if isinstance(given, list) else []
        places, rows, row[:] = self._tracks.resolve(track, types, undecided, properties, backends_of(self._top))
        on_device = np.array([places[one.place].kind is PlaceKind.DEVICE for one in rows] or [False], dtype=np.bool_)
        # a category of somebody else's on a device is no host's range
        types[undecided & on_device[row] & (types == ActivityType.USER_ANNOTATION)] = ActivityType.GPU_USER_ANNOTATION
        start += base_ns
        end += base_ns
        window = self._window(base_ns, start, end)
        return table.build(
            places, rows, order=np.lexsort((-end, start, row)), window_ns=window, facts=self._facts(base_ns)
        )

    def _window(self, base_ns: int, start: npt.NDArray[np.int64], end: npt.NDArray[np.int64]) -> tuple[int, int]:
        """Return the window as the file marks it, else that of its spans, else that of its events."""
        starts = [ns + base_ns for name, ns in self._marks.items() if name.startswith(START_MARK)]
        starts = starts or [span["start_ns"] + base_ns for span in self._spans]
        first = min(starts) if starts else int(start.min()) if len(start) else 0
        last = self._marks.get(STOP_MARK)
        if last is not None:
            return first, last + base_ns
        return first, int(max(start.max(), end.max())) if len(end) else first

    def _facts(self, base_ns: int) -> dict[str, object]:
        account: dict[str, object] = {"format": "kineto", "left_out": dict(self._left_out), "notes": self._notes}
        if lax := +self._source.lax:
            account["not_strict"] = dict(lax)
        spans = [
            {**span, "start_ns": span["start_ns"] + base_ns, "end_ns": span["end_ns"] + base_ns} for span in self._spans
        ]
        return {**({"spans": spans} if spans else {}), **facts_of(self._top, self._others), "file": account}


def _timed(chunk: Chunk) -> tuple[Chunk, Times, Times]:
    """Return a chunk with the starts and durations of its events."""
    return chunk, chunk.start(), chunk.duration()


def _share_out(
    columns: Iterable[ArgsColumn], there: npt.NDArray[np.int64], special: npt.NDArray[np.bool_], args: ChunkArgs
) -> dict[int, dict[str, Any]]:
    """Hand over the args of events, and return those of special ones, by place in the chunk.

    Args:
        columns: the chunk's args.
        there: (m,) places of the events in the chunk.
        special: (n,) which ones in the chunk are special.
        args: takes the args.
    """
    position = np.full(len(special), -1, dtype=np.int64)
    position[there] = np.arange(len(there))
    others: dict[int, dict[str, Any]] = {}
    for column in columns:
        events, inside = position[column.events], None
        if (events < 0).any():
            for at in np.flatnonzero(special[column.events]).tolist():
                others.setdefault(int(column.events[at]), {})[column.key] = column.value(at)
            inside = np.flatnonzero(events >= 0)
            events = events[inside]
        if len(events):
            args.add(column, events, inside)
    return others


@contextmanager
def _paused_gc() -> Iterator[None]:
    """Collect no garbage while many objects are made that are in no cycle; it would cost more than making them."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
