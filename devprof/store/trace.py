"""`Trace`: a whole capture as immutable columns."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from devprof.model import ActivityType, Role
from devprof.store.items import ItemColumn, ItemKind, ItemValue
from devprof.store.places import Place, PlaceKind, Row

__all__ = ["COLUMNS", "ROLES", "Trace"]

COLUMNS: dict[str, npt.DTypeLike] = {
    "activity_type": np.uint8,
    "name": np.int32,
    "start_ns": np.int64,
    "end_ns": np.int64,
    "row": np.int32,
    "id": np.int64,
    "linked": np.int64,
    "linked_user": np.int64,
    "flow_id": np.int64,
    "flow_type": np.uint8,
    "flow_start": np.uint8,
    "parent": np.int32,
}
"""Dtype of every fixed column, by name: 63 bytes per event."""

ROLES = tuple(Role)
"""Roles by the numbers that `Trace.role` gives."""

_ROLE_OF_TYPE = np.full(256, ROLES.index(Role.OTHER), dtype=np.uint8)
for _kind in ActivityType:
    _ROLE_OF_TYPE[_kind] = ROLES.index(_kind.role)


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """What one capture recorded: n events, where they stand, what is known about them. Immutable.

    Times are Unix ns. Events are in no promised order, except that those of one host thread are in the order in which they
    were entered. Made by `TraceBuilder`; whoever makes one otherwise hands its arrays over.

    Attributes:
        strings: table of distinct texts; names and text items index it.
        activity_type: (n,) uint8, numbers of `ActivityType`.
        name: (n,) int32, index into `strings`.
        start_ns, end_ns: (n,) int64, Unix ns.
        row: (n,) int32, index into `rows`.
        id: (n,) int64: of an op or a user range its op id ("External id"); of a launch and of device work the launch number
            ("correlation"); of a user range's span on a device the range's id. 0: none.
        linked: (n,) int64, op id of the op that launched this; of a host range the id of the range around it. 0: none.
        linked_user: (n,) int64, id of the user range around it, 0: none.
        flow_id, flow_type, flow_start: (n,) int64, uint8, uint8: an arrow's end; flow_id 0: none.
        parent: (n,) int32, index of the event above in the tree, -1: none. Of a host event the innermost one around it, of a
            launch its op, of device work its launch, else its op.
        places: host processes and devices.
        rows: threads and streams.
        items: metadata by Kineto's keys.
        counters: values of counter samples, by counter name.
        window_start_ns, window_end_ns: the capture window, Unix ns.
        facts: what is known of the capture, JSON values: versions, host, clocks, the account of each plugin.

    Raises:
        ValueError: a column has another length or dtype, or indexes outside its table.
    """

    strings: tuple[str, ...]
    activity_type: npt.NDArray[np.uint8]
    name: npt.NDArray[np.int32]
    start_ns: npt.NDArray[np.int64]
    end_ns: npt.NDArray[np.int64]
    row: npt.NDArray[np.int32]
    id: npt.NDArray[np.int64]
    linked: npt.NDArray[np.int64]
    linked_user: npt.NDArray[np.int64]
    flow_id: npt.NDArray[np.int64]
    flow_type: npt.NDArray[np.uint8]
    flow_start: npt.NDArray[np.uint8]
    parent: npt.NDArray[np.int32]
    places: tuple[Place, ...] = ()
    rows: tuple[Row, ...] = ()
    items: Mapping[str, ItemColumn] = field(default_factory=dict)
    counters: Mapping[str, ItemColumn] = field(default_factory=dict)
    window_start_ns: int = 0
    window_end_ns: int = 0
    facts: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        n = len(self.start_ns)
        for key, dtype in COLUMNS.items():
            object.__setattr__(self, key, _column(key, getattr(self, key), n, dtype))
        _check_range("name", self.name, 0, len(self.strings))
        _check_range("row", self.row, 0, len(self.rows))
        _check_range("parent", self.parent, -1, n)
        for row in self.rows:
            if not 0 <= row.place < len(self.places):
                raise ValueError(f"a row is in place {row.place}, and there are {len(self.places)} places")
        for key, column in [*self.items.items(), *self.counters.items()]:
            self._check_items(key, column)

    def __len__(self) -> int:
        return len(self.start_ns)

    def __repr__(self) -> str:
        seconds = (self.window_end_ns - self.window_start_ns) / 1e9
        return f"<Trace of {len(self)} events on {len(self.rows)} rows, window {seconds:.6f} s>"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the window, the rows and what is on them."""
        from devprof.store.notebook import html_of

        return html_of(self)

    @property
    def user_window_ns(self) -> tuple[int, int]:
        """Start and end of the window as the user saw it, Unix ns; (0, 0): not known.

        Torch's window goes on while devprof takes the plugins' records. The account of the session says when the user's part
        ended; device work that was still running then belongs to it.
        """
        report = self.facts.get("report")
        end_ns = report.get("end_ns") if isinstance(report, Mapping) else None
        if not isinstance(end_ns, int) or not self.window_start_ns < end_ns < self.window_end_ns:
            return self.window_start_ns, self.window_end_ns
        last_ns = int(self.end_ns[self.on_device].max(initial=end_ns))
        return self.window_start_ns, min(last_ns, self.window_end_ns)

    @property
    def duration_ns(self) -> npt.NDArray[np.int64]:
        """(n,) int64, end minus start."""
        return self.end_ns - self.start_ns

    @property
    def role(self) -> npt.NDArray[np.uint8]:
        """(n,) uint8, index into `ROLES`."""
        return _ROLE_OF_TYPE[self.activity_type]

    @property
    def on_device(self) -> npt.NDArray[np.bool_]:
        """(n,) bool: which events stand on a device's row."""
        rows = [self.places[row.place].kind is PlaceKind.DEVICE for row in self.rows]
        return np.array(rows, dtype=np.bool_)[self.row] if rows else np.zeros(len(self), dtype=np.bool_)

    @property
    def place(self) -> npt.NDArray[np.int32]:
        """(n,) int32, index of each event's place."""
        places = np.array([row.place for row in self.rows], dtype=np.int32)
        return places[self.row] if len(places) else np.zeros(len(self), dtype=np.int32)

    def name_of(self, event: int) -> str:
        """Return an event's name."""
        return self.strings[int(self.name[event])]

    def item(self, key: str, event: int) -> ItemValue | None:
        """Return an event's item, or None where it has none."""
        column = self.items.get(key)
        return None if column is None else column.value(event, self.strings)

    def items_of(self, event: int) -> dict[str, ItemValue]:
        """Return all items of an event, by key; for reading by eye, not for a loop over events."""
        found = ((key, column.value(event, self.strings)) for key, column in self.items.items())
        return {key: value for key, value in found if value is not None}

    def named(self, name: str) -> npt.NDArray[np.int64]:
        """Return the indices of the events of that name, ascending."""
        numbers = [i for i, text in enumerate(self.strings) if text == name]
        return np.flatnonzero(np.isin(self.name, numbers))

    def of_type(self, *types: ActivityType) -> npt.NDArray[np.int64]:
        """Return the indices of the events of these kinds, ascending."""
        wanted = np.zeros(256, dtype=np.bool_)
        wanted[[int(kind) for kind in types]] = True
        return np.flatnonzero(wanted[self.activity_type])

    def with_parent(self, parent: npt.NDArray[np.integer[Any]]) -> Trace:
        """Return the same events with another tree.

        Args:
            parent: (n,), index of the event above each, -1: none.
        """
        return replace(self, parent=np.asarray(parent).astype(np.int32))

    def with_facts(self, **facts: object) -> Trace:
        """Return the same events with further facts."""
        return replace(self, facts={**self.facts, **facts})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the trace as one file; see `devprof.store.save`."""
        from devprof.store.files import save

        save(self, path)

    @property
    def df(self) -> Any:
        """The trace as a `polars.DataFrame`; see `devprof.store.frames.frame_of`. Needs the extra ``polars``."""
        from devprof.store.frames import frame_of

        return frame_of(self)

    def to_pandas(self) -> Any:
        """Return the trace as a `pandas.DataFrame`. Needs the extra ``polars``, pandas and pyarrow."""
        from devprof.store.frames import pandas_of

        return pandas_of(self)

    def sql(self, query: str) -> Any:
        """Answer an SQL query over the table ``events``, as a `polars.DataFrame`. Needs the extra ``polars``.

        Example:
            trace.sql("SELECT name, sum(duration_ns) FROM events WHERE category = 'kernel' GROUP BY name")
        """
        from devprof.store.frames import sql

        return sql(self, query)

    def take(self, events: npt.NDArray[np.generic]) -> Trace:
        """Return a trace of some of the events, in the same order.

        A parent that is left out is replaced by the next one above it that stays.

        Args:
            events: (n,) bool, or indices, which are put in order.
        """
        kept = np.zeros(len(self), dtype=np.bool_)
        kept[events] = True
        new_index = np.where(kept, np.cumsum(kept) - 1, -1)
        parent = self._nearest_kept(kept)[kept]
        columns: dict[str, Any] = {key: getattr(self, key)[kept] for key in COLUMNS}
        columns["parent"] = np.where(parent >= 0, new_index[parent], -1).astype(np.int32)
        return replace(
            self,
            **columns,
            items=_taken(self.items, new_index),
            counters=_taken(self.counters, new_index),
        )

    def _nearest_kept(self, kept: npt.NDArray[np.bool_]) -> npt.NDArray[np.int32]:
        parent = self.parent
        while True:
            outside = (parent >= 0) & ~kept[parent]
            if not outside.any():
                return parent
            parent = np.where(outside, self.parent[parent], parent).astype(np.int32)

    def _check_items(self, key: str, column: ItemColumn) -> None:
        _check_range(f"the events of item {key!r}", column.events, 0, len(self))
        if column.kind in (ItemKind.STRING, ItemKind.JSON):
            _check_range(f"item {key!r}", column.values, 0, len(self.strings))


def _taken(items: Mapping[str, ItemColumn], new_index: npt.NDArray[np.int64]) -> dict[str, ItemColumn]:
    taken = {key: column.take(new_index) for key, column in items.items()}
    return {key: column for key, column in taken.items() if len(column)}


def _column(key: str, values: npt.NDArray[Any], n: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    if values.shape != (n,) or values.dtype != dtype:
        raise ValueError(
            f"column {key!r} is {values.dtype} of shape {values.shape}, expected {np.dtype(dtype)} of shape ({n},)"
        )
    view = values.view()
    view.flags.writeable = False
    return view


def _check_range(what: str, values: npt.NDArray[Any], low: int, stop: int) -> None:
    if values.size and (values.min() < low or values.max() >= stop):
        raise ValueError(f"{what} holds {values.min()} to {values.max()}, expected {low} to {stop - 1}")
