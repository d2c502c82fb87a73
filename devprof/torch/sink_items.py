"""Metadata as the sink reads it, by key and type, as the typed columns of a Trace."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from devprof.store import ItemColumn, ItemKind
from devprof.torch.sink_columns import Typed

__all__ = ["ItemMaker"]

_LISTS = frozenset({"block", "grid"})
"""Keys whose values are lists of so many whole numbers, as Kineto's CUPTI part and devprof's plugins write them."""

_FORMAT: dict[ItemKind, Callable[[Any], object]] = {
    ItemKind.INT: int,
    ItemKind.BOOL: bool,
    ItemKind.FLOAT: lambda value: float(value) if np.isfinite(value) else str(value),
}


class ItemMaker:
    """Makes the item columns of one trace; new texts go to the end of its table.

    Args:
        texts: the trace's texts; added to.
    """

    def __init__(self, texts: list[str]) -> None:
        self._texts = texts
        self._numbers: dict[str, int] = {}

    def columns(self, items: Mapping[str, Sequence[Typed]]) -> dict[str, ItemColumn]:
        """Return a column per key.

        Whole numbers and real ones become real ones; of any other mixture JSON. Text that was meant to be JSON and is none
        becomes a JSON string that holds it.
        """
        return {key: self._column(key, parts) for key, parts in items.items()}

    def _column(self, key: str, parts: Sequence[Typed]) -> ItemColumn:
        kinds = {ItemKind(part.kind) for part in parts}
        if (
            ItemKind.JSON in kinds
            and key in _LISTS
            and len(kinds) == 1
            and (lists := self._lists(parts[0])) is not None
        ):
            return lists
        if len(kinds) == 1:
            kind, values = kinds.pop(), [self._strict(part) for part in parts]
        elif kinds == {ItemKind.INT, ItemKind.FLOAT}:
            kind, values = ItemKind.FLOAT, [part.values.astype(np.float64) for part in parts]
        else:
            kind, values = ItemKind.JSON, [self._as_json(part) for part in parts]
        return _ascending(kind, np.concatenate([part.events for part in parts]), np.concatenate(values))

    def _strict(self, part: Typed) -> npt.NDArray[Any]:
        """Return the values of a part, where those that claim to be JSON are."""
        if part.kind != ItemKind.JSON:
            return part.values
        return self._mapped(part.values, lambda text: text if _parsed(text) is not _INVALID else json.dumps(text))

    def _as_json(self, part: Typed) -> npt.NDArray[Any]:
        if part.kind == ItemKind.JSON:
            return self._strict(part)
        if part.kind == ItemKind.STRING:
            return self._mapped(part.values, json.dumps)
        form = _FORMAT[ItemKind(part.kind)]
        distinct, where = np.unique(part.values, return_inverse=True)
        numbers = [self._number(json.dumps(form(value))) for value in distinct]
        return np.array(numbers, dtype=np.int32)[where]

    def _mapped(self, numbers: npt.NDArray[Any], change: Callable[[str], str]) -> npt.NDArray[Any]:
        """Return text numbers, changed once per distinct text."""
        distinct, where = np.unique(numbers, return_inverse=True)
        changed = [self._changed(int(number), change) for number in distinct]
        return np.array(changed, dtype=np.int32)[where]

    def _changed(self, number: int, change: Callable[[str], str]) -> int:
        text = self._texts[number]
        changed = change(text)
        return number if changed == text else self._number(changed)

    def _number(self, text: str) -> int:
        if text not in self._numbers:
            self._numbers[text] = len(self._texts)
            self._texts.append(text)
        return self._numbers[text]

    def _lists(self, part: Typed) -> ItemColumn | None:
        """Return lists of whole numbers of one length as numbers, or None where they are not."""
        distinct, where = np.unique(part.values, return_inverse=True)
        lists = [_whole_numbers(_parsed(self._texts[int(number)])) for number in distinct]
        lengths = {len(one) for one in lists}
        if len(lengths) != 1 or not lengths.pop():
            return None
        return ItemColumn(ItemKind.INT_LIST, part.events, np.array(lists, dtype=np.int64)[where])


_INVALID = object()


def _whole_numbers(value: object) -> list[int]:
    """Return a list of whole numbers that int64 holds, or an empty one where the value is none."""
    if not isinstance(value, list) or not all(type(item) is int and abs(item) < 2**63 for item in value):
        return []
    return value


def _parsed(text: str) -> object:
    """Return the value of strict JSON, or `_INVALID`."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return _INVALID


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _ascending(kind: ItemKind, events: npt.NDArray[np.int64], values: npt.NDArray[Any]) -> ItemColumn:
    """Return a column of values in any order; of two values for one event the later one holds."""
    if (events[1:] <= events[:-1]).any():
        order = np.argsort(events, kind="stable")
        events, values = events[order], values[order]
        last = np.append(events[1:] != events[:-1], True)
        events, values = events[last], values[last]
    return ItemColumn(kind, events, values)
