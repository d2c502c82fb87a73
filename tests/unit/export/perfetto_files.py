"""A reader of Perfetto files by Perfetto's own definitions, as its trace processor takes tracks, clocks, texts and nesting.

Needs the package ``perfetto``, which is for tests only.
"""

from __future__ import annotations

import gzip
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

definitions = pytest.importorskip(
    "perfetto.protos.perfetto.trace.perfetto_trace_pb2", reason="needs Perfetto's definitions: pip install perfetto"
)

REALTIME = 1
STATE_CLEARED = 1


@dataclass
class Event:
    """A slice, an instant or a sample of a counter; times in Unix ns; `end_ns` is None but for a slice."""

    track: int
    name: str
    category: str
    start_ns: int
    end_ns: int | None
    args: dict[str, Any] = field(default_factory=dict)
    flows: tuple[int, ...] = ()
    last_of_flows: tuple[int, ...] = ()
    value: float | None = None
    above: Event | None = None


@dataclass
class File:
    """What a file says: tracks by uuid, slices and instants in order of time, and samples."""

    tracks: dict[int, Any]
    events: list[Event]
    samples: list[Event]

    def path(self, uuid: int) -> tuple[str, ...]:
        """Names of a track and of those around it, from the outside in."""
        track = self.tracks[uuid]
        name = track.thread.thread_name or track.process.process_name or track.name
        return (*(self.path(track.parent_uuid) if track.parent_uuid else ()), name)

    def arrows(self) -> set[tuple[str, str]]:
        """Names at the two ends of each arrow, as a reader connects them."""
        found, open_at = set(), {}
        for event in self.events:
            for number in event.flows:
                if number in open_at:
                    found.add((open_at[number].name, event.name))
                open_at[number] = event
            for number in event.last_of_flows:
                if number in open_at:
                    found.add((open_at.pop(number).name, event.name))
        return found


class _Sequence:
    """What packets of one sequence mean."""

    def __init__(self) -> None:
        self.valid = False
        self.clock = REALTIME
        self.track = 0
        self.offsets = {REALTIME: 0}
        self.counts_on: dict[int, int] = {}  # clocks that count from one packet to the next: their times
        self.texts: dict[str, dict[int, Any]] = defaultdict(dict)

    def see(self, packet: Any) -> None:
        if packet.sequence_flags & STATE_CLEARED:
            self.valid = True
            self.texts.clear()
        if packet.HasField("trace_packet_defaults"):
            self.clock = packet.trace_packet_defaults.timestamp_clock_id
            self.track = packet.trace_packet_defaults.track_event_defaults.track_uuid
        if packet.HasField("clock_snapshot"):
            clocks = {clock.clock_id: clock.timestamp for clock in packet.clock_snapshot.clocks}
            assert packet.clock_snapshot.primary_trace_clock == REALTIME
            self.offsets |= {clock: clocks[REALTIME] - time for clock, time in clocks.items()}
            self.counts_on |= {
                one.clock_id: one.timestamp for one in packet.clock_snapshot.clocks if one.is_incremental
            }
        if packet.HasField("interned_data"):
            for kind, entries in packet.interned_data.ListFields():
                for entry in entries:
                    assert entry.iid not in self.texts[kind.name], "a text is written twice"
                    self.texts[kind.name][entry.iid] = entry.str.decode() if hasattr(entry, "str") else entry.name

    def time_ns(self, packet: Any) -> int:
        clock = packet.timestamp_clock_id if packet.HasField("timestamp_clock_id") else self.clock
        time = packet.timestamp
        if clock in self.counts_on:
            self.counts_on[clock] = time = time + self.counts_on[clock]
        time = (time + self.offsets[clock]) % 2**64
        return time - 2**64 if time >= 2**63 else time

    def value(self, annotation: Any) -> Any:
        kind = annotation.WhichOneof("value")
        if kind == "string_value_iid":
            return self.texts["debug_annotation_string_values"][annotation.string_value_iid]
        if kind is None:
            return [self.value(entry) for entry in annotation.array_values]
        return getattr(annotation, kind)

    def args(self, event: Any) -> dict[str, Any]:
        names = self.texts["debug_annotation_names"]
        found = {names[annotation.name_iid]: self.value(annotation) for annotation in event.debug_annotations}
        assert len(found) == len(event.debug_annotations), "an arg stands twice"
        return found


def read(path: Path) -> File:
    """Read a file as Perfetto does, and refuse what that would drop."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    whole = definitions.Trace()
    whole.ParseFromString(data)
    tracks: dict[int, Any] = {}
    states: dict[int, _Sequence] = defaultdict(_Sequence)
    found: list[tuple[int, Any, Event]] = []
    for packet in whole.packet:
        if packet.HasField("track_descriptor"):
            assert packet.track_descriptor.uuid not in tracks
            tracks[packet.track_descriptor.uuid] = packet.track_descriptor
            continue
        state = states[packet.trusted_packet_sequence_id]
        state.see(packet)
        if packet.HasField("track_event"):
            assert state.valid
            time_ns = state.time_ns(packet)
            event = packet.track_event
            if not event.HasField("track_uuid"):
                event.track_uuid = state.track
            found.append((time_ns, event, _event(state, event, time_ns)))
    found.sort(key=lambda one: one[0])  # stable: those of one time stay in the order of the file
    return _nested(tracks, found)


def _event(state: _Sequence, event: Any, time_ns: int) -> Event:
    name = state.texts["event_names"][event.name_iid] if event.HasField("name_iid") else ""
    category = "".join(state.texts["event_categories"][iid] for iid in event.category_iids)
    value = event.double_counter_value if event.HasField("double_counter_value") else None
    flows, last = tuple(event.flow_ids), tuple(event.terminating_flow_ids)
    return Event(event.track_uuid, name, category, time_ns, None, state.args(event), flows, last, value)


def _nested(tracks: dict[int, Any], found: list[tuple[int, Any, Event]]) -> File:
    file = File(tracks, [], [])
    stacks: dict[int, list[Event]] = defaultdict(list)
    for time_ns, raw, event in found:
        assert raw.track_uuid in tracks
        stack = stacks[raw.track_uuid]
        if raw.type == raw.TYPE_SLICE_END:
            stack.pop().end_ns = time_ns
        elif raw.type == raw.TYPE_COUNTER:
            assert tracks[raw.track_uuid].HasField("counter")
            file.samples.append(event)
        else:
            event.above = stack[-1] if stack else None
            file.events.append(event)
            if raw.type == raw.TYPE_SLICE_BEGIN:
                stack.append(event)
    assert not any(stacks.values()), "a slice has no end"
    return file
