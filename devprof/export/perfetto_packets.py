"""Packets of a Perfetto trace: events in one sequence, whose clock, defaults and texts hold for all, and tracks in another."""

from __future__ import annotations

from collections.abc import Iterable

from devprof.export.protobuf import VARINT, Part, bytes_field, message, number_field, tag

__all__ = ["NEEDS_STATE", "event_packet", "packet", "track_packet"]

_PACKET = 1  # of Trace
_TIME, _SEQUENCE_ID, _EVENT, _FLAGS, _DESCRIPTOR = 8, 10, 11, 13, 60  # of TracePacket

_SEQUENCE, _SEQUENCE_OF_TRACKS = (number_field(_SEQUENCE_ID, number) for number in (1, 2))
NEEDS_STATE = number_field(_FLAGS, 2)
"""Says that a packet means the sequence's texts and defaults."""


def packet(*fields: bytes) -> bytes:
    """Return one packet of the sequence of events."""
    return bytes_field(_PACKET, b"".join(fields) + _SEQUENCE)


def track_packet(*fields: bytes) -> bytes:
    """Return the packet of a track, with the fields of ``TrackDescriptor``.

    It is of another sequence, for a reader takes the last thread that a sequence names as where its events come from.
    """
    return bytes_field(_PACKET, bytes_field(_DESCRIPTOR, b"".join(fields)) + _SEQUENCE_OF_TRACKS)


def event_packet(time: Iterable[Part], event: Iterable[Part]) -> list[Part]:
    """Return the packets of many events.

    They do not say that they need the sequence's state: no reader of the file can have missed it.

    Args:
        time: of the file's clock, a column.
        event: the fields of ``TrackEvent``.
    """
    return message(_PACKET, [tag(_TIME, VARINT), *time, _SEQUENCE, *message(_EVENT, event)])
