"""`perfetto_trace`: a trace in Perfetto's protobuf format, made from columns without protobuf's library.

Source of the format: Perfetto's protos/perfetto/trace (trace_packet.proto, track_event.proto, track_descriptor.proto).
"""

from __future__ import annotations

import os

from devprof.export.choice import native_writer
from devprof.export.left_out import LeftOut, of_samples, said
from devprof.export.output import output_bytes
from devprof.export.perfetto_events import python_pieces
from devprof.export.perfetto_memory import memory_packets
from devprof.export.perfetto_native import native_pieces
from devprof.export.perfetto_plan import Plan
from devprof.export.perfetto_tracks import clock_packets, track_packets
from devprof.store import Trace

__all__ = ["perfetto_trace"]

_SWITCH = "DEVPROF_PERFETTO_WRITER"


def perfetto_trace(trace: Trace, path: str | os.PathLike[str]) -> LeftOut:
    """Write a trace for Perfetto: a ``.pftrace`` file of tracks, slices, arrows, counters and typed args.

    Times are Unix ns, exact, in a file whose trace time is the real time. A negative duration is written as 0. Slices that
    cross on their row stand on tracks of their own, "NAME (2)". Lists are text, as items are that are JSON already. A
    counter's sample has its values only. Memory that was reported is a counter too, on a track per device. An arrow goes from
    where it starts to each of its ends, and one that has no start or no end is left out. The file is written in pieces; memory
    does not grow with the trace but for some 20 bytes for each arrow, and for each report of memory.
    Where the native writer is built (``devprof build export``), or is worth building for this trace, it writes the events, else
    Python does, in a longer way: the two files say the same.

    Args:
        trace: the trace.
        path: the file's name; with ``.gz`` at its end the file is packed, level 6.

    Returns:
        What is not in the file and how many, such as ``{"ends of arrows without a start": 3}``; it is logged too.

    Raises:
        UsageError: the directory does not exist or may not be written.
        CaptureError: the system could not write the file; an earlier file of that name is untouched.
    """
    native = native_writer(_SWITCH, len(trace))
    with output_bytes(path) as write:
        plan = Plan.of(trace, native)
        for packets in (clock_packets(plan.base_ns), track_packets(trace, plan.tracks)):
            write(b"".join(packets))
        for samples in memory_packets(trace, plan.base_ns):
            write(samples)
        for piece in python_pieces(plan) if native is None else native_pieces(native, plan):
            write(piece)
    return said(path, plan.flows.left_out, of_samples(trace, plan.counters.samples()))
