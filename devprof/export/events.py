"""The events of a Chrome trace: their texts, from columns, in Python alone.

Events of a chunk that have the same kind and the same fields share a template; each column is turned into a list once per
chunk, and one ``%`` makes one event's text. `devprof.export.native_events` writes the same text faster.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from devprof.export.chunks import chunks
from devprof.export.placing import Placed, Placing
from devprof.export.shapes import IS_COUNTER, IS_SLICE, arrow_texts, category, head_of
from devprof.export.strict_json import WrittenTexts, quoted
from devprof.export.templates import Pieces

__all__ = ["IS_COUNTER", "IS_SLICE", "category", "event_texts", "groups"]

Longs = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

EVENTS_AT_ONCE = 2048
"""Events in a chunk: enough to pay for the calls, few enough that their texts stay in the processor's cache."""

_DECIMALS = tuple(f".{nanoseconds:03d}" for nanoseconds in range(1000))
_ARROW_BITS = 3  # of the kinds of `Arrows.at`
_CODE_BITS = 14  # room for the codes given, and for as many as there are events in a chunk
_MOST_BITS = 62
_ONE_GROUP = 2  # bounds, of events that are in order already
_WITHOUT, _WITH_DURATION = 4, 6  # conversions in front of the args


def event_texts(placing: Placing) -> Iterator[bytes]:
    """Yield the texts of all events, those of a chunk joined."""
    writer = _Writer(placing)
    for chunk in chunks(len(placing.trace), placing.lanes.ahead, EVENTS_AT_ONCE):
        lines = writer.lines(placing.of(chunk))
        if chunk.kept is not None:
            lines = [line for line, kept in zip(lines, chunk.kept.tolist(), strict=True) if kept]
        if lines:
            # kept until the next one is made: to give its pages back and get fresh ones costs a tenth
            text = ",\n".join(lines)
            yield text.encode()


class _Writer:
    """Writes chunks of one trace."""

    def __init__(self, placing: Placing) -> None:
        self._names = WrittenTexts(placing.trace.strings, quoted)
        self._pieces = Pieces(placing.trace)
        self._tracks = placing.tracks.texts

    def lines(self, placed: Placed) -> list[str]:
        """Return the text of each event of a chunk."""
        types, arrow = placed.types, placed.arrow
        args = [self._pieces.of(field) for field in placed.fields]
        order, bounds = groups(types.astype(np.int64) << _ARROW_BITS | arrow, [piece.present for piece in args])
        where = self._where(placed, order)
        given = [piece.lists(order) for piece in args]
        numbers = placed.arrow_number[order].tolist()
        lines: list[str] = []
        for low, high in pairwise(bounds):
            one = order[low]
            fields = [i for i in range(len(args)) if args[i].present[one]]
            is_slice, has_arrow = bool(IS_SLICE[types[one]]), bool(arrow[one])
            template = _template(int(types[one]), int(arrow[one]), [args[i].text for i in fields])
            columns = [
                *where[: _WITH_DURATION if is_slice else _WITHOUT],
                *(column for i in fields for column in given[i]),
            ]
            columns += [numbers, *where[1:_WITHOUT]] if has_arrow else []
            lines += map(template.__mod__, zip(*(column[low:high] for column in columns), strict=True))
        return lines if len(bounds) == _ONE_GROUP else _back_in_place(lines, order)

    def _where(self, placed: Placed, order: Longs) -> list[list[Any]]:
        """Return name, track, start and duration: a list for each conversion of the template."""
        start_us, start_rest = np.divmod(placed.since_ns[order], 1000)
        us, rest = np.divmod(placed.lasted_ns[order], 1000)
        return [
            self._names.of(placed.name[order].tolist()),
            list(map(self._tracks.__getitem__, placed.track[order].tolist())),
            start_us.tolist(),
            list(map(_DECIMALS.__getitem__, start_rest.tolist())),
            us.tolist(),
            list(map(_DECIMALS.__getitem__, rest.tolist())),
        ]


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


def _template(activity_type: int, arrow: int, pieces: list[str]) -> str:
    """Return the template of an event with its arrow."""
    values = '%s,%s,"ts":%s%s,"dur":%s%s' if IS_SLICE[activity_type] else '%s,%s,"ts":%s%s'
    args = f',"args":{{{",".join(pieces)}}}' if pieces or IS_COUNTER[activity_type] else ""
    ends = arrow_texts(arrow) if arrow else None
    return f"{head_of(activity_type)}{values}{args}}}" + (f'{ends[0]}%s,%s,"ts":%s%s{ends[1]}' if ends else "")


def _back_in_place(lines: list[str], order: Longs) -> list[str]:
    placed = np.empty(len(lines), dtype=object)
    placed[order] = lines
    return placed.tolist()
