"""The head of a Perfetto trace: its clock, and the tracks with their names and order.

Host processes and threads are such in the file; devices and their streams are plain tracks, since a device's number is no
process's. What has a number that no process or thread can have is a plain track too.
"""

from __future__ import annotations

from collections.abc import Iterator

from devprof.export.perfetto_packets import packet, track_packet
from devprof.export.protobuf import bytes_field, number_field, text_field
from devprof.export.strict_json import json_text
from devprof.export.tracks import Track, Tracks, place_name
from devprof.store import Place, PlaceKind, Trace

__all__ = ["CLOCK", "clock_packets", "counter_packet", "track_packets"]

CLOCK = 64
"""The file's clock: ns since a time that the file says; the first number that is a sequence's own. Times are short that way."""

_REALTIME = 1
_MOST_NUMBER = 2**31 - 1

_CLOCK_SNAPSHOT, _FLAGS, _FIRST, _DEFAULTS = 6, 13, 87, 59  # of TracePacket
_DEFAULT_CLOCK = 58  # of TracePacketDefaults
_STATE_CLEARED = 1
_CLOCKS, _PRIMARY_CLOCK = 1, 2  # of ClockSnapshot
_CLOCK_ID, _CLOCK_TIME = 1, 2  # of its Clock
_UUID, _NAME, _PROCESS, _THREAD, _PARENT, _COUNTER, _ORDERING, _RANK, _DESCRIPTION, _MERGE = (
    *(1, 2, 3, 4, 5, 8, 11, 12, 14, 15),
)  # of TrackDescriptor
_EXPLICIT_ORDER, _NEVER_MERGED = 3, 2
_UNIT = 3  # of CounterDescriptor
_PID, _TID, _SORT_INDEX, _THREAD_NAME, _PROCESS_NAME, _LABELS = 1, 2, 3, 5, 6, 8  # of Thread- and ProcessDescriptor


def clock_packets(base_ns: int) -> Iterator[bytes]:
    """Yield the packets that begin the file and define its clock.

    Args:
        base_ns: what the clock counts from, Unix ns.
    """
    defaults = bytes_field(_DEFAULTS, number_field(_DEFAULT_CLOCK, CLOCK))
    yield packet(number_field(_FLAGS, _STATE_CLEARED), number_field(_FIRST, 1), defaults)
    real, own = (
        bytes_field(_CLOCKS, number_field(_CLOCK_ID, clock) + number_field(_CLOCK_TIME, time))
        for clock, time in ((_REALTIME, base_ns), (CLOCK, 0))
    )
    yield packet(bytes_field(_CLOCK_SNAPSHOT, real + own + number_field(_PRIMARY_CLOCK, _REALTIME)))


def track_packets(trace: Trace, tracks: Tracks) -> Iterator[bytes]:
    """Yield the packets that name the tracks; a track's uuid is its number in `tracks` plus 1, places have those after."""
    first_place = len(tracks.texts) + 1
    for index, place in enumerate(trace.places):
        pid = tracks.pids[index] if place.kind is PlaceKind.HOST and tracks.pids[index] > 0 else 0
        yield _place_packet(place, pid, first_place + index, tracks.place_order[index])
        first = 0
        for track in tracks.of_place(index):
            uuid = int(tracks.first[track.row]) + track.lane + 1
            first = uuid if track.lane == 0 else first
            is_thread = pid > 0 and track.tid > 0
            if is_thread and track.lane == 0:
                yield _thread_packet(track, pid, uuid, first_place + index)
            else:
                parent = first if is_thread else first_place + index
                more = number_field(_RANK, _bounded(track.sort_index)) + _numbers(trace, track.row)
                yield _plain(uuid, parent, track.name, more)


def counter_packet(uuid: int, parent: int, name: str, unit: int = 0) -> bytes:
    """Return the packet that names a counter's track; without a parent it stands on its own.

    Args:
        uuid: the track's.
        parent: the uuid of the track that it stands under; 0: none.
        name: the counter's.
        unit: number of a ``CounterDescriptor.Unit``; 0: none is said.
    """
    return _plain(uuid, parent, name, bytes_field(_COUNTER, number_field(_UNIT, unit) if unit else b""))


def _place_packet(place: Place, pid: int, uuid: int, order: int) -> bytes:
    name, rank = place_name(place), _bounded(order)
    fields = [number_field(_UUID, uuid), number_field(_ORDERING, _EXPLICIT_ORDER)]
    if pid:
        label = text_field(_LABELS, place.label) if place.label else b""
        process = number_field(_PID, pid) + text_field(_PROCESS_NAME, name) + number_field(_SORT_INDEX, rank)
        fields.append(bytes_field(_PROCESS, process + label))
    else:
        fields += [text_field(_NAME, name), number_field(_RANK, rank), number_field(_MERGE, _NEVER_MERGED)]
    described = [place.label] if place.label else []
    described += [json_text(place.properties)] if place.properties else []
    fields += [text_field(_DESCRIPTION, "\n".join(described))] if described else []
    return track_packet(*fields)


def _thread_packet(track: Track, pid: int, uuid: int, parent: int) -> bytes:
    rank = _bounded(track.sort_index)
    thread = number_field(_PID, pid) + number_field(_TID, track.tid) + number_field(_SORT_INDEX, rank)
    thread += text_field(_THREAD_NAME, track.name)
    fields = [number_field(_UUID, uuid), number_field(_PARENT, parent), bytes_field(_THREAD, thread)]
    return track_packet(*fields, number_field(_RANK, rank))


def _numbers(trace: Trace, row: int) -> bytes:
    """Return what Kineto's files say in each event of a stream, and this file once."""
    place = trace.places[trace.rows[row].place]
    if place.kind is not PlaceKind.DEVICE:
        return b""
    return text_field(_DESCRIPTION, f"device {place.id}, stream {trace.rows[row].id}")


def _plain(uuid: int, parent: int, name: str, more: bytes) -> bytes:
    fields = [number_field(_UUID, uuid), number_field(_PARENT, parent), text_field(_NAME, name), more]
    return track_packet(*fields, number_field(_MERGE, _NEVER_MERGED))


def _bounded(number: int) -> int:
    return max(-_MOST_NUMBER, min(number, _MOST_NUMBER))
