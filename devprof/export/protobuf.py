"""Protobuf's wire format: single values as bytes, and columns of values as the bytes of many records at once.

A record is a list of parts: bytes that are the same in all records, and columns that take the same number of bytes in each.
That is possible because a varint may be longer than it needs to be, so the largest value of a column gives the width of all.
Source of the format: protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from devprof.export.strict_json import clean

__all__ = [
    "BYTES",
    "FIXED64",
    "VARINT",
    "Column",
    "Part",
    "Selection",
    "bytes_field",
    "fixed64",
    "message",
    "number_field",
    "records",
    "selection",
    "tag",
    "text_field",
    "varint",
    "varint_column",
]

Longs = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Octets = npt.NDArray[np.uint8]
Selection = slice | Longs

VARINT, FIXED64, BYTES = 0, 1, 2
"""How a field's value is written."""

_WORD_BYTES, _WORD_BITS = 8, 56  # bytes of a word, and how many bits of a number they hold
_CONTINUED = 0x8080808080808080  # every byte but a varint's last has its highest bit set


_SHORT = tuple(bytes([number]) for number in range(128))


class Column(NamedTuple):
    """Up to eight bytes of each record.

    Attributes:
        words: (p,) uint64, the bytes from the lowest on.
        width: how many bytes of each word.
        rank: (m,) int64, for each of m events the place of its word; None: its own.
    """

    words: Words
    width: int
    rank: Longs | None = None

    def octets(self, chosen: Selection) -> Octets:
        """Return the bytes of some events: (c, width) uint8."""
        words = self.words[chosen if self.rank is None else selection(self.rank[chosen])]
        return words.view(np.uint8).reshape(-1, _WORD_BYTES)[:, : self.width]


Part = bytes | Column | Octets
"""Of a record: the same bytes in all, a column, or (m, width) uint8 for just these records."""


def selection(places: Longs) -> Selection:
    """Return ascending places as a slice, where they stand in one piece: that takes no copy."""
    first, last = int(places[0]), int(places[-1])
    return slice(first, last + 1) if last - first == len(places) - 1 else places


def varint(number: int) -> bytes:
    """Return a whole number as a varint; a negative one as protobuf's int64 has it."""
    if 0 <= number < len(_SHORT):
        return _SHORT[number]
    number &= 2**64 - 1
    octets = bytearray()
    while number > 0x7F:
        octets.append(number & 0x7F | 0x80)
        number >>= 7
    octets.append(number)
    return bytes(octets)


@cache
def tag(field: int, wire_type: int) -> bytes:
    """Return what stands before a field's value."""
    return varint(field << 3 | wire_type)


def number_field(field: int, number: int) -> bytes:
    """Return a whole number with its field."""
    return tag(field, VARINT) + varint(number)


def bytes_field(field: int, octets: bytes) -> bytes:
    """Return bytes, a text in UTF-8 or a message with its field."""
    return tag(field, BYTES) + varint(len(octets)) + octets


def text_field(field: int, text: str) -> bytes:
    """Return a text with its field; a lone surrogate becomes U+FFFD."""
    return bytes_field(field, clean(text).encode())


def varint_column(values: npt.NDArray[np.integer[Any]], rank: Longs | None = None) -> list[Part]:
    """Return a column of whole numbers, all as wide as the largest one; a negative one takes ten bytes.

    Args:
        values: (p,) int64 or uint64, p > 0.
        rank: see `Column`.
    """
    words = np.ascontiguousarray(values).astype(np.uint64, copy=False)
    lowest, highest = int(words.min()), int(words.max())
    if lowest == highest:
        return [varint(highest)]
    width = (highest.bit_length() + 6) // 7
    if width <= _WORD_BYTES:
        return [Column(_spread(words, width), width, rank)]
    low = _spread(words & np.uint64(2**_WORD_BITS - 1), _WORD_BYTES) | np.uint64(1 << 63)
    return [Column(low, _WORD_BYTES, rank), Column(_spread(words >> np.uint64(_WORD_BITS), width - 8), width - 8, rank)]


def fixed64(values: npt.NDArray[Any], rank: Longs | None = None) -> list[Part]:
    """Return a column of numbers of eight bytes each, such as float64."""
    return [Column(np.ascontiguousarray(values).view(np.uint64), _WORD_BYTES, rank)]


def message(field: int, parts: Iterable[Part]) -> list[Part]:
    """Return parts as one message with its field."""
    inner = list(parts)
    return [tag(field, BYTES) + varint(sum(map(_width, inner))), *inner]


def records(parts: Sequence[Part], chosen: Selection, count: int) -> Octets:
    """Return the bytes of records: (count, width) uint8.

    Args:
        parts: of each record.
        chosen: the places of the records' events among those that the columns were made for.
        count: how many records.
    """
    same = b"".join(part if isinstance(part, bytes) else bytes(_width(part)) for part in parts)
    octets = np.empty((count, len(same)), dtype=np.uint8)
    octets[:] = np.frombuffer(same, dtype=np.uint8)
    at = 0
    for part in parts:
        width = _width(part)
        if not isinstance(part, bytes):
            octets[:, at : at + width] = part.octets(chosen) if isinstance(part, Column) else part
        at += width
    return octets


def _width(part: Part) -> int:
    if isinstance(part, Column):
        return part.width
    return len(part) if isinstance(part, bytes) else part.shape[1]


def _spread(words: Words, width: int) -> Words:
    """Return numbers as varints of `width` bytes, at most eight: seven bits to a byte, by halving."""
    for bits, mask in ((28, 0x000000000FFFFFFF), (14, 0x00003FFF00003FFF), (7, 0x007F007F007F007F)):
        if bits < 7 * width:
            low = words & np.uint64(mask)
            words = low | (words ^ low) << np.uint64(bits // 7)
    return words | np.uint64(_CONTINUED & 2 ** (8 * width - 8) - 1)
