"""`table`: a trace as a table, one row per event: CSV for spreadsheets and shells, Parquet for data frames."""

from __future__ import annotations

import csv
import importlib
import io
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from devprof.errors import UsageError
from devprof.export.chunks import Chunk, found
from devprof.export.output import output, output_bytes
from devprof.export.shapes import category
from devprof.export.strict_json import clean
from devprof.store import ItemColumn, ItemKind, Trace

__all__ = ["table"]

_AT_ONCE = 8192
_ROWS_OF_A_GROUP = 1 << 17  # of a Parquet file
_FIXED = {
    "event": "int64",
    "name": "string",
    "category": "string",
    "start_ns": "int64",
    "end_ns": "int64",
    "duration_ns": "int64",
    "backend": "string",
    "place": "string",
    "row": "string",
    "row_id": "int64",
}
_NUMBERS = ("id", "linked", "linked_user", "flow_id", "flow_type", "flow_start", "parent")
_KINDS = {
    ItemKind.INT: "int64",
    ItemKind.FLOAT: "float64",
    ItemKind.BOOL: "bool",
    ItemKind.STRING: "string",
    ItemKind.JSON: "string",
    ItemKind.INT_LIST: "int64 list",
}

Cells = Sequence[Any] | npt.NDArray[Any]


def table(trace: Trace, path: str | os.PathLike[str]) -> None:
    """Write a trace as a table with the columns of `Trace.df`: one row per event, nothing where an event has no such item.

    A name that ends with ``.parquet`` makes a Parquet file, packed with zstd; it needs pyarrow. Any other makes CSV (RFC 4180,
    UTF-8, a line of names first, ``true`` and ``false``, lists as JSON); with ``.gz`` at its end the file is packed. Both are
    written in pieces; memory does not grow with the trace.

    Args:
        trace: the trace.
        path: the file's name.

    Raises:
        UsageError: the directory does not exist or may not be written, or pyarrow is not installed.
        CaptureError: the system could not write the file; an earlier file of that name is untouched.
    """
    columns = _Columns(trace)
    if Path(path).suffix == ".parquet":
        _write_parquet(columns, path)
    else:
        _write_csv(columns, path)


class _Columns:
    """The columns of a trace, some events at a time.

    Attributes:
        kinds: type of each column, by name.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._items: dict[str, ItemColumn] = {}
        self.kinds = _FIXED | dict.fromkeys(_NUMBERS, "int64")
        for key, column in [*trace.items.items(), *trace.counters.items()]:
            name = clean(key)
            while name in self.kinds:
                name = f"item {name}"
            self._items[name] = column
            self.kinds[name] = _KINDS[column.kind]
        places = [trace.places[row.place] for row in trace.rows]
        self._backends = [clean(place.backend) for place in places]
        self._places = [clean(place.name) for place in places]
        self._rows = [clean(row.name) for row in trace.rows]
        self._row_ids = np.array([row.id for row in trace.rows], dtype=np.int64)
        self._categories = [category(number) for number in range(256)]

    def chunks(self, size: int) -> Iterator[dict[str, Cells]]:
        """Yield the cells of `size` events at a time, by the names of the columns."""
        for number, low in enumerate(range(0, len(self._trace), size)):
            yield self._cells(Chunk(np.arange(low, min(low + size, len(self._trace))), number))

    def _cells(self, chunk: Chunk) -> dict[str, Cells]:
        trace, some = self._trace, chunk.index
        row = trace.row[some].tolist()
        fixed: list[Cells] = [
            chunk.events,
            self._texts(trace.name[some]),
            list(map(self._categories.__getitem__, trace.activity_type[some].tolist())),
            trace.start_ns[some],
            trace.end_ns[some],
            trace.end_ns[some] - trace.start_ns[some],
            *(list(map(texts.__getitem__, row)) for texts in (self._backends, self._places, self._rows)),
            self._row_ids[trace.row[some]],
            *(getattr(trace, key)[some].astype(np.int64) for key in _NUMBERS),
        ]
        cells = dict(zip(self.kinds, fixed, strict=False))
        return cells | {name: self._item(column, chunk) for name, column in self._items.items()}

    def _item(self, column: ItemColumn, chunk: Chunk) -> Cells:
        at, values = found(column, chunk)
        if column.kind in (ItemKind.STRING, ItemKind.JSON):
            written = self._texts(values)
        else:
            written = (values != 0 if column.kind is ItemKind.BOOL else values).tolist()
        cells: list[Any] = [None] * len(chunk.events)
        for place, value in zip(at.tolist(), written, strict=True):
            cells[place] = value
        return cells

    def _texts(self, numbers: npt.NDArray[np.int32]) -> list[str]:
        distinct, which = np.unique(numbers, return_inverse=True)
        texts = [clean(self._trace.strings[number]) for number in distinct.tolist()]
        return list(map(texts.__getitem__, which.reshape(-1).tolist()))


def _write_csv(columns: _Columns, path: str | os.PathLike[str]) -> None:
    with output(path) as write:
        text = io.StringIO()
        lines = csv.writer(text)  # ends lines with CR LF, so that it quotes a text with either of them in every version
        lines.writerow(columns.kinds)
        for cells in columns.chunks(_AT_ONCE):
            lines.writerows(zip(*(_csv_cells(cells[name], kind) for name, kind in columns.kinds.items()), strict=True))
            write(text.getvalue())
            text.seek(0)
            text.truncate()
        write(text.getvalue())


def _csv_cells(cells: Cells, kind: str) -> Sequence[object]:
    if isinstance(cells, np.ndarray):
        return cells.tolist()  # type: ignore[no-any-return]  # one dimension, so a list
    if kind == "bool":
        return [None if cell is None else str(cell).lower() for cell in cells]
    if kind == "int64 list":
        return [None if cell is None else str(cell).replace(" ", "") for cell in cells]
    return cells


def _write_parquet(columns: _Columns, path: str | os.PathLike[str]) -> None:
    try:
        pyarrow, parquet = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise UsageError(
            f"a Parquet file needs pyarrow, which cannot be imported ({error}): pip install 'devprof[parquet]', or write .csv"
        ) from error
    types = {"int64 list": pyarrow.list_(pyarrow.int64()), "bool": pyarrow.bool_()}
    schema = pyarrow.schema(
        [(name, types.get(kind) or pyarrow.type_for_alias(kind)) for name, kind in columns.kinds.items()]
    )
    with output_bytes(path) as write:
        sink = pyarrow.PythonFile(_Sink(write), mode="w")
        with parquet.ParquetWriter(sink, schema, compression="zstd") as file:
            for cells in columns.chunks(_ROWS_OF_A_GROUP):
                file.write_table(pyarrow.table(cells, schema=schema))


class _Sink:
    """A file that only takes bytes, as pyarrow wants one."""

    def __init__(self, write: Callable[[bytes | memoryview], object]) -> None:
        self._write = write
        self.closed = False

    def write(self, data: bytes) -> int:
        self._write(data)
        return len(data)

    def flush(self) -> None:
        """Do nothing: the file is flushed when it is closed."""

    def close(self) -> None:
        """Leave the file open: who opened it closes it."""
        self.closed = True
