"""`joined`: the traces of several cycles as one, for figures over all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from devprof.model import ActivityBatch, MetadataColumn, MetadataKind
from devprof.pipeline.ranks.numbers import (
    ITEM_SPACES,
    LAUNCHES,
    Renumbering,
    highest_numbers,
    renumberings,
    renumbers_op,
)
from devprof.store import ItemColumn, ItemKind, Trace, TraceBuilder

__all__ = ["joined"]


def joined(traces: Sequence[Trace]) -> Trace:
    """Return one trace with the events of all, in their order; places and rows that are equal are one.

    Launch numbers and arrows of each trace come behind those of the one before: every cycle numbers its own from the start.

    Args:
        traces: at least one; the facts of the last are the facts of all.
    """
    builder, taken = TraceBuilder(), highest_numbers()
    for trace in traces:
        moves, taken = renumberings(trace, taken)
        builder.add(
            _batch(trace, moves[LAUNCHES]),
            _rows(trace, builder)[trace.row],
            parent=trace.parent,
            json_keys=[key for key, column in trace.items.items() if column.kind is ItemKind.JSON],
        )
    return builder.build(
        window_start_ns=min(trace.window_start_ns for trace in traces),
        window_end_ns=max(trace.window_end_ns for trace in traces),
        facts=traces[-1].facts,
    )


def _rows(trace: Trace, builder: TraceBuilder) -> npt.NDArray[np.int32]:
    """Return the new number of each of the trace's rows."""
    places = [builder.place(place) for place in trace.places]
    rows = [builder.row(type(row)(places[row.place], row.id, row.name, row.sort_index)) for row in trace.rows]
    return np.array(rows, dtype=np.int32)


def _batch(trace: Trace, launches: Renumbering) -> ActivityBatch:
    return ActivityBatch.from_columns(
        trace.strings,
        activity_type=trace.activity_type,
        name=trace.name,
        start=trace.start_ns,
        end=trace.end_ns,
        id=np.where(renumbers_op[trace.activity_type], trace.id, launches.of_column(trace.id)),
        linked=trace.linked,
        linked_user=trace.linked_user,
        flow_id=launches.of_column(trace.flow_id),
        flow_type=trace.flow_type,
        flow_start=trace.flow_start,
        metadata=_columns({key: _moved(key, column, launches) for key, column in trace.items.items()}, len(trace)),
        counters=_columns(trace.counters, len(trace)),
    )


def _moved(key: str, column: ItemColumn, launches: Renumbering) -> ItemColumn:
    if column.kind is not ItemKind.INT or ITEM_SPACES.get(key) != LAUNCHES:
        return column
    return replace(column, values=launches.of_items(column.values))


def _columns(items: Mapping[str, ItemColumn], n: int) -> dict[str, MetadataColumn]:
    return {
        key: MetadataColumn(_kind(column.kind), column.dense(n), column.present(n)) for key, column in items.items()
    }


def _kind(kind: ItemKind) -> MetadataKind:
    return MetadataKind.STRING if kind is ItemKind.JSON else MetadataKind(int(kind))
