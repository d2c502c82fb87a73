"""`range_batch`: the ranges of a session as an `ActivityBatch`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from devprof.host.columns import Found, Longs, Lookup, RangeColumns, gathered_rows
from devprof.host.queues import OPEN, Numbered, Queue
from devprof.host.recording import HOST_TICKS
from devprof.host.scopes import RecordScope
from devprof.model import ActivityBatch, ActivityType, MetadataColumn, MetadataKind

__all__ = ["range_batch"]

Ints = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]

_IS_LOUD = np.array([scope not in (RecordScope.FUNCTION, RecordScope.USER_SCOPE) for scope in RecordScope])
"""By scope: whether it is named, since the activity type does not tell it."""


class _Texts:
    """The batch's table of texts."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        return self._numbers.setdefault(text, len(self._numbers))

    def numbers(self, texts: Sequence[str]) -> Ints:
        return np.fromiter(map(self.number, texts), dtype=np.int32, count=len(texts))

    @property
    def table(self) -> tuple[str, ...]:
        return tuple(self._numbers)


@dataclass(frozen=True, slots=True, eq=False)
class _Labels:
    """What each range is called: (n,) columns."""

    name: Ints
    scope: Ints
    overload: Ints


def range_batch(columns: RangeColumns, queues: Sequence[Queue], first_id: int, stopped_ticks: int) -> ActivityBatch:
    """Return the ranges of a session.

    Args:
        columns: what the blocks hold.
        queues: the session's queues, as numbered in `columns.queue`.
        first_id: less than every id of the session; ranges of earlier ones are nobody's parents.
        stopped_ticks: when recording ended, and with it the ranges that were open.
    """
    texts, lookup = _Texts(), Lookup(columns.id)
    labels = _labels(columns, queues, texts)
    is_user = labels.scope == int(RecordScope.USER_SCOPE)
    parent_id = np.where(columns.parent_id > first_id, columns.parent_id, 0)
    native_ids = np.array([queue.native_id for queue in queues], dtype=np.int64)
    is_open = columns.end_ticks == OPEN
    metadata = {
        **_scope_items(labels, texts),
        **_sequence_items(queues, lookup, len(is_open)),
        **_input_items(queues, lookup, len(is_open), texts),
        **_end_items(queues, lookup, is_open),
    }
    return ActivityBatch.from_columns(
        texts.table,
        activity_type=np.where(is_user, int(ActivityType.USER_ANNOTATION), int(ActivityType.CPU_OP)).astype(np.uint8),
        name=labels.name,
        start=np.minimum(columns.start_ticks, stopped_ticks),
        end=_ends(columns, is_open, stopped_ticks),
        id=columns.id,
        thread_id=native_ids[columns.queue] if len(queues) else columns.id,
        linked=parent_id,
        linked_user=_enclosing_user(columns.id, lookup.find(parent_id), is_user),
        metadata=metadata,
        clock=HOST_TICKS,
    )


def _ends(columns: RangeColumns, is_open: Flags, stopped_ticks: int) -> Longs:
    ends = columns.end_ticks
    # an enter or an exit may run beside the stop and read the clock after it
    if not is_open.any() and ends.max(initial=0) <= stopped_ticks and bool((ends >= columns.start_ticks).all()):
        return ends
    closed = np.where(is_open, stopped_ticks, np.minimum(ends, stopped_ticks))
    return np.maximum(closed, np.minimum(columns.start_ticks, stopped_ticks))


def _labels(columns: RangeColumns, queues: Sequence[Queue], texts: _Texts) -> _Labels:
    tables, first = [], np.zeros(len(queues), dtype=np.int32)
    size = 0
    for number, queue in enumerate(queues):
        table = _label_table(queue.labels, texts)
        tables.append(table)
        first[number], size = size, size + table.shape[1]
    joined = np.concatenate(tables, axis=1) if tables else np.zeros((3, 0), dtype=np.int32)
    at = columns.label + first[columns.queue] if len(queues) else columns.label
    name, scope, overload = (row[at] for row in joined)
    return _Labels(name, scope, overload)


