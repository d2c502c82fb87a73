"""Packets of a Perfetto trace: all in one sequence, so that its clock, defaults and texts hold for all."""

from __future__ import annotations

from collections.abc import Iterable

from devprof.export.protobuf import VARINT, Part, bytes_field, message, number_field, tag

__all__ = ["NEEDS_STATE", "event_packet", "packet"]

_PACKET = 1  # of Trace
_TIME, _SEQUENCE_ID, _EVENT, _FLAGS = 8, 10, 11, 13  # of TracePacket

_SEQUENCE = number_field(_SEQUENCE_ID, 1)
NEEDS_STATE = number_field(_FLAGS, 2)
"""Says that a packet means the sequence's texts and defaults."""


def packet(*fields: bytes) -> bytes:
    """Return one packet of the sequence."""
    return bytes_field(_PACKET, b"".join(fields) + _SEQUENCE)


def event_packet(time: Iterable[Part], event: Iterable[Part]) -> list[Part]:
    """Return the packets of many events.

    Args:
        time: of the file's clock, a column.
        event: the fields of ``TrackEvent``.
    """
    return message(_PACKET, [tag(_TIME, VARINT), *time, _SEQUENCE + NEEDS_STATE, *message(_EVENT, event)])
