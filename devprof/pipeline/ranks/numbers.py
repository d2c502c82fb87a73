"""Numbers that mean something within one trace only, and how those of several traces keep apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from devprof.link.references import LAUNCH_ITEMS, NOT_RECORDED
from devprof.model import ActivityType, Role
from devprof.store import ItemColumn, ItemKind, Trace

__all__ = ["ITEM_SPACES", "LAUNCHES", "OPS", "SPACES", "Renumbering", "highest_numbers", "renumberings", "renumbers_op"]

Longs = npt.NDArray[np.int64]

_EXACT = 2**53
"""Numbers of a trace file stay below this where they can: viewers keep them as doubles."""

OPS, LAUNCHES, SEQUENCE, PYTHON = "ops", "launches", "sequence numbers", "python calls"
SPACES = (OPS, LAUNCHES, SEQUENCE, PYTHON)
"""Number spaces of a trace: ids of ops and ranges; launch numbers, with which arrows share theirs; autograd's sequence numbers;
ids of Python calls."""

ITEM_SPACES = {
    **dict.fromkeys(LAUNCH_ITEMS, LAUNCHES),
    "Sequence number": SEQUENCE,
    "Python id": PYTHON,
    "Python parent id": PYTHON,
}
"""Items whose values are numbers of a space, by key."""

_LEAST_ITEM = {OPS: 1, LAUNCHES: 1, SEQUENCE: 0, PYTHON: 0}
"""torch counts sequence numbers and Python calls from 0; an op or a launch of number 0 is none."""

renumbers_op = np.zeros(256, dtype=np.bool_)
"""By activity type: whether an event's `id` is that of an op or a range; else it is a launch number."""
renumbers_op[[int(kind) for kind in ActivityType if kind.role in (Role.OP, Role.ANNOTATION)]] = True


class Renumbering(NamedTuple):
    """How the numbers of one space move in one trace; 0 is none and stays.

    Attributes:
        shift: what is added.
        table: (k,) the distinct numbers, ascending, where they are too far apart to be shifted; else None.
        first: new number of the first one in `table`.
        least_item: least value of an item that is a number of this space; less is none.
    """

    shift: int = 0
    table: Longs | None = None
    first: int = 0
    least_item: int = 0

    def of_column(self, values: Longs) -> Longs:
        """Return new numbers: (n,) int64."""
        return self._moved(values, values != 0)

    def of_items(self, values: Longs) -> Longs:
        """Return new numbers of items, among which negative ones are none, and 0 where it is none of the space: (m,) int64."""
        return self._moved(values, _is_item_number(values, self.least_item))

    def _moved(self, values: Longs, real: npt.NDArray[np.bool_]) -> Longs:
        if self.table is not None:
            return np.where(real, np.searchsorted(self.table, values) + self.first, values)
        return np.where(real, values + self.shift, values) if self.shift else values


def renumberings(trace: Trace, taken: Mapping[str, int]) -> tuple[dict[str, Renumbering], dict[str, int]]:
    """Return how the numbers of each space move so that all come behind those that are taken, and what is taken then.

    Args:
        trace: the trace.
        taken: the highest number so far of each of `SPACES`; at 0 the numbers are kept.
    """
    moves, reached = {}, {}
    for space in SPACES:
        move, reached[space] = _renumbering(_used(trace, space), taken[space])
        moves[space] = move._replace(least_item=_LEAST_ITEM[space])
    return moves, reached


def highest_numbers() -> dict[str, int]:
    """Return what is taken before the first trace: nothing."""
    return dict.fromkeys(SPACES, 0)


def _renumbering(used: Sequence[Callable[[], Longs]], taken: int) -> tuple[Renumbering, int]:
    bounds = [(int(numbers.min()), int(numbers.max())) for make in used if len(numbers := make())]
    if not bounds:
        return Renumbering(), taken
    low, high = min(first for first, _ in bounds), max(last for _, last in bounds)
    shift = taken + 1 - low if taken else 0
    if low + shift >= 0 and high + shift < _EXACT:
        return Renumbering(shift), max(taken, high + shift)
    table = np.unique(np.concatenate([np.unique(make()) for make in used]))
    return Renumbering(table=table, first=taken + 1), taken + len(table)


def _used(trace: Trace, space: str) -> list[Callable[[], Longs]]:
    """Return what gives the numbers of a space, one column at a time."""
    items = [trace.items[key] for key, owner in ITEM_SPACES.items() if owner == space and key in trace.items]
    columns: list[Callable[[], Longs]] = []
    if space == OPS:
        own = renumbers_op[trace.activity_type]
        columns = [lambda: _real(trace.id[own]), lambda: _real(trace.linked), lambda: _real(trace.linked_user)]
    elif space == LAUNCHES:
        other = ~renumbers_op[trace.activity_type]
        columns = [lambda: _real(trace.id[other]), lambda: _real(trace.flow_id)]
    return columns + [_of_item(column, _LEAST_ITEM[space]) for column in items if column.kind is ItemKind.INT]


def _of_item(column: ItemColumn, least: int) -> Callable[[], Longs]:
    values: Longs = column.values
    return lambda: values[_is_item_number(values, least)]


def _real(values: Longs) -> Longs:
    real: Longs = values[values != 0]
    return real


def _is_item_number(values: Longs, least: int) -> npt.NDArray[np.bool_]:
    real: npt.NDArray[np.bool_] = (values >= least) & (values != NOT_RECORDED)
    return real
