"""`TextTable`: texts as they are written, in one block of bytes that native code reads."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["TextTable"]

_MOST_BYTES = 1 << 20


class TextTable:
    """Texts of a trace as they are written, made when asked for; forgotten when they grow large.

    It takes 4 bytes for each text of the trace, and what is written of about as many as one chunk needs.
    """

    def __init__(self, texts: Sequence[str], write: Callable[[str], str] = str) -> None:
        self._texts = texts
        self._write = write
        self._forget()

    @classmethod
    def of(cls, texts: Iterable[str]) -> TextTable:
        """Return a table that holds all of these texts, in their order."""
        table = cls(list(texts))
        table.numbers(np.arange(len(table._texts)))
        return table

    def begin(self) -> None:
        """Say that a new chunk begins: numbers given before may be forgotten."""
        if len(self._bytes) > _MOST_BYTES:
            self._forget()

    def numbers(self, indices: npt.NDArray[np.integer]) -> npt.NDArray[np.int32]:
        """Return the numbers that texts have in this table: (m,) int32, good until the next chunk begins.

        Args:
            indices: (m,) those of the texts in the trace.
        """
        found: npt.NDArray[np.int32] = self._number[indices]
        if (missing := found < 0).any():
            for index in np.unique(indices[missing]).tolist():
                self._bytes += self._write(self._texts[index]).encode()
                self._number[index] = len(self._offsets) - 1
                self._offsets.append(len(self._bytes))
            found = self._number[indices]
        return found

    @property
    def number(self) -> npt.NDArray[np.int32]:
        """The number of each text of the trace, -1: it is not in the table; as good as those that `numbers` gives."""
        return self._number

    def block(self) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
        """Return the bytes of all texts, and where each begins, with the end of the last one.

        They are the table's own memory: to be let go before the next text is asked for.
        """
        return np.frombuffer(self._bytes, np.uint8), np.frombuffer(self._offsets, np.int64)

    def _forget(self) -> None:
        self._number = np.full(len(self._texts), -1, dtype=np.int32)
        self._bytes = bytearray()
        self._offsets = array("q", [0])
