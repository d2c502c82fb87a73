"""Tables say of every event what the trace says, in any reader of CSV or Parquet."""

from __future__ import annotations

import csv
import gzip
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from devprof.errors import UsageError
from devprof.export import table
from devprof.model import ActivityType
from devprof.store import ItemKind, RawJson, Trace
from tests.unit.export.expected import category, clean
from tests.unit.export.test_hostile_traces import traces
from tests.unit.export.traces import BASE_NS, STREAM, kernel, op, trace_of

FIXED = (
    *("event", "name", "category", "start_ns", "end_ns", "duration_ns", "backend", "place", "row", "row_id"),
    *("id", "linked", "linked_user", "flow_id", "flow_type", "flow_start", "parent"),
)

WHOLE = (
    "event,name,category,start_ns,end_ns,duration_ns,backend,place,row,row_id,id,linked,linked_user,flow_id,flow_type,"
    "flow_start,parent,grid,Input Dims,occupancy,finished,item name,busy\r\n"
    "0,aten::mm,cpu_op,1790857026000001000,1790857026000009000,8000,cpu,python,thread 4321 (MainThread),4321,5,0,0,0,0,0,-1,"
    ',"[[8, 8], [8, 8]]",,false,,\r\n'
    '1,"mm, ""half""",kernel,1790857026000004000,1790857026000008001,4001,openreg,OpenReg 0,stream 7,7,9,5,0,3,2,0,0,'
    '"[4,1,-1]",,12.5,true,"two\nlines",\r\n'
    "2,SM active,mtia_counters,1790857026000006000,1790857026000006000,0,openreg,OpenReg 0,stream 7,7,0,0,0,0,0,0,-1,"
    ",,,,,0.25\r\n"
)


def small_trace() -> Trace:
    events = [
        op("aten::mm", 1_000, 9_000, id=5),
        kernel('mm, "half"', 4_000, 8_001, id=9, linked=5, parent=0, flow_id=3, flow_type=2),
        op("SM active", 6_000, 6_000, STREAM, type=ActivityType.MTIA_COUNTERS),
    ]
    items = {
        "grid": (ItemKind.INT_LIST, {1: [4, 1, -1]}),
        "Input Dims": (ItemKind.JSON, {0: "[[8, 8], [8, 8]]"}),
        "occupancy": (ItemKind.FLOAT, {1: 12.5}),
        "finished": (ItemKind.BOOL, {0: 0, 1: 1}),
        "name": (ItemKind.STRING, {1: "two\nlines"}),
    }
    return trace_of(events, items=items, counters={"busy": {2: 0.25}})


def test_the_whole_csv_is_as_it_should_be(tmp_path: Path) -> None:
    table(small_trace(), tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_bytes().decode() == WHOLE


def test_a_packed_csv_holds_the_same(tmp_path: Path) -> None:
    table(small_trace(), tmp_path / "t.csv.gz")
    assert gzip.decompress((tmp_path / "t.csv.gz").read_bytes()).decode() == WHOLE


def names_of(trace: Trace) -> list[str]:
    names = list(FIXED)
    for key in (*trace.items, *trace.counters):
        name = clean(key)
        while name in names:
            name = f"item {name}"
        names.append(name)
    return names


def rows_of(trace: Trace) -> list[list[Any]]:
    """The rows of the table as Python values."""
    rows = []
    for i in range(len(trace)):
        row = trace.rows[int(trace.row[i])]
        place = trace.places[row.place]
        start_ns, end_ns = int(trace.start_ns[i]), int(trace.end_ns[i])
        duration_ns = int(np.int64((end_ns - start_ns + 2**63) % 2**64 - 2**63))
        times = (start_ns, end_ns, duration_ns)
        texts = map(clean, (place.backend, place.name, row.name))
        numbers = (int(getattr(trace, key)[i]) for key in FIXED[10:])
        columns = (*trace.items.values(), *trace.counters.values())
        items = (column.value(i, trace.strings) for column in columns)
        kind = category(int(trace.activity_type[i]))
        rows.append([i, clean(trace.name_of(i)), kind, *times, *texts, row.id, *numbers, *map(_plain, items)])
    return rows


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    return clean(str(value)) if isinstance(value, RawJson | str) else value


def _in_csv(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value).replace(" ", "") if isinstance(value, list) else str(value)


@settings(deadline=None, max_examples=200)
@given(traces())
def test_whatever_a_trace_holds_a_reader_of_csv_gets_it_back(trace: Trace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        table(trace, Path(folder) / "t.csv")
        with (Path(folder) / "t.csv").open(encoding="utf-8", newline="") as file:
            head, *rows = csv.reader(file)
    assert head == names_of(trace)
    assert rows == [[_in_csv(value) for value in row] for row in rows_of(trace)]


@settings(deadline=None, max_examples=100)
@given(traces())
def test_whatever_a_trace_holds_a_reader_of_parquet_gets_it_back(trace: Trace) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow")
    with tempfile.TemporaryDirectory() as folder:
        table(trace, Path(folder) / "t.parquet")
        found = parquet.ParquetFile(Path(folder) / "t.parquet").read()
    assert found.column_names == names_of(trace)
    rows = list(zip(*(column.to_pylist() for column in found.columns), strict=True))
    assert repr([list(row) for row in rows]) == repr(rows_of(trace))  # NaN is not equal to itself


def test_many_events_are_all_in_the_table(tmp_path: Path) -> None:
    n = 20_000
    trace = trace_of(
        [op(f"op {i % 3}", i, i + 1) for i in range(n)], items={"i": (ItemKind.INT, {i: -i for i in range(0, n, 2)})}
    )
    table(trace, tmp_path / "t.csv")
    with (tmp_path / "t.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["name"], row["start_ns"], row["i"]) for row in rows] == [
        (f"op {i % 3}", str(BASE_NS + i), "" if i % 2 else str(-i)) for i in range(n)
    ]


def test_parquet_without_pyarrow_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UsageError, match=r"pip install 'devprof\[parquet\]'"):
        table(small_trace(), tmp_path / "t.parquet")
    assert list(tmp_path.iterdir()) == []


def test_a_table_that_cannot_be_made_is_the_callers_mistake(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no directory"):
        table(small_trace(), tmp_path / "nowhere" / "t.csv")


def test_a_frame_and_a_table_have_the_same_columns() -> None:
    pytest.importorskip("polars", reason="needs polars")
    assert small_trace().df.columns == names_of(small_trace())
