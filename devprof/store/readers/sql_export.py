"""`SqlExport`: what reading nvprof's and Nsight Systems' tables has in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from devprof.store.items import ItemKind
from devprof.store.places import Place, PlaceKind, Row
from devprof.store.readers.gathering import EventTable
from devprof.store.readers.nvtx_names import RangeText, read_range_text
from devprof.store.readers.sqlite import ABSENT, Database, Records
from devprof.store.trace import Trace

__all__ = ["SqlExport", "device_place", "taken"]

_FARTHEST = 2**62
"""Times beyond this are none; what is added to the others cannot overflow."""


class SqlExport:
    """One export while it is read. Used by one thread.

    Attributes:
        database: the file.
        table: the events so far.
        left_out: why records were left out, counted.
        notes: what a reader of the trace should know.
    """

    def __init__(self, database: Database, shift_ns: int = 0) -> None:
        """Begin with nothing.

        Args:
            database: the file.
            shift_ns: Unix ns of the file's time 0.
        """
        self.database = database
        self.table = EventTable()
        self.left_out: Counter[str] = Counter()
        self.notes: list[str] = []
        self._shift_ns = shift_ns
        self._places: dict[Place, int] = {}
        self._rows: dict[tuple[int, int], int] = {}

    def place(self, place: Place) -> int:
        """Return the index of a place, adding it if it is new."""
        return self._places.setdefault(place, len(self._places))

    def rows(self, places: npt.NDArray[np.integer[Any]], ids: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        """Return the index of each record's row: (m,) int32.

        Args:
            places: (m,) index of its place.
            ids: (m,) native thread id, or number of the stream; `ABSENT` counts as 0.
        """
        if not len(places):
            return np.empty(0, dtype=np.int32)
        pairs = np.stack([places.astype(np.int64), np.where(ids == ABSENT, 0, ids)])
        distinct, which = np.unique(pairs, axis=1, return_inverse=True)
        keys = [(place, number) for place, number in distinct.T.tolist()]
        numbers = [self._rows.setdefault(key, len(self._rows)) for key in keys]
        return np.array(numbers, dtype=np.int32)[which.ravel()]

    def timed(
        self,
        table: str,
        records: Records | None,
        columns: Sequence[str] = ("start", "end"),
        *,
        open_ended: bool = False,
    ) -> Records:
        """Return those records whose times can be, and count the others.

        Args:
            table: name of their table, for the account.
            records: what was read, or None.
            columns: columns that hold times.
            open_ended: whether all but the first may be `ABSENT`.
        """
        if records is None:
            return Records({column: np.empty(0, dtype=np.int64) for column in columns}, {}, 0)
        if records.skipped:
            self.left_out[f"{table}: no integer where one must be"] += records.skipped
        times = np.stack([records.numbers[column] for column in columns])
        given = times != ABSENT
        sound = given & (np.abs(np.where(given, times, 0)) < _FARTHEST)
        if open_ended:
            sound[1:] |= ~given[1:]
        kept = sound.all(axis=0)
        if kept.all():
            return records
        self.left_out[f"{table}: a time that cannot be"] += int((~kept).sum())
        return taken(records, kept)

    def add(self, n: int, *, start: npt.NDArray[np.int64], end: npt.NDArray[np.int64], **columns: npt.ArrayLike) -> int:
        """Add records, with times of the file, and return the index of the first event."""
        return self.table.add(n, start_ns=start + self._shift_ns, end_ns=end + self._shift_ns, **columns)

    def range_names(self, texts: npt.NDArray[np.int32], strings: Sequence[str]) -> list[RangeText]:
        """Return what the texts of ranges say, one per record.

        Args:
            texts: (m,) index into `strings` of each range's text.
            strings: the texts.
        """
        known = {number: read_range_text(strings[number]) for number in np.unique(texts).tolist()}
        return [known[number] for number in texts.tolist()]

    def add_range_items(self, first: int, ranges: Sequence[RangeText]) -> None:
        """Add what the texts of ranges say as items of the events from `first` on, with Kineto's keys."""
        for key, values in (
            ("Sequence number", [said.sequence for said in ranges]),
            ("Record function id", [said.op_id for said in ranges]),
        ):
            there = [at for at, value in enumerate(values) if value is not None]
            numbers = np.array([values[at] for at in there], dtype=np.int64)
            self.table.add_items(key, ItemKind.INT, np.array(there, dtype=np.int64) + first, numbers)
        for key, kind, texts in (
            ("Input Dims", ItemKind.JSON, [said.sizes for said in ranges]),
            ("input_op_ids", ItemKind.STRING, [said.inputs for said in ranges]),
        ):
            there = [at for at, text in enumerate(texts) if text is not None]
            found = self.table.texts([text for text in texts if text is not None])
            self.table.add_items(key, kind, np.array(there, dtype=np.int64) + first, found)

    def add_flag(self, key: str, events: npt.NDArray[np.int64], value: bool) -> None:
        """Add one truth value to some events."""
        self.table.add_items(key, ItemKind.BOOL, events, np.full(len(events), value, dtype=np.uint8))

    def build(
        self,
        format: str,
        *,
        row_names: Mapping[tuple[int, int], str],
        window_ns: tuple[int, int] | None = None,
        **facts: object,
    ) -> Trace:
        """Return the trace, the events of each row in the order of entering.

        Args:
            format: name of the file's format, for the facts.
            row_names: names of rows by (place, id).
            window_ns: window of the capture in the file's time; None: from the first start to the last end.
            facts: further facts.
        """
        start, end, row = (self.table.column(key) for key in ("start_ns", "end_ns", "row"))
        if window_ns is not None:
            window = (window_ns[0] + self._shift_ns, window_ns[1] + self._shift_ns)
        else:
            window = (int(start.min()), int(max(start.max(), end.max()))) if len(start) else (0, 0)
        rows = [Row(place, number, row_names.get((place, number), "")) for place, number in self._rows]
        account: dict[str, object] = {"format": format, "left_out": dict(self.left_out), "notes": self.notes}
        return self.table.build(
            list(self._places),
            rows,
            order=np.lexsort((-end, start, row)),
            window_ns=window,
            facts={"host": "file", "file": {**account, **facts}},
        )


def taken(records: Records, kept: npt.NDArray[np.bool_]) -> Records:
    """Return some of the records."""
    there = np.flatnonzero(kept).tolist()
    return Records(
        {key: values[kept] for key, values in records.numbers.items()},
        {key: [values[at] for at in there] for key, values in records.others.items()},
        0,
    )


def device_place(number: int, name: str, properties: Mapping[str, object], label: str = "") -> Place:
    """Return the place of a CUDA device."""
    words = f"GPU {number}"
    return Place(number, PlaceKind.DEVICE, name or words, label or words, backend="cuda", properties=properties)
