"""Lists of numbers in a Perfetto trace: as text, written once and named by its number from then on."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from devprof.export.perfetto_names import interned

__all__ = ["Lists"]

Longs = npt.NDArray[np.int64]

_MOST_KNOWN = 1 << 15
_FACTOR = 0x9E3779B97F4A7C15  # odd, so that no bit of a number gets lost; which one is of no matter


class Lists:
    """The texts of lists, with numbers that follow those of a table of texts."""

    def __init__(self, field: int, first: int) -> None:
        """Know no list yet.

        Args:
            field: of ``InternedData``: where the texts stand.
            first: number of the first one.
        """
        self._field = field
        self._next = first
        self._known: dict[tuple[int, ...], int] = {}

    def numbers(self, values: Longs) -> tuple[Longs, list[bytes]]:
        """Return the number of each list, and packets with those texts that are not known: to be written before.

        Args:
            values: (m, k) int64, m > 0.

        Returns:
            (m,) int64; after very many lists one may get a second number.
        """
        rows, which = _distinct(values)
        if len(self._known) > _MOST_KNOWN:
            self._known = {}
        new: list[tuple[int, str]] = []
        found = []
        for row in map(tuple, rows.tolist()):
            number = self._known.get(row, -1)
            if number < 0:
                number = self._known[row] = self._next
                self._next += 1
                new.append((number, str(list(row))))
            found.append(number)
        return np.array(found, dtype=np.int64)[which], list(interned(self._field, new)) if new else []


def _distinct(values: Longs) -> tuple[Longs, Longs]:
    """Return the distinct rows, and which one of them each row is; as `numpy.unique`, which sorts whole rows."""
    if values.shape[1] == 0 or (values == values[0]).all():
        return values[:1], np.zeros(len(values), dtype=np.int64)
    words = values.view(np.uint64)
    mixed = words[:, 0].copy()
    for column in words.T[1:]:
        mixed *= np.uint64(_FACTOR)
        mixed ^= mixed >> np.uint64(29)
        mixed += column
    _, first, which = np.unique(mixed, return_index=True, return_inverse=True)
    which = which.reshape(-1)
    if (values[first[which]] == values).all():
        return values[first], which
    rows, which = np.unique(values, axis=0, return_inverse=True)
    return rows, which.reshape(-1)
