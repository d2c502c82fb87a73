"""Texts of a Perfetto trace: written once, and named by their number from then on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from devprof.export.perfetto_packets import NEEDS_STATE, packet
from devprof.export.protobuf import bytes_field, number_field, text_field

__all__ = ["Names", "interned"]

_INTERNED_DATA = 12  # of TracePacket
_IID, _TEXT = 1, 2  # of EventName and its like
_BYTES_AT_ONCE = 1 << 18


class Names:
    """One kind of texts, by their numbers in a table; a text's number in the file is one more."""

    def __init__(self, field: int, count: int, text: Callable[[int], str]) -> None:
        """Know no text yet.

        Args:
            field: of ``InternedData``: whose texts.
            count: size of the table.
            text: returns the one with a number.
        """
        self._field = field
        self._known = np.zeros(count, dtype=np.bool_)
        self._text = text

    def new(self, numbers: npt.NDArray[np.integer[Any]]) -> Iterator[bytes]:
        """Yield packets with those texts that have not been written."""
        unknown = numbers[~self._known[numbers]]
        if len(unknown) == 0:
            return
        yield from interned(self._field, ((number, self._text(number)) for number in np.unique(unknown).tolist()))
        self._known[unknown] = True


def interned(field: int, texts: Iterable[tuple[int, str]]) -> Iterator[bytes]:
    """Yield packets with texts, given by their numbers in the table and what they are.

    Args:
        field: of ``InternedData``: whose texts.
        texts: at least one.
    """
    entries, size = [], 0
    for number, text in texts:
        entry = number_field(_IID, number + 1) + text_field(_TEXT, text)
        entries.append(bytes_field(field, entry))
        size += len(entry)
        if size > _BYTES_AT_ONCE:
            yield _interned(entries)
            entries, size = [], 0
    yield _interned(entries)


def _interned(entries: list[bytes]) -> bytes:
    return packet(NEEDS_STATE, bytes_field(_INTERNED_DATA, b"".join(entries)))
