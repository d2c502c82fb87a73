"""`chrome_trace`: a trace as Chrome JSON in the shape of Kineto's files.

Source of the shape: libkineto/src/output_json.cpp. What Kineto does to text it is not able to write is not done here: names and
metadata are kept, and the file is strict JSON whatever they hold.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext

from devprof.export.arrows import Arrows
from devprof.export.base_time import base_time_ns, timestamp
from devprof.export.behind import behind
from devprof.export.choice import native_writer
from devprof.export.events import event_texts
from devprof.export.header import head, tail, window_events
from devprof.export.lanes import assign_lanes
from devprof.export.left_out import LeftOut, not_finite, of_samples, said
from devprof.export.native_events import native_event_texts
from devprof.export.nesting import Nesting
from devprof.export.output import output_bytes
from devprof.export.placing import Placing
from devprof.export.shapes import IS_COUNTER, IS_SLICE
from devprof.export.tracks import Tracks
from devprof.store import Trace

__all__ = ["chrome_trace"]

_SWITCH = "DEVPROF_JSON_WRITER"

Write = Callable[[bytes | memoryview], object]


def chrome_trace(trace: Trace, path: str | os.PathLike[str]) -> LeftOut:
    """Write a trace as Chrome JSON, for Perfetto, TensorBoard, HTA and whatever else reads Kineto's files.

    Times are exact: absolute ns = ``baseTimeNanoseconds`` + ``ts`` * 1000, with ``ts`` and ``dur`` in microseconds with
    three decimals; a negative duration is written as 0. Slices that cross on their row stand on rows of their own, "NAME
    (2)". Metadata that is not finite is left out, and arrows that have no start. The file is written in pieces; memory does
    not grow with the trace but for some 40 bytes for each arrow and 8 for each text. Where the native writer is built
    (``devprof build export``), or is worth building for this trace, it writes the events, else Python does; the file is the
    same. It is packed on a second thread.

    Args:
        trace: the trace.
        path: the file's name; with ``.gz`` at its end the file is packed, level 6.

    Returns:
        What is not in the file and how many, such as ``{"ends of arrows without a start": 3}``; it is logged too.

    Raises:
        UsageError: the directory does not exist or may not be written.
        CaptureError: the system could not write the file; an earlier file of that name is untouched.
    """
    with output_bytes(path) as write_here, _writing(write_here, path) as write:
        base_ns = base_time_ns(trace)
        write(head(trace, base_ns).encode())
        separator = b""
        arrows = Arrows(trace)
        for text in _events(trace, base_ns, arrows):
            write(separator)
            write(text)
            del text  # before the next one is made, which then takes its memory
            separator = b",\n"
        write(tail(os.fspath(path)).encode())
    return said(path, arrows.left_out(), not_finite(trace), of_samples(trace, IS_COUNTER[trace.activity_type]))


def _writing(write: Write, path: str | os.PathLike[str]) -> AbstractContextManager[Write]:
    """Give what takes the pieces: where they are packed, a thread, for that frees the GIL; else a thread gains nothing."""
    return behind(write) if os.fspath(path).endswith(".gz") else nullcontext(write)


def _events(trace: Trace, base_ns: int, arrows: Arrows) -> Iterator[bytes | memoryview]:
    native = native_writer(_SWITCH, len(trace))
    nesting = Nesting(native, trace, IS_SLICE) if native is not None else None
    lanes = assign_lanes(trace, IS_SLICE, nesting.looked_at if nesting else None)
    tracks = Tracks(trace.places, trace.rows, lanes.count)
    for name in tracks.names(timestamp(trace.window_start_ns - base_ns)):
        yield name.encode()
    placing = Placing(trace, base_ns, tracks, lanes, arrows)
    yield from event_texts(placing) if native is None else native_event_texts(native, placing)
    for event in window_events(trace, base_ns):
        yield event.encode()
