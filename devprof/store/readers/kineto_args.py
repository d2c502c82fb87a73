"""`ChunkArgs`: the args of a chunk's events, as ids where they are ids, as counter values, or as items."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from devprof.store.items import ItemKind
from devprof.store.readers.gathering import EventTable
from devprof.store.readers.json_chunks import ArgsColumn, TypedValues
from devprof.store.readers.kineto_kinds import HAS_LAUNCH, HAS_NO_OP, HAS_OWN_ID

__all__ = ["ChunkArgs"]

Longs = npt.NDArray[np.int64]

_EXTERNAL = frozenset({"external id", "externalid"})
_CORRELATION = frozenset({"correlation", "correlation id", "correlationid"})


class ChunkArgs:
    """Takes args key by key.

    Args:
        table: where items go.
        first: index of the chunk's first event there.
        types: (n,) types of the chunk's events.
        counters: (n,) bool, which of them are counters.

    Attributes:
        id, linked: (n,) int64, those columns of the events.
    """

    def __init__(
        self, table: EventTable, first: int, types: npt.NDArray[np.uint8], counters: npt.NDArray[np.bool_]
    ) -> None:
        self._table = table
        self._first = first
        self._types = types
        self._counters = counters
        self.id: Longs = np.zeros(len(types), dtype=np.int64)
        self.linked: Longs = np.zeros(len(types), dtype=np.int64)

    def add(self, column: ArgsColumn, events: Longs, inside: Longs | None) -> None:
        """Take values of one key.

        Args:
            column: the values.
            events: (m,) positions of their events among the n.
            inside: (m,) positions of the values in the column; None: they are all of it.
        """
        key = column.key
        spelled = key.lower().replace("_", " ")
        for part in column.typed(inside, self._table):
            at = events[part.at]
            kept = np.ones(len(at), dtype=np.bool_)
            if part.kind in (ItemKind.INT, ItemKind.FLOAT):
                kept = self._as_counters(key, at, part)
            if part.kind is ItemKind.INT and spelled in _EXTERNAL:
                kept = self._as_op_ids(at, part.values)
            elif part.kind is ItemKind.INT and spelled in _CORRELATION:
                kept = self._as_launch_numbers(at, part.values)
            if kept.all():
                self._table.add_items(key, part.kind, at + self._first, part.values)
            elif kept.any():
                self._table.add_items(key, part.kind, at[kept] + self._first, part.values[kept])

    def _as_counters(self, key: str, at: Longs, part: TypedValues) -> npt.NDArray[np.bool_]:
        """Take the values of counters, and return which are left."""
        counted = self._counters[at]
        if counted.any():
            values = part.values[counted].astype(np.float64)
            self._table.add_counters(key, at[counted] + self._first, values)
        return ~counted

    def _as_op_ids(self, at: Longs, values: Longs) -> npt.NDArray[np.bool_]:
        """Take op ids, and return which are left; 0 is none, and stays as it is written."""
        types = self._types[at]
        own: npt.NDArray[np.bool_] = HAS_OWN_ID[types] & (values != 0)
        others: npt.NDArray[np.bool_] = ~HAS_OWN_ID[types] & ~HAS_NO_OP[types] & (values != 0)
        self.id[at[own]] = values[own]
        self.linked[at[others]] = values[others]
        return ~(own | others)

    def _as_launch_numbers(self, at: Longs, values: Longs) -> npt.NDArray[np.bool_]:
        launch: npt.NDArray[np.bool_] = HAS_LAUNCH[self._types[at]] & (values != 0)
        self.id[at[launch]] = values[launch]
        return ~launch