def _label_table(labels: Numbered, texts: _Texts) -> Ints:
    """Return name, scope and overload of each of a queue's labels: (3, number of labels)."""
    keys = [(key, int(RecordScope.USER_SCOPE), "") if isinstance(key, str) else key for key in labels.numbers]
    numbers = np.fromiter(labels.numbers.values(), dtype=np.int64, count=len(keys))
    table = np.zeros((3, int(numbers.max()) + 1 if len(keys) else 0), dtype=np.int32)
    table[0, numbers] = texts.numbers([key[0] for key in keys])
    table[1, numbers] = [key[1] for key in keys]
    table[2, numbers] = texts.numbers([key[2] for key in keys])
    return table


def _enclosing_user(id: Longs, parents: Found, is_user: Flags) -> Longs:
    """Return the id of the innermost user range around each range, 0: none. Ancestors are followed in doubling steps."""
    row = np.where(parents.known, parents.rows, -1)
    while len(on_the_way := np.flatnonzero((row >= 0) & ~is_user[row])):
        row[on_the_way] = row[row[on_the_way]]
    return np.where(row >= 0, id[row], 0) if len(id) else id


def _scope_items(labels: _Labels, texts: _Texts) -> dict[str, MetadataColumn]:
    items = {}
    is_loud = _IS_LOUD[labels.scope]
    if is_loud.any():
        items["Record scope"] = MetadataColumn(MetadataKind.INT, labels.scope, is_loud)
    has_overload = labels.overload != texts.number("")
    if has_overload.any():
        items["Overload name"] = MetadataColumn(MetadataKind.STRING, labels.overload, has_overload)
    return items


def _sequence_items(queues: Sequence[Queue], lookup: Lookup, n: int) -> dict[str, MetadataColumn]:
    rows, _ = gathered_rows([queue.sequences for queue in queues], 3)
    found = lookup.find(rows[:, 0])
    items = {}
    for key, column, least in (("Sequence number", 1, 0), ("Fwd thread id", 2, 1)):
        is_given = found.known & (rows[:, column] >= least)
        if is_given.any():
            items[key] = _sparse(MetadataKind.INT, n, found.rows[is_given], rows[is_given, column])
    return items


def _input_items(queues: Sequence[Queue], lookup: Lookup, n: int, texts: _Texts) -> dict[str, MetadataColumn]:
    rows, owner = gathered_rows([queue.inputs for queue in queues], 2)
    if not len(rows):
        return {}
    found = lookup.find(rows[:, 0])
    signatures = [queue.signatures.texts() if queue.signatures is not None else [] for queue in queues]
    first = np.cumsum([0, *map(len, signatures)])[:-1]
    at = (rows[:, 1] + first[owner])[found.known]
    items = {}
    for part, key in enumerate(("Input Dims", "Input type", "Concrete Inputs")):
        table = texts.numbers([signature[part] for per_queue in signatures for signature in per_queue])
        items[key] = _sparse(MetadataKind.STRING, n, found.rows[found.known], table[at])
    return items


def _end_items(queues: Sequence[Queue], lookup: Lookup, is_open: Flags) -> dict[str, MetadataColumn]:
    items = {}
    if is_open.any():
        items["finished"] = MetadataColumn(MetadataKind.BOOL, np.zeros(len(is_open), dtype=np.uint8), is_open)
    rows, _ = gathered_rows([queue.elsewhere for queue in queues], 2)
    found = lookup.find(rows[:, 0])
    if found.known.any():
        items["End thread"] = _sparse(MetadataKind.INT, len(is_open), found.rows[found.known], rows[found.known, 1])
    return items


def _sparse(kind: MetadataKind, n: int, rows: Longs, values: npt.NDArray[np.generic]) -> MetadataColumn:
    column, present = np.zeros(n, dtype=values.dtype), np.zeros(n, dtype=np.bool_)
    column[rows], present[rows] = values, True
    return MetadataColumn(kind, column, present)
