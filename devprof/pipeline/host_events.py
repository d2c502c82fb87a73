"""The host's own events: one batch in Unix ns, in the order of entering, with their tree and arrows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from devprof.clock import HostClock
from devprof.host import HostRecording
from devprof.link import ForwardBackward, IdTable, forward_backward
from devprof.model import ActivityBatch, MetadataColumn, kLinkFwdBwd
from devprof.pipeline.host_tree import host_parents
from devprof.pipeline.merging import merged

__all__ = ["HostEvents", "host_events"]

Longs = npt.NDArray[np.int64]

_SEQUENCE, _FORWARD_THREAD, _FINISHED = "Sequence number", "Fwd thread id", "finished"


@dataclass(frozen=True, slots=True, eq=False)
class HostEvents:
    """The host's events and what belongs to them.

    Attributes:
        batch: n events in Unix ns; those of each thread in the order of entering.
        parent: (n,) int64, index of the event above each, -1: none.
        flow_id, flow_type, flow_start: (n,) arrows from forward to backward ops, numbered from 1.
        ranges: from the id of a range to its event.
    """

    batch: ActivityBatch
    parent: Longs
    flow_id: Longs
    flow_type: npt.NDArray[np.uint8]
    flow_start: npt.NDArray[np.uint8]
    ranges: IdTable

    def __len__(self) -> int:
        return len(self.batch)


def host_events(recording: HostRecording | None, clock: HostClock, window_end_ns: int) -> HostEvents:
    """Bring a recording's events together.

    Args:
        recording: the recording; None: the host recorded nothing.
        clock: of the recording's ticks.
        window_end_ns: where events end that were still open at the stop, Unix ns.
    """
    if recording is None:
        batch = ActivityBatch.from_columns((), activity_type=[], name=[], start=[], end=[])
    else:
        batch = _in_unix_ns(_in_one(recording), clock, window_end_ns)
    ranges = IdTable(batch.id)
    return HostEvents(batch, host_parents(batch, ranges), *_flows(len(batch), _arrows(batch)), ranges)


def _in_one(recording: HostRecording) -> ActivityBatch:
    parts = [part for part in (recording.ranges, recording.functions, recording.memory) if len(part)]
    if not parts:
        return recording.ranges
    batch = merged(parts)
    if len(parts) == 1:
        return batch
    return batch.take(np.argsort(batch.start, kind="stable"))


def _in_unix_ns(batch: ActivityBatch, clock: HostClock, window_end_ns: int) -> ActivityBatch:
    start, end = clock.to_unix_ns(batch.start), clock.to_unix_ns(batch.end)
    column = batch.metadata.get(_FINISHED)
    if column is not None:
        unfinished = _present(column, 1) == 0
        end[unfinished] = np.maximum(start[unfinished], window_end_ns)
    return batch.with_times(start, end)


def _arrows(batch: ActivityBatch) -> ForwardBackward | None:
    sequence, forward = batch.metadata.get(_SEQUENCE), batch.metadata.get(_FORWARD_THREAD)
    if sequence is None or forward is None:
        return None
    return forward_backward(batch.start, batch.end, batch.thread_id, _present(sequence, -1), _present(forward, 0))


def _present(column: MetadataColumn, absent: int) -> Longs:
    values = column.values.astype(np.int64, copy=False)
    return values if column.present is None else np.where(column.present, values, absent)


def _flows(n: int, arrows: ForwardBackward | None) -> tuple[Longs, npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    flow_id = np.zeros(n, dtype=np.int64)
    flow_type, flow_start = np.zeros(n, dtype=np.uint8), np.zeros(n, dtype=np.uint8)
    if arrows is not None:
        for ends in (arrows.forward, arrows.backward):
            flow_id[ends] = np.arange(1, len(arrows) + 1)
            flow_type[ends] = kLinkFwdBwd
        flow_start[arrows.forward] = 1
    return flow_id, flow_type, flow_start
