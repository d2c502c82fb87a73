"""`assemble`: what a host recorded and what its plugins delivered, as one `Trace`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from devprof.clock import HostClock
from devprof.host import HostRecording
from devprof.link import AnnotationSpans, LinkedColumns
from devprof.model import ActivityBatch, ActivityType, MetadataColumn, MetadataKind, Role
from devprof.pipeline.host_events import HostEvents, host_events
from devprof.pipeline.lane import LinkedLane
from devprof.pipeline.tracks import DeviceTracks, HostTracks
from devprof.store import Trace, TraceBuilder

__all__ = ["assemble"]

Longs = npt.NDArray[np.int64]

_JSON_KEYS = ("Input Dims", "Input type", "Input Strides", "Concrete Inputs")
"""Items of the host's ranges whose text is JSON."""

_LAUNCH = np.zeros(256, dtype=np.bool_)
_LAUNCH[[int(kind) for kind in ActivityType if kind.role is Role.LAUNCH]] = True


def assemble(
    recording: HostRecording | None,
    lanes: Sequence[LinkedLane],
    *,
    clock: HostClock,
    window_start_ns: int,
    window_end_ns: int,
    facts: Mapping[str, object] | None = None,
    pid: int | None = None,
    process_name: str = "python",
) -> Trace:
    """Put one capture together.

    Events come in this order: the host's own, those of each thread in the order of entering; then of each lane its batches and
    its spans of user ranges. A host event's parent is the one around it (`host_tree`), a launch's is its op, device work's its
    launch, else its op. Spans of ranges that the host does not know have no name: they are left out and counted in the lane's
    ledger, so the account that goes into the facts is to be taken after this.

    Args:
        recording: what the host recorded; None: nothing.
        lanes: what `process` made of each plugin's delivery, with launch numbers and device offsets that do not meet.
        clock: the clock of the recording's ticks.
        window_start_ns, window_end_ns: the capture window, Unix ns. Events that were open at the stop end with it.
        facts: JSON values for the trace. The host's "clock", "notes" and "discarded" are added where they are not given, and by
            plugin "plugin_metadata" and "device_properties" (those of no particular device).
        pid: id of the process; None: this one's.
        process_name: what the process is called.
    """
    builder = TraceBuilder()
    host = host_events(recording, clock, window_end_ns)
    threads = {} if recording is None else recording.threads
    tracks = HostTracks(builder, os.getpid() if pid is None else pid, process_name, threads)
    parents = [_add_host(builder, tracks, host)]
    said = dict(facts or {})
    for lane in lanes:
        devices = DeviceTracks(builder, lane)
        parents.append(
            _add_spans(builder, lane, devices, host)
        )  # first: a span is around its work, also of equal times
        parents.append(_add_records(builder, lane, devices, tracks, host))
        _describe(said, lane, devices)
    _describe_host(said, recording, clock)
    trace = builder.build(window_start_ns=window_start_ns, window_end_ns=window_end_ns, facts=said)
    return trace.with_parent(np.concatenate(parents))


def _add_host(builder: TraceBuilder, tracks: HostTracks, host: HostEvents) -> Longs:
    """Add the host's own events, and return the parent of each."""
    builder.add(
        host.batch,
        tracks.of_threads(host.batch.thread_id),
        json_keys=_JSON_KEYS,
        flow_id=host.flow_id,
        flow_type=host.flow_type,
        flow_start=host.flow_start,
    )
    return host.parent


def _add_records(
    builder: TraceBuilder, lane: LinkedLane, devices: DeviceTracks, tracks: HostTracks, host: HostEvents
) -> Longs:
    """Add a lane's records, and return the parent of each."""
    first = len(builder)
    for batch, columns in zip(lane.batches, lane.columns, strict=True):
        builder.add(
            _marked(batch, columns),
            devices.of_batch(batch, columns, tracks),
            id=columns.id,
            linked=columns.linked,
            linked_user=columns.linked_user,
            flow_id=columns.flow_id,
            flow_type=columns.flow_type,
            flow_start=columns.flow_start,
        )
    return _parents(lane, host, first)


def _marked(batch: ActivityBatch, columns: LinkedColumns) -> ActivityBatch:
    """Mark device work that seems to start before its launch; its times are left as they are."""
    if not columns.skewed.any():
        return batch
    mark = MetadataColumn(MetadataKind.BOOL, columns.skewed, columns.skewed)
    return replace(batch, metadata={**batch.metadata, "before its launch": mark})


def _parents(lane: LinkedLane, host: HostEvents, first: int) -> Longs:
    """Return the launch of each record of a lane, else its op; a launch's parent is its op."""
    if not lane.columns:
        return np.empty(0, dtype=np.int64)
    number = np.concatenate([columns.id for columns in lane.columns])
    linked = np.concatenate([columns.linked for columns in lane.columns])
    is_launch = _LAUNCH[np.concatenate([batch.activity_type for batch in lane.batches])]
    launches = np.flatnonzero(is_launch)
    # `link` numbers a lane without gaps, and no two launches alike
    low = int(number.min(initial=np.iinfo(np.int64).max))
    launch_of = np.full(int(number.max(initial=low)) - low + 1, -1, dtype=np.int64)
    launch_of[number[launches] - low] = launches + first
    parent: Longs = launch_of[number - low]
    by_op = np.flatnonzero(is_launch | (parent < 0))
    parent[by_op] = host.ranges.find(linked[by_op])
    return parent


def _add_spans(builder: TraceBuilder, lane: LinkedLane, devices: DeviceTracks, host: HostEvents) -> Longs:
    """Add the user ranges on a lane's devices, named as the ranges are; return that they have no parent."""
    spans = lane.spans
    at = host.ranges.find(spans.user_id)
    known = at >= 0
    known[known] = host.batch.activity_type[at[known]] == int(ActivityType.USER_ANNOTATION)
    if not known.all():
        lane.ledger.notes["user id unknown to the host"] += len(np.unique(spans.user_id[~known]))
    batch = _span_batch(spans, host.batch, at, known)
    if len(batch):
        builder.add(batch, devices.of_resources(spans.device[known], spans.resource[known]))
    return np.full(len(batch), -1, dtype=np.int64)


def _span_batch(
    spans: AnnotationSpans, ranges: ActivityBatch, at: Longs, known: npt.NDArray[np.bool_]
) -> ActivityBatch:
    names, name = np.unique(ranges.name[at[known]], return_inverse=True)
    count = len(name)
    return ActivityBatch.from_columns(
        [ranges.strings[text] for text in names.tolist()],
        activity_type=int(ActivityType.GPU_USER_ANNOTATION),
        name=name,
        start=spans.start[known],
        end=spans.end[known],
        id=spans.user_id[known],
        metadata={"derived": MetadataColumn(MetadataKind.BOOL, np.ones(count, dtype=np.uint8))},
    )


def _describe(facts: dict[str, object], lane: LinkedLane, devices: DeviceTracks) -> None:
    """Add what a plugin said of its capture, and of no particular device."""
    for key, value in (("plugin_metadata", dict(lane.metadata)), ("device_properties", devices.loose_properties)):
        if value:
            known = facts.get(key)
            facts[key] = {**(known if isinstance(known, Mapping) else {}), lane.name: value}


def _describe_host(facts: dict[str, object], recording: HostRecording | None, clock: HostClock) -> None:
    facts.setdefault("clock", clock.describe())
    if recording is not None and recording.notes:
        facts.setdefault("notes", list(recording.notes))
    if recording is not None and recording.discarded:
        facts.setdefault("discarded", dict(recording.discarded))
