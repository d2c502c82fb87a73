"""`ActivityBatch`: records as columns, the currency between a plugin and everything behind it.

A batch is immutable once made. Objects (`GenericTraceActivity`) are the easy way in, through `BatchBuilder`; numpy
arrays are the fast one, through `ActivityBatch.from_columns`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from devprof.model.activity import Flow, GenericTraceActivity, MetadataValue
from devprof.model.activity_type import ActivityType
from devprof.model.columns import COLUMNS, check_indices, fixed_column, metadata_table, repeated, text_table, value_at
from devprof.model.interning import Interner, metadata_columns
from devprof.model.items import Shape, merged
from devprof.model.metadata import MetadataColumn, MetadataKind
from devprof.model.rows import NUMBERS, Row, read_row

__all__ = ["UNIX_NS", "ActivityBatch", "BatchBuilder"]

UNIX_NS = "unix_ns"
"""Name of the host clock: nanoseconds since the Unix epoch, CLOCK_REALTIME."""


@dataclass(frozen=True, slots=True, eq=False)
class ActivityBatch:
    """Some records of one plugin, as columns of one length ``n``.

    However it is made, its columns have these dtypes and shapes, are contiguous and read-only, and index inside their tables.
    Arrays that fit already are taken over, not copied: their owner must not change them afterwards.

    Attributes:
        strings: table of distinct texts; `name` and string metadata index it.
        activity_type: (n,) uint8, numbers of `ActivityType`.
        name: (n,) int32, index into `strings`.
        start: (n,) int64, in units of `clock`.
        end: (n,) int64, in units of `clock`.
        id: (n,) int64, the plugin's launch number (vendor correlation id), 0: none.
        device: (n,) int32, device index.
        resource: (n,) int64, stream, queue or engine.
        thread_id: (n,) int64, native id of the host thread.
        linked: (n,) int64, op id at the launch, 0: none.
        linked_user: (n,) int64, user id at the launch, 0: none.
        flow_id: (n,) int64, explicit flow key, 0: derive it from `id`.
        flow_type: (n,) uint8, type of the explicit flow.
        flow_start: (n,) uint8, 1 where the explicit flow starts.
        metadata: typed columns by key.
        counters: float64 columns by counter name, for counter types.
        clock: name of the clock of `start` and `end`: `UNIX_NS`, or the plugin's clock domain (then they are ticks).

    Raises:
        ValueError: a column has another length, does not fit its dtype, or indexes outside `strings`.
    """

    strings: tuple[str, ...]
    activity_type: npt.NDArray[np.uint8]
    name: npt.NDArray[np.int32]
    start: npt.NDArray[np.int64]
    end: npt.NDArray[np.int64]
    id: npt.NDArray[np.int64]
    device: npt.NDArray[np.int32]
    resource: npt.NDArray[np.int64]
    thread_id: npt.NDArray[np.int64]
    linked: npt.NDArray[np.int64]
    linked_user: npt.NDArray[np.int64]
    flow_id: npt.NDArray[np.int64]
    flow_type: npt.NDArray[np.uint8]
    flow_start: npt.NDArray[np.uint8]
    metadata: Mapping[str, MetadataColumn] = field(default_factory=dict)
    counters: Mapping[str, MetadataColumn] = field(default_factory=dict)
    clock: str = UNIX_NS

    def __post_init__(self) -> None:
        n = len(self.activity_type)
        for key, dtype in COLUMNS.items():
            object.__setattr__(self, key, fixed_column(key, getattr(self, key), n, dtype))
        object.__setattr__(self, "strings", text_table(self.strings))
        object.__setattr__(self, "metadata", metadata_table("metadata", self.metadata, n, len(self.strings)))
        object.__setattr__(self, "counters", metadata_table("counter", self.counters, n, len(self.strings)))
        check_indices("column 'name'", self.name, len(self.strings))
        for key, column in self.counters.items():
            if column.kind is not MetadataKind.FLOAT:
                raise ValueError(f"counter {key!r} holds {column.kind.name} values, expected FLOAT")
        if not isinstance(self.clock, str):
            raise ValueError(f"clock is a {type(self.clock).__name__}, expected a name")

    def __len__(self) -> int:
        return len(self.start)

    @classmethod
    def from_columns(
        cls,
        strings: Sequence[str],
        *,
        activity_type: npt.ArrayLike,
        name: npt.ArrayLike,
        start: npt.ArrayLike,
        end: npt.ArrayLike,
        metadata: Mapping[str, MetadataColumn] | None = None,
        counters: Mapping[str, MetadataColumn] | None = None,
        clock: str = UNIX_NS,
        **columns: npt.ArrayLike,
    ) -> ActivityBatch:
        """Build a batch from arrays; columns not given are zero, scalars are repeated.

        Args:
            strings: table of distinct texts.
            activity_type, name, start, end, columns: as in the class; `start` gives the length.
            metadata, counters: typed columns of the same length.
            clock: clock of `start` and `end`.

        Raises:
            ValueError: a column is unknown, has another length, overflows its dtype, or indexes outside `strings`.
        """
        unknown = columns.keys() - COLUMNS.keys()
        if unknown:
            raise ValueError(f"unknown column(s) {sorted(unknown)}; expected among {sorted(COLUMNS)}")
        given = {"activity_type": activity_type, "name": name, "start": start, "end": end, **columns}
        n = np.atleast_1d(np.asarray(start)).shape[0]
        ready: dict[str, Any] = {key: repeated(given.get(key, 0), n) for key in COLUMNS}
        return cls(tuple(strings), **ready, metadata=metadata or {}, counters=counters or {}, clock=clock)

    @classmethod
    def from_activities(cls, activities: Iterable[GenericTraceActivity], *, clock: str = UNIX_NS) -> ActivityBatch:
        """Build a batch from objects; convenient, and about a hundred times slower than columns.

        Raises:
            ValueError: as `BatchBuilder.append`.
        """
        builder = BatchBuilder(clock=clock)
        for activity in activities:
            builder.append(activity)
        return builder.build()

    def take(self, rows: npt.NDArray[np.generic] | slice) -> ActivityBatch:
        """Return a batch of the given rows (a mask, indices or a slice), sharing the string table."""
        return replace(
            self,
            **{key: getattr(self, key)[rows] for key in COLUMNS},
            metadata={key: column.take(rows) for key, column in self.metadata.items()},
            counters={key: column.take(rows) for key, column in self.counters.items()},
        )

    def with_times(
        self, start: npt.NDArray[np.int64], end: npt.NDArray[np.int64], *, clock: str = UNIX_NS
    ) -> ActivityBatch:
        """Return the same records with other times, on another clock.

        Raises:
            ValueError: the times have another length, or are not int64.
        """
        return replace(self, start=start, end=end, clock=clock)

    def activities(self) -> list[GenericTraceActivity]:
        """Return the records as objects, for tests and for reading by eye.

        Raises:
            ValueError: a number in `activity_type` is no `ActivityType`.
        """
        return [self._activity(row) for row in range(len(self))]

    def _activity(self, row: int) -> GenericTraceActivity:
        flow_id = int(self.flow_id[row])
        return GenericTraceActivity(
            activity_type=ActivityType(int(self.activity_type[row])),
            activity_name=self.strings[self.name[row]],
            start_ns=int(self.start[row]),
            end_ns=int(self.end[row]),
            id=int(self.id[row]),
            device=int(self.device[row]),
            resource=int(self.resource[row]),
            thread_id=int(self.thread_id[row]),
            linked=int(self.linked[row]),
            linked_user=int(self.linked_user[row]),
            flow=Flow(flow_id, int(self.flow_type[row]), bool(self.flow_start[row])) if flow_id else None,
            metadata=self._items(self.metadata, row),
            counter_values={key: float(c.values[row]) for key, c in self.counters.items() if c.has(row)},
        )

    def _items(self, columns: Mapping[str, MetadataColumn], row: int) -> dict[str, MetadataValue]:
        return {key: value_at(column, row, self.strings) for key, column in columns.items() if column.has(row)}


class BatchBuilder:
    """Collect objects, then `build()` one batch. Not thread-safe."""

    def __init__(self, *, clock: str = UNIX_NS) -> None:
        """Make an empty builder.

        Args:
            clock: clock of the records' times.
        """
        self._clock = clock
        self._shapes: dict[str, Shape] = {}
        self._rows: list[Row] = []

    def __len__(self) -> int:
        return len(self._rows)

    def append(self, activity: GenericTraceActivity) -> None:
        """Add one record as it is now; later changes to the object have no effect.

        Raises:
            RecordError: a field does not fit its column; the message names it.
            MixedKindsError: a metadata key holds another type than in an earlier record; another batch can hold it.
        """
        row = read_row(activity)
        if not row.shapes.items() <= self._shapes.items():
            self._shapes = merged(self._shapes, row.shapes)
        self._rows.append(row)

    def build(self) -> ActivityBatch:
        """Return the records as a batch."""
        rows, texts = list(self._rows), Interner()
        numbers = np.array([row.numbers for row in rows], dtype=np.int64).reshape(len(rows), len(NUMBERS))
        columns: dict[str, Any] = dict(zip(NUMBERS, numbers.T, strict=True))
        columns["name"] = [texts.index(row.name) for row in rows]
        counted = dict.fromkeys((name for row in rows for name in row.counters), Shape(MetadataKind.FLOAT))
        metadata = metadata_columns([row.metadata for row in rows], self._shapes, texts)
        counters = metadata_columns([row.counters for row in rows], counted, texts)
        return ActivityBatch.from_columns(
            texts.table, **columns, metadata=metadata, counters=counters, clock=self._clock
        )
