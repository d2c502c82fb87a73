"""A trace as a data frame, for questions that devprof has no function for. Needs the extra ``polars``."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import numpy as np

from devprof.errors import UsageError
from devprof.model import ActivityType
from devprof.store.items import ItemColumn, ItemKind

if TYPE_CHECKING:
    from devprof.store.trace import Trace

__all__ = ["frame_of", "pandas_of", "sql"]

_LABELS = [ActivityType(n).label if n in set(ActivityType) else f"activity {n}" for n in range(256)]
_NUMBERS = ("id", "linked", "linked_user", "flow_id", "flow_type", "flow_start", "parent")


def frame_of(trace: Trace) -> Any:
    """Return a trace as a `polars.DataFrame`, one row per event.

    Columns: ``event`` (its index), ``name``, ``category``, ``start_ns``, ``end_ns``, ``duration_ns``, ``backend``, ``place``,
    ``row`` and ``row_id`` (where it stands), the trace's numbers as they are, and one column per item and counter, null where
    an event has none. An item with the name of a column before it is called ``"item NAME"``.

    Raises:
        UsageError: polars is not installed.
    """
    polars = _module("polars")
    columns: dict[str, Any] = {
        "event": np.arange(len(trace)),
        "name": _texts(polars, trace.strings, trace.name),
        "category": _texts(polars, _LABELS, trace.activity_type),
        "start_ns": trace.start_ns,
        "end_ns": trace.end_ns,
        "duration_ns": trace.duration_ns,
        "backend": _of_rows(polars, trace, [trace.places[row.place].backend for row in trace.rows]),
        "place": _of_rows(polars, trace, [trace.places[row.place].name for row in trace.rows]),
        "row": _of_rows(polars, trace, [row.name for row in trace.rows]),
        "row_id": np.array([row.id for row in trace.rows] or [0], dtype=np.int64)[trace.row],
        **{key: getattr(trace, key) for key in _NUMBERS},
    }
    for key, column in [*trace.items.items(), *trace.counters.items()]:
        columns[_unused(key, columns)] = _items(polars, trace, column)
    return polars.DataFrame(columns)


def pandas_of(trace: Trace) -> Any:
    """Return `frame_of` as a `pandas.DataFrame`.

    Raises:
        UsageError: polars, pandas or pyarrow is not installed.
    """
    _module("pandas")
    _module("pyarrow")
    return frame_of(trace).to_pandas()


def sql(trace: Trace, query: str) -> Any:
    """Answer an SQL query over the table ``events``, which is `frame_of`; returns a `polars.DataFrame`.

    Raises:
        UsageError: polars is not installed, or the query is none that it can answer.
    """
    polars = _module("polars")
    try:
        return polars.SQLContext(events=frame_of(trace)).execute(query, eager=True)
    except polars.exceptions.PolarsError as error:
        raise UsageError(f"cannot answer {query!r}: {error}; the one table is `events`") from error


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UsageError(
            f"this needs {name}, which cannot be imported ({error}): pip install 'devprof[polars]' (for pandas also pandas and "
            "pyarrow)"
        ) from error


def _texts(polars: Any, table: Any, index: Any) -> Any:
    """Return texts by their numbers, as a categorical: a table of texts and numbers, as here."""
    return (
        polars.Series(list(table) or [""], dtype=polars.String).gather(index.astype(np.uint32)).cast(polars.Categorical)
    )


def _of_rows(polars: Any, trace: Trace, texts: list[str]) -> Any:
    return _texts(polars, texts, trace.row)


def _items(polars: Any, trace: Trace, column: ItemColumn) -> Any:
    if column.kind in (ItemKind.STRING, ItemKind.JSON):
        values = _texts(polars, trace.strings, column.values)
    elif column.kind is ItemKind.BOOL:
        values = polars.Series(column.values.astype(np.bool_))
    elif column.kind is ItemKind.INT_LIST:
        values = polars.Series(column.values.tolist(), dtype=polars.List(polars.Int64))
    else:
        values = polars.Series(column.values)
    if len(column) == len(trace):
        return values
    where = np.full(len(trace), -1, dtype=np.int64)
    where[column.events] = np.arange(len(column))
    index = polars.Series(where)
    return values.gather(polars.select(polars.when(index >= 0).then(index)).to_series())


def _unused(key: str, taken: dict[str, Any]) -> str:
    while key in taken:
        key = f"item {key}"
    return key
