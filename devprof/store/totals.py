"""`Totals`: counts and times per name, of records that are not kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from devprof.model import ActivityType

__all__ = ["MAX_NAMES", "OTHER_NAMES", "NameTotal", "Totals"]

Longs = npt.NDArray[np.int64]

MAX_NAMES = 20_000
"""Names that are told apart: texts that never repeat must not fill the memory."""

OTHER_NAMES = "(other names)"
"""Stands for what came under further names."""


@dataclass(frozen=True, slots=True)
class NameTotal:
    """What all records of one name and kind come to.

    Attributes:
        source: who recorded them: ``"host"``, or a plugin's name.
        name: what they are called.
        activity_type: their kind.
        count: how many.
        total_ns, min_ns, max_ns: their durations: the sum, the shortest, the longest.
    """

    source: str
    name: str
    activity_type: ActivityType
    count: int
    total_ns: int
    min_ns: int
    max_ns: int

    @property
    def mean_ns(self) -> float:
        """The mean duration."""
        return self.total_ns / self.count


class Totals:
    """Sums of durations, in the ticks of one clock. Not thread-safe: the owner holds a lock."""

    def __init__(self) -> None:
        # (kind, name) -> count, sum, least, greatest
        self._sums: dict[tuple[int, str], tuple[int, int, int, int]] = {}

    def __len__(self) -> int:
        return len(self._sums)

    def add(
        self, strings: Sequence[str], name: npt.NDArray[np.int32], activity_type: npt.NDArray[np.uint8], duration: Longs
    ) -> None:
        """Add records.

        Args:
            strings: table of texts.
            name: (n,) index into it.
            activity_type: (n,) kinds.
            duration: (n,) int64, ticks.
        """
        if not len(name):
            return
        code = name.astype(np.int64) << 8 | activity_type
        order = np.argsort(code, kind="stable")
        code, duration = code[order], duration[order]
        first = np.flatnonzero(np.concatenate([[True], code[1:] != code[:-1]]))
        counts = np.diff(np.append(first, len(code)))
        sums, least, greatest = (f.reduceat(duration, first) for f in (np.add, np.minimum, np.maximum))
        rows = zip(code[first], counts, sums, least, greatest, strict=True)
        for key, *numbers in ([int(number) for number in row] for row in rows):
            self._merge((key & 255, strings[key >> 8]), (numbers[0], numbers[1], numbers[2], numbers[3]))

    def copied(self) -> Totals:
        """Return the same sums, which later records do not change."""
        copy = Totals()
        copy._sums = dict(self._sums)
        return copy

    def merge(self, other: Totals) -> None:
        """Add the sums of another one, on the same clock."""
        for key, numbers in other._sums.items():
            self._merge(key, numbers)

    def rows(self, source: str, ns_per_tick: float = 1.0) -> list[NameTotal]:
        """Return the sums, the greatest first.

        Args:
            source: who recorded them.
            ns_per_tick: rate of the clock.
        """
        rows = [
            NameTotal(source, name, ActivityType(kind), n, *(round(t * ns_per_tick) for t in (total, least, greatest)))
            for (kind, name), (n, total, least, greatest) in self._sums.items()
        ]
        return sorted(rows, key=lambda row: (-row.total_ns, row.name, int(row.activity_type)))

    def _merge(self, key: tuple[int, str], numbers: tuple[int, int, int, int]) -> None:
        if key not in self._sums and len(self._sums) >= MAX_NAMES:
            key = (key[0], OTHER_NAMES)
        n, total, least, greatest = self._sums.get(key, (0, 0, numbers[2], numbers[3]))
        self._sums[key] = (n + numbers[0], total + numbers[1], min(least, numbers[2]), max(greatest, numbers[3]))
