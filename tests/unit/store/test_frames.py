"""A trace as a data frame holds what the trace holds."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from devprof.errors import UsageError
from devprof.model import ActivityBatch, ActivityType, GenericTraceActivity
from devprof.store import ItemKind, Place, PlaceKind, Row, Trace, TraceBuilder


def small_trace() -> Trace:
    builder = TraceBuilder()
    thread = builder.row(Row(builder.place(Place(1, PlaceKind.HOST, "python")), 7, "thread 7"))
    stream = builder.row(Row(builder.place(Place(0, PlaceKind.DEVICE, "toy 0", backend="toy")), 3, "stream 3"))
    op = GenericTraceActivity(ActivityType.CPU_OP, "mm", 100, 150, id=1, metadata={"name": "clash", "flag": True})
    builder.add(ActivityBatch.from_activities([op]), thread)
    kernel = {"grid": (1, 2), "bytes": 8, "ratio": 0.5}
    work = GenericTraceActivity(ActivityType.CONCURRENT_KERNEL, "k", 160, 190, id=9, linked=1, metadata=kernel)
    builder.add(ActivityBatch.from_activities([work, work]), stream)
    builder.add_items("shape", ItemKind.JSON, [1], ["[[2]]"])
    return builder.build()


def test_every_column_and_item_is_there_and_null_where_an_event_has_none() -> None:
    pytest.importorskip("polars", reason="the extra `polars` is not installed")
    assert small_trace().df.row(0, named=True) == {
        "event": 0, "name": "mm", "category": "cpu_op", "start_ns": 100, "end_ns": 150, "duration_ns": 50, "backend": "cpu",
        "place": "python", "row": "thread 7", "row_id": 7, "id": 1, "linked": 0, "linked_user": 0, "flow_id": 0,
        "flow_type": 0, "flow_start": 0, "parent": -1, "item name": "clash", "flag": True, "grid": None, "bytes": None,
        "ratio": None, "shape": None,
    }  # fmt: skip
    second = small_trace().df.row(1, named=True)
    keys = ("backend", "row", "item name", "flag", "grid", "bytes", "ratio", "shape")
    assert [second[key] for key in keys] == ["toy", "stream 3", None, None, [1, 2], 8, 0.5, "[[2]]"]
    assert small_trace().df.height == 3


def test_an_empty_trace_is_an_empty_frame() -> None:
    pytest.importorskip("polars", reason="the extra `polars` is not installed")
    assert (TraceBuilder().build().df.height, "name" in TraceBuilder().build().df.columns) == (0, True)


def test_sql_answers_over_the_events() -> None:
    pytest.importorskip("polars", reason="the extra `polars` is not installed")
    query = "SELECT name, SUM(duration_ns) AS total_ns FROM events WHERE category = 'kernel' GROUP BY name"
    assert small_trace().sql(query).to_dicts() == [{"name": "k", "total_ns": 60}]
    with pytest.raises(UsageError, match="cannot answer 'SELECT nothing FROM nowhere'"):
        small_trace().sql("SELECT nothing FROM nowhere")


def test_pandas_gets_the_same() -> None:
    for name in ("polars", "pandas", "pyarrow"):
        pytest.importorskip(name, reason=f"{name} is not installed")
    assert small_trace().to_pandas()["duration_ns"].tolist() == [50, 30, 30]


def test_without_polars_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(UsageError, match=r"pip install 'devprof\[polars\]'"):
        _ = small_trace().df


def test_the_page_on_profiling_names_every_column() -> None:
    pytest.importorskip("polars", reason="the extra `polars` is not installed")
    page = (Path(__file__).parents[3] / "docs/profiling.md").read_text(encoding="utf-8")
    rows = page.partition("| columns | |")[2].partition("| every item")[0].splitlines()
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row.split(" | ")[0])}
    assert named == set(TraceBuilder().build().df.columns)
