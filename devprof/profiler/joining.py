"""`joined`: the traces of several cycles as one, for figures over all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from devprof.model import ActivityBatch, MetadataColumn, MetadataKind
from devprof.store import ItemColumn, ItemKind, Trace, TraceBuilder

__all__ = ["joined"]


def joined(traces: Sequence[Trace]) -> Trace:
    """Return one trace with the events of all, in their order; places and rows that are equal are one.

    Args:
        traces: at least one; the facts of the last are the facts of all.
    """
    builder = TraceBuilder()
    for trace in traces:
        builder.add(
            _batch(trace),
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


def _batch(trace: Trace) -> ActivityBatch:
    return ActivityBatch.from_columns(
        trace.strings,
        activity_type=trace.activity_type,
        name=trace.name,
        start=trace.start_ns,
        end=trace.end_ns,
        id=trace.id,
        linked=trace.linked,
        linked_user=trace.linked_user,
        flow_id=trace.flow_id,
        flow_type=trace.flow_type,
        flow_start=trace.flow_start,
        metadata=_columns(trace.items, len(trace)),
        counters=_columns(trace.counters, len(trace)),
    )


def _columns(items: Mapping[str, ItemColumn], n: int) -> dict[str, MetadataColumn]:
    return {
        key: MetadataColumn(_kind(column.kind), column.dense(n), column.present(n)) for key, column in items.items()
    }


def _kind(kind: ItemKind) -> MetadataKind:
    return MetadataKind.STRING if kind is ItemKind.JSON else MetadataKind(int(kind))
