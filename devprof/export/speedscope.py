"""`speedscope`: a trace for speedscope.app, one profile for each thread and stream.

Source of the format: speedscope's file-format-spec, profiles of type ``evented``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from devprof.export.base_time import since
from devprof.export.lanes import assign_lanes
from devprof.export.left_out import LeftOut, said
from devprof.export.output import output
from devprof.export.shapes import IS_SLICE
from devprof.export.strict_json import json_text
from devprof.export.tracks import Tracks, place_name
from devprof.store import Trace

__all__ = ["speedscope"]

Longs = npt.NDArray[np.int64]

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"
_AT_ONCE = 8192
_OPEN, _CLOSE = '{"type":"O","frame":%d,"at":%d}', '{"type":"C","frame":%d,"at":%d}'


class _Profile(NamedTuple):
    """Name of a track; its slices in order of start, of equal starts the longest first: (m,) frame, start and end."""

    name: str
    frame: Longs
    start_ns: Longs
    end_ns: Longs


def speedscope(trace: Trace, path: str | os.PathLike[str]) -> LeftOut:
    """Write the slices of a trace for speedscope: each lane of a thread or stream is a profile, all on one axis of time.

    Times are nanoseconds after the first slice; a negative duration is written as 0. Instants and samples of counters have no
    place in the format, nor have args and arrows. The file is written in pieces; memory grows by some 80 bytes for each slice.

    Args:
        trace: the trace.
        path: the file's name, by custom with ``.speedscope.json`` at its end; with ``.gz`` at its end the file is packed.

    Returns:
        What is not in the file and how many, such as ``{"instants and samples": 3}``; it is logged too.

    Raises:
        UsageError: the directory does not exist or may not be written.
        CaptureError: the system could not write the file; an earlier file of that name is untouched.
    """
    slices = np.flatnonzero(IS_SLICE[trace.activity_type])
    used = np.zeros(len(trace.strings), dtype=np.bool_)
    used[trace.name[slices]] = True
    frames = (json_text({"name": trace.strings[i]}) for i in np.flatnonzero(used).tolist())
    first_ns = int(trace.start_ns[slices].min()) if len(slices) else 0
    last_ns = int(np.maximum(trace.start_ns, trace.end_ns)[slices].max()) if len(slices) else 0
    with output(path) as write:
        write(f'{{"$schema":{json_text(_SCHEMA)},\n"shared":{{"frames":[\n')
        _write_list(write, frames)
        write('\n]},\n"profiles":[')
        for number, profile in enumerate(_profiles(trace, slices, np.cumsum(used) - 1)):
            facts = {"type": "evented", "name": profile.name, "unit": "nanoseconds", "startValue": 0}
            facts["endValue"] = last_ns - first_ns
            write(f'{"," if number else ""}\n{json_text(facts)[:-1]},"events":[\n')
            _write_list(write, _event_texts(profile, first_ns))
            write("\n]}")
        exporter = f"devprof {trace.facts.get('devprof_version', '')}".rstrip()
        tail = {"name": Path(path).name, "exporter": exporter, "activeProfileIndex": 0}
        write(f"\n],\n{json_text(tail)[1:]}\n")
    args = sum(map(len, trace.items.values()))
    arrows = int((trace.flow_id != 0).sum())
    return said(path, {"instants and samples": len(trace) - len(slices), "args": args, "ends of arrows": arrows})


def _write_list(write: Callable[[str], object], texts: Iterable[str]) -> None:
    separator = ""
    for text in texts:
        write(separator)
        write(text)
        separator = ",\n"


def _profiles(trace: Trace, slices: Longs, frame_of: Longs) -> Iterator[_Profile]:
    """Yield the profiles of all tracks that have slices, in the order of the tracks."""
    lanes = assign_lanes(trace, IS_SLICE)
    tracks = Tracks(trace.places, trace.rows, lanes.count)
    track = tracks.first[trace.row[slices]] + lanes.of(slices)
    end_ns = np.maximum(trace.start_ns[slices], trace.end_ns[slices])
    order = np.lexsort((~end_ns, trace.start_ns[slices], track))  # ~end: descending, without overflow
    track, slices, end_ns = track[order], slices[order], end_ns[order]
    for place in np.argsort(tracks.place_order, kind="stable").tolist():
        for one in tracks.of_place(place):
            number = int(tracks.first[one.row]) + one.lane
            here = slice(*np.searchsorted(track, [number, number + 1]).tolist())
            if here.start < here.stop:
                events = slices[here]
                name = f"{place_name(trace.places[place])}: {one.name}"
                yield _Profile(name, frame_of[trace.name[events]], trace.start_ns[events], end_ns[here])


def _event_texts(profile: _Profile, first_ns: int) -> Iterator[str]:
    """Yield the texts of a profile's opens and closes, many at a time, in the order that speedscope wants."""
    m = len(profile.frame)
    order = _opens_and_closes(profile.start_ns, profile.end_ns)
    time = since(first_ns, np.concatenate([profile.start_ns, profile.end_ns]))
    for low in range(0, 2 * m, _AT_ONCE):
        some = order[low : low + _AT_ONCE]
        columns = ((some >= m).tolist(), profile.frame[some % m].tolist(), time[some].tolist())
        yield ",\n".join(
            (_CLOSE if closes else _OPEN) % (frame, at) for closes, frame, at in zip(*columns, strict=True)
        )


def _opens_and_closes(start_ns: Longs, end_ns: Longs) -> Longs:
    """Return the order of m opens, from 0, and m closes, from m, in which what was opened last is closed first.

    At one time, what began before is closed first; then slices open, each with its close if it has no length.
    """
    m = len(start_ns)
    position = np.arange(m)
    ends_later = end_ns > start_ns
    time = np.concatenate([start_ns, end_ns])
    opens_here = np.concatenate([np.ones(m, dtype=np.bool_), ~ends_later])
    among = np.concatenate([2 * position, np.where(ends_later, -position, 2 * position + 1)])
    return np.lexsort((among, opens_here, time))
