"""`ItemColumn`: one metadata key over those events that carry it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from devprof.model import MetadataColumn, MetadataKind

__all__ = ["ItemColumn", "ItemKind", "ItemValue", "RawJson"]


class ItemKind(IntEnum):
    """Type of an item column; the first five are `devprof.model.MetadataKind`."""

    INT = MetadataKind.INT
    FLOAT = MetadataKind.FLOAT
    BOOL = MetadataKind.BOOL
    STRING = MetadataKind.STRING
    INT_LIST = MetadataKind.INT_LIST
    JSON = 5
    """int32 index into the trace's texts; the text is JSON and is printed as it is (shapes, what a reader does not know)."""


_DTYPES: dict[ItemKind, npt.DTypeLike] = {
    ItemKind.INT: np.int64,
    ItemKind.FLOAT: np.float64,
    ItemKind.BOOL: np.uint8,
    ItemKind.STRING: np.int32,
    ItemKind.INT_LIST: np.int64,
    ItemKind.JSON: np.int32,
}


class RawJson(str):
    """The value of a `JSON` item: text that is JSON already."""

    __slots__ = ()


ItemValue = bool | int | float | str | tuple[int, ...]
"""What `ItemColumn.value` returns; a `JSON` item as `RawJson`."""


@dataclass(frozen=True, slots=True, eq=False)
class ItemColumn:
    """Values of one key, for m of a trace's n events. Immutable.

    Attributes:
        kind: type of the values.
        events: (m,) int64, indices of the events that carry the key, ascending, each once.
        values: (m,), or (m, k) for `INT_LIST`; int64, float64, uint8 or int32 as the kind says.

    Raises:
        ValueError: the shapes do not match, the events are not ascending, or a value does not fit the dtype.
    """

    kind: ItemKind
    events: npt.NDArray[np.int64]
    values: npt.NDArray[Any]

    def __post_init__(self) -> None:
        kind = ItemKind(self.kind)
        events = _frozen(np.asarray(self.events), np.int64)
        values = _frozen(np.asarray(self.values), _DTYPES[kind])
        if events.ndim != 1 or values.shape[:1] != events.shape or values.ndim != 1 + (kind is ItemKind.INT_LIST):
            raise ValueError(f"{kind.name} items of shape {values.shape} for events of shape {events.shape}")
        if len(events) and (events[0] < 0 or (events[1:] <= events[:-1]).any()):
            raise ValueError("the events of an item column must ascend from 0 on, each once")
        object.__setattr__(self, "kind", kind)
        object.__setattr__(self, "events", events)
        object.__setattr__(self, "values", values)

    def __len__(self) -> int:
        return len(self.events)

    def find(self, event: int) -> int:
        """Return the position of an event's value, or -1 where it has none."""
        at = int(np.searchsorted(self.events, event))
        return at if at < len(self.events) and self.events[at] == event else -1

    def value(self, event: int, strings: Sequence[str]) -> ItemValue | None:
        """Return an event's value as an object, or None where it has none.

        Args:
            event: index of the event.
            strings: the trace's texts.
        """
        at = self.find(event)
        if at < 0:
            return None
        match self.kind:
            case ItemKind.STRING:
                return strings[int(self.values[at])]
            case ItemKind.JSON:
                return RawJson(strings[int(self.values[at])])
            case ItemKind.INT_LIST:
                return tuple(self.values[at].tolist())
            case ItemKind.BOOL:
                return bool(self.values[at])
            case ItemKind.INT | ItemKind.FLOAT:
                return self.values[at].item()  # type: ignore[no-any-return]  # int or float, as the dtype says

    def present(self, n: int) -> npt.NDArray[np.bool_]:
        """Return which of `n` events carry the key: (n,) bool."""
        mask = np.zeros(n, dtype=np.bool_)
        mask[self.events] = True
        return mask

    def dense(self, n: int, fill: float = 0) -> npt.NDArray[Any]:
        """Return one value for each of `n` events: (n,) or (n, k), `fill` where an event has none."""
        full = np.full((n, *self.values.shape[1:]), fill, dtype=self.values.dtype)
        full[self.events] = self.values
        return full

    def take(self, new_index: npt.NDArray[np.int64]) -> ItemColumn:
        """Return the column for a trace of fewer events.

        Args:
            new_index: (n,) int64, each event's index in the new trace, ascending over those kept; -1: left out.
        """
        index = new_index[self.events]
        kept = index >= 0
        return ItemColumn(self.kind, index[kept], self.values[kept])

    @classmethod
    def from_metadata(cls, column: MetadataColumn, first: int, *, json: bool = False) -> ItemColumn:
        """Return a batch's metadata column as items of the events from `first` on; texts keep their numbers."""
        there = np.arange(len(column)) if column.present is None else np.flatnonzero(column.present)
        kind = ItemKind.JSON if json and column.kind is MetadataKind.STRING else ItemKind(int(column.kind))
        return cls(kind, there + first, column.values[there])


def _frozen(array: npt.NDArray[Any], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    if array.dtype != dtype:
        if array.size and not np.can_cast(array.dtype, dtype, "same_kind"):
            raise ValueError(f"items are {array.dtype}, expected {np.dtype(dtype)}")
        array = array.astype(dtype)
    view = array.view()
    view.flags.writeable = False
    return view
