"""`Row`: one record as read from an object, plain values only."""

from __future__ import annotations

from typing import NamedTuple

from devprof.model.activity import Flow, GenericTraceActivity
from devprof.model.items import Item, RecordError, Shape, read_counters, read_items, whole

__all__ = ["NUMBERS", "Row", "read_row"]

_INT64, _INT32, _UINT8 = (-(2**63), 2**63 - 1), (-(2**31), 2**31 - 1), (0, 255)

# field of the object -> bounds of its column
_BOUNDS = {
    "activity_type": _UINT8,
    "start_ns": _INT64,
    "end_ns": _INT64,
    "id": _INT64,
    "device": _INT32,
    "resource": _INT64,
    "thread_id": _INT64,
    "linked": _INT64,
    "linked_user": _INT64,
}

NUMBERS = (*(field.removesuffix("_ns") for field in _BOUNDS), "flow_id", "flow_type", "flow_start")
"""Columns that `Row.numbers` fills, in its order."""


class Row(NamedTuple):
    """A record as it was when it was read; what becomes of the object afterwards has no effect.

    Attributes:
        name: text of the slice.
        numbers: values of the columns `NUMBERS`, each within the bounds of its dtype.
        metadata: items by key.
        shapes: types of the items, by key.
        counters: counter values by name.
    """

    name: str
    numbers: tuple[int, ...]
    metadata: dict[str, Item]
    shapes: dict[str, Shape]
    counters: dict[str, Item]


def read_row(activity: GenericTraceActivity) -> Row:
    """Read and check one record.

    Raises:
        RecordError: a field does not fit its column; the message names it.
    """
    name = _name(activity)
    numbers = (whole(field, getattr(activity, field), *bounds) for field, bounds in _BOUNDS.items())
    metadata, shapes = read_items(activity.metadata)
    return Row(name, (*numbers, *_flow(activity)), metadata, shapes, read_counters(activity.counter_values))


def _name(activity: GenericTraceActivity) -> str:
    name: object = activity.activity_name
    if not isinstance(name, str):
        raise RecordError(f"activity_name is a {type(name).__name__}", ", expected text")
    return str.__str__(name)


def _flow(activity: GenericTraceActivity) -> tuple[int, int, int]:
    flow: object = activity.flow
    if flow is None:
        return 0, 0, 0
    if not isinstance(flow, Flow):
        raise RecordError(f"flow is a {type(flow).__name__}", ", expected a Flow or None")
    return whole("flow.id", flow.id), whole("flow.type", flow.type, *_UINT8), whole("flow.start", flow.start, 0, 1)
