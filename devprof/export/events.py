"""The events of a Chrome trace: their texts, from columns.

Events of a chunk that have the same kind and the same fields share a template; each column is turned into a list once per
chunk, and one ``%`` makes one event's text.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from devprof.export.arrows import ARROW_NAMES, Arrows
from devprof.export.base_time import since
from devprof.export.chunks import Chunk, Field, ItemFields, chunks, with_constant
from devprof.export.lanes import Lanes
from devprof.export.launch_fields import LaunchFields
from devprof.export.strict_json import WrittenTexts, quoted
from devprof.export.tracks import Tracks
from devprof.model import ActivityType, Role
from devprof.store import Trace

__all__ = ["IS_COUNTER", "IS_SLICE", "category", "event_texts", "groups"]

Longs = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

IS_COUNTER = np.zeros(256, dtype=np.bool_)
IS_COUNTER[[int(kind) for kind in ActivityType if kind.role is Role.COUNTER]] = True
"""(256,) bool, by number of `ActivityType`: which events are samples of counters."""

IS_SLICE = ~IS_COUNTER
"""(256,) bool, by number of `ActivityType`: which events are slices, with a start and an end."""
IS_SLICE[ActivityType.CPU_INSTANT_EVENT] = False

_DECIMALS = tuple(f".{nanoseconds:03d}" for nanoseconds in range(1000))
_ARROW_BITS = 3  # of the kinds of `Arrows.at`
_CODE_BITS = 14  # room for the codes given, and for as many as there are events in a chunk
_MOST_BITS = 62
_ONE_GROUP = 2  # bounds, of events that are in order already
_WITHOUT, _WITH_DURATION = 4, 6  # conversions in front of the args


def event_texts(trace: Trace, base_ns: int, tracks: Tracks, lanes: Lanes) -> Iterator[str]:
    """Yield the texts of all events, those of a chunk joined.

    Args:
        trace: the trace.
        base_ns: base of the file's times, Unix ns, not after any of them.
        tracks, lanes: where events stand.
    """
    writer = _Writer(trace, base_ns, tracks, lanes)
    for chunk in chunks(len(trace), lanes.ahead):
        lines = writer.lines(chunk)
        if chunk.kept is not None:
            lines = [line for line, kept in zip(lines, chunk.kept.tolist(), strict=True) if kept]
        if lines:
            yield ",\n".join(lines)


class _Writer:
    """Writes chunks of one trace."""

    def __init__(self, trace: Trace, base_ns: int, tracks: Tracks, lanes: Lanes) -> None:
        self._trace = trace
        self._base_ns = base_ns
        self._tracks = tracks
        self._lanes = lanes
        self._arrows = Arrows(trace)
        self._names = WrittenTexts(trace.strings, quoted)
        self._launches = LaunchFields(trace)
        self._items = ItemFields(trace, trace.items)
        self._counters = ItemFields(trace, trace.counters)

    def lines(self, chunk: Chunk) -> list[str]:
        """Return the text of each event of a chunk."""
        types = self._trace.activity_type[chunk.index]
        arrow, number = self._arrows.at(chunk.events)
        args = self._args(chunk, IS_COUNTER[types])
        order, bounds = groups(types.astype(np.int64) << _ARROW_BITS | arrow, [field.present for field in args])
        where = self._where(chunk, order)
        given = [_lists(field, order) for field in args]
        numbers = number[order].tolist()
        lines: list[str] = []
        for low, high in pairwise(bounds):
            one = order[low]
            fields = [i for i in range(len(args)) if args[i].present[one]]
            is_slice, has_arrow = bool(IS_SLICE[types[one]]), bool(arrow[one])
            template = _template(int(types[one]), int(arrow[one]), [args[i].piece for i in fields])
            columns = [
                *where[: _WITH_DURATION if is_slice else _WITHOUT],
                *(column for i in fields for column in given[i]),
            ]
            columns += [numbers, *where[1:_WITHOUT]] if has_arrow else []
            lines += map(template.__mod__, zip(*(column[low:high] for column in columns), strict=True))
        return lines if len(bounds) == _ONE_GROUP else _back_in_place(lines, order)

    def _args(self, chunk: Chunk, is_counter: Mask) -> list[Field]:
        """Return the fields of the events' ``args``; those of a counter are its values alone, as in Kineto's files."""
        items = dict(self._items.of(chunk))
        derived = self._launches.of(chunk)
        for key in derived.keys() & items.keys():
            derived[key] = derived[key]._replace(present=derived[key].present & ~items[key].present)
        fields = [*derived.values(), *items.values()]
        if is_counter.any():
            fields = [field._replace(present=field.present & ~is_counter) for field in fields]
            counters = (field for _, field in self._counters.of(chunk))
            fields += [field._replace(present=field.present & is_counter) for field in counters]
        return [with_constant(field) for field in fields if field.present.any()]

    def _where(self, chunk: Chunk, order: Longs) -> list[list[Any]]:
        """Return name, track, start and duration: a list for each conversion of the template."""
        trace = self._trace
        start_ns = trace.start_ns[chunk.index]
        start_us, start_rest = np.divmod(since(self._base_ns, start_ns)[order], 1000)
        us, rest = np.divmod(since(start_ns, trace.end_ns[chunk.index])[order], 1000)
        return [
            self._names.of(trace.name[chunk.index][order].tolist()),
            list(map(self._tracks.texts.__getitem__, self._track(chunk)[order].tolist())),
            start_us.tolist(),
            list(map(_DECIMALS.__getitem__, start_rest.tolist())),
            us.tolist(),
            list(map(_DECIMALS.__getitem__, rest.tolist())),
        ]

    def _track(self, chunk: Chunk) -> Longs:
        return self._tracks.first[self._trace.row[chunk.index]] + self._lanes.of(chunk.events)


def groups(code: Longs, present: list[Mask]) -> tuple[Longs, list[int]]:
    """Put events with the same fields side by side.

    Args:
        code: (m,) int64, what else makes a difference, less than 2**14, as m is.
        present: (m,) bool, which events have a field, for each field.

    Returns:
        (m,) order of the events, and where each group begins, with the end of the last one.
    """
    bits = _CODE_BITS
    for mask in present:
        if mask.all():
            continue
        if bits == _MOST_BITS:
            code, bits = np.unique(code, return_inverse=True)[1].astype(np.int64), _CODE_BITS
        code = code | mask.astype(np.int64) << bits
        bits += 1
    order = np.argsort(code, kind="stable")
    ends = np.flatnonzero(np.diff(code[order])) + 1
    return order, [0, *ends.tolist(), len(code)]


def _lists(field: Field, order: Longs) -> list[list[Any]]:
    lists = [column[order].tolist() for column in field.columns]
    return lists if field.written is None else [list(field.written(values)) for values in lists]


def _template(activity_type: int, arrow: int, pieces: list[str]) -> str:
    """Return the template of an event with its arrow."""
    is_counter = bool(IS_COUNTER[activity_type])
    if IS_SLICE[activity_type]:
        head, tail = '{"ph":"X"', '%s,%s,"ts":%s%s,"dur":%s%s'
    else:
        head, tail = ('{"ph":"C"' if is_counter else '{"ph":"i","s":"t"'), '%s,%s,"ts":%s%s'
    args = f',"args":{{{",".join(pieces)}}}' if pieces or is_counter else ""
    return f'{head},"cat":"{category(activity_type)}","name":{tail}{args}}}' + (_arrow_template(arrow) if arrow else "")


def _arrow_template(arrow: int) -> str:
    name, starts = ARROW_NAMES[arrow >> 1], arrow & 1
    phase, binding = ("s", "") if starts else ("f", ',"bp":"e"')
    return f',\n{{"ph":"{phase}","id":%s,%s,"ts":%s%s,"cat":"{name}","name":"{name}"{binding}}}'


def category(activity_type: int) -> str:
    """Return what a file calls a kind of event."""
    try:
        return ActivityType(activity_type).label
    except ValueError:
        return f"activity_{activity_type}"  # of a later Kineto than this devprof knows


def _back_in_place(lines: list[str], order: Longs) -> list[str]:
    placed = np.empty(len(lines), dtype=object)
    placed[order] = lines
    return placed.tolist()
