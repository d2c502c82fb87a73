"""Texts of a Perfetto trace: written once, and named by their number from then on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from devprof.export.perfetto_packets import NEEDS_STATE, packet
from devprof.export.protobuf import bytes_field, number_field, text_field

__all__ = ["Names"]

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
        entries, size = [], 0
        for number in np.unique(unknown).tolist():
            entry = number_field(_IID, number + 1) + text_field(_TEXT, self._text(number))
            entries.append(bytes_field(self._field, entry))
            size += len(entry)
            if size > _BYTES_AT_ONCE:
                yield _interned(entries)
                entries, size = [], 0
        yield _interned(entries)
        self._known[unknown] = True


def _interned(entries: list[bytes]) -> bytes:
    return packet(NEEDS_STATE, bytes_field(_INTERNED_DATA, b"".join(entries)))
