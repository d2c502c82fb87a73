"""`ActivityBatch`: records as columns, the currency between a plugin and everything behind it.

A batch is immutable once made. Objects (`GenericTraceActivity`) are the easy way in, through `BatchBuilder`; numpy
arrays are the fast one, through `ActivityBatch.from_columns`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from devprof.model.activity import GenericTraceActivity, MetadataValue
from devprof.model.activity_type import ActivityType
from devprof.model.metadata import MetadataColumn, MetadataKind

__all__ = ["UNIX_NS", "ActivityBatch", "BatchBuilder"]

UNIX_NS = "unix_ns"
"""Name of the host clock: nanoseconds since the Unix epoch, CLOCK_REALTIME."""

_COLUMNS: dict[str, npt.DTypeLike] = {
    "activity_type": np.uint8,
    "name": np.int32,
    "start": np.int64,
    "end": np.int64,
    "id": np.int64,
    "device": np.int32,
    "resource": np.int64,
    "thread_id": np.int64,
    "linked": np.int64,
    "linked_user": np.int64,
    "flow_id": np.int64,
    "flow_type": np.uint8,
    "flow_start": np.uint8,
}


@dataclass(frozen=True, slots=True, eq=False)
class ActivityBatch:
    """Some records of one plugin, as columns of one length ``n``.

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
        unknown = columns.keys() - _COLUMNS.keys()
        if unknown:
            raise ValueError(f"unknown column(s) {sorted(unknown)}; expected among {sorted(_COLUMNS)}")
        given = {"activity_type": activity_type, "name": name, "start": start, "end": end, **columns}
        n = len(np.atleast_1d(np.asarray(start)))
        ready = {key: _column(key, given.get(key, 0), n, dtype) for key, dtype in _COLUMNS.items()}
        batch = cls(tuple(strings), **ready, metadata=metadata or {}, counters=counters or {}, clock=clock)
        batch._check()
        return batch

    @classmethod
    def from_activities(cls, activities: Iterable[GenericTraceActivity], *, clock: str = UNIX_NS) -> ActivityBatch:
        """Build a batch from objects; convenient, and about a hundred times slower than columns."""
        builder = BatchBuilder(clock=clock)
        for activity in activities:
            builder.append(activity)
        return builder.build()

    def take(self, rows: npt.NDArray[np.generic]) -> ActivityBatch:
        """Return a batch of the given rows (a mask or indices), sharing the string table."""
        return replace(
            self,
            **{key: getattr(self, key)[rows] for key in _COLUMNS},
            metadata={key: column.take(rows) for key, column in self.metadata.items()},
            counters={key: column.take(rows) for key, column in self.counters.items()},
        )

    def with_times(
        self, start: npt.NDArray[np.int64], end: npt.NDArray[np.int64], *, clock: str = UNIX_NS
    ) -> ActivityBatch:
        """Return the same records with other times, on another clock."""
        return replace(self, start=start, end=end, clock=clock)

    def activities(self) -> list[GenericTraceActivity]:
        """Return the records as objects, for tests and for reading by eye."""
        return [self._activity(row) for row in range(len(self))]

    def _activity(self, row: int) -> GenericTraceActivity:
        from devprof.model.activity import Flow

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
            counter_values={k: float(v) for k, v in self._items(self.counters, row).items()},  # type: ignore[arg-type]
        )

    def _items(self, columns: Mapping[str, MetadataColumn], row: int) -> dict[str, MetadataValue]:
        return {
            key: _value(column, row, self.strings)
            for key, column in columns.items()
            if column.present is None or column.present[row]
        }

    def _check(self) -> None:
        n, n_strings = len(self), len(self.strings)
        for key, column in {**self.metadata, **self.counters}.items():
            if len(column) != n:
                raise ValueError(f"metadata column {key!r} has {len(column)} rows, expected {n}")
            if column.kind is MetadataKind.STRING:
                _check_range(f"metadata column {key!r}", column.values, n_strings)
        _check_range("column 'name'", self.name, n_strings)


def _check_range(what: str, values: npt.NDArray[np.generic], n_strings: int) -> None:
    if len(values) and not (0 <= int(values.min()) and int(values.max()) < n_strings):
        raise ValueError(
            f"{what} indexes outside the string table: {values.min()}..{values.max()}, table has {n_strings} text(s)"
        )


def _column(key: str, given: npt.ArrayLike, n: int, dtype: npt.DTypeLike) -> npt.NDArray[np.generic]:
    array = np.asarray(given)
    if array.ndim == 0:
        array = np.full(n, array)
    if array.shape != (n,):
        raise ValueError(f"column {key!r} has shape {array.shape}, expected ({n},)")
    ready = np.ascontiguousarray(array, dtype=dtype)
    if ready.dtype != array.dtype and not np.array_equal(ready, array):
        raise ValueError(f"column {key!r} does not fit {np.dtype(dtype)}: values change from {array.dtype}")
    return ready


def _value(column: MetadataColumn, row: int, strings: Sequence[str]) -> MetadataValue:
    value = column.values[row]
    match column.kind:
        case MetadataKind.STRING:
            return strings[int(value)]
        case MetadataKind.INT_LIST:
            return tuple(int(v) for v in value)
        case MetadataKind.BOOL:
            return bool(value)
        case MetadataKind.FLOAT:
            return float(value)
        case _:
            return int(value)


class BatchBuilder:
    """Collect objects, then `build()` one batch. Not thread-safe."""

    def __init__(self, *, clock: str = UNIX_NS) -> None:
        self._clock = clock
        self._activities: list[GenericTraceActivity] = []

    def __len__(self) -> int:
        return len(self._activities)

    def append(self, activity: GenericTraceActivity) -> None:
        """Add one record."""
        self._activities.append(activity)

    def build(self) -> ActivityBatch:
        """Return the records as a batch.

        Raises:
            ValueError: a field does not fit its column, or one key holds values of two types.
        """
        from devprof.model.interning import Interner

        rows = self._activities
        texts = Interner()
        fixed = {
            "activity_type": [int(a.activity_type) for a in rows],
            "name": [texts.index(a.activity_name) for a in rows],
            "start": [a.start_ns for a in rows],
            "end": [a.end_ns for a in rows],
            **{key: [getattr(a, key) for a in rows] for key in _PLAIN},
            "flow_id": [a.flow.id if a.flow else 0 for a in rows],
            "flow_type": [a.flow.type if a.flow else 0 for a in rows],
            "flow_start": [int(a.flow.start) if a.flow else 0 for a in rows],
        }
        columns = {key: np.array(values, dtype=_wide(key)) for key, values in fixed.items()}
        metadata = _columns_of([a.metadata for a in rows], texts)
        counters = _columns_of([{k: float(v) for k, v in a.counter_values.items()} for a in rows], texts)
        return ActivityBatch.from_columns(
            texts.table, metadata=metadata, counters=counters, clock=self._clock, **columns
        )


_PLAIN = ("id", "device", "resource", "thread_id", "linked", "linked_user")


def _wide(key: str) -> npt.DTypeLike:
    # int64 first, so that a value too big for its column is refused with its name instead of wrapping
    return np.int64


def _columns_of(rows: Sequence[Mapping[str, MetadataValue]], texts: object) -> dict[str, MetadataColumn]:
    from devprof.model.interning import metadata_columns

    return metadata_columns(rows, texts)  # type: ignore[arg-type]
