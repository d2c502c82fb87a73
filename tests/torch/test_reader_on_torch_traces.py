"""Traces that torch writes, read back: against the file itself, against the sink, and through devprof's own exporter."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.profiler import ProfilerActivity, profile, record_function

from devprof.export import chrome_trace
from devprof.model import ActivityType
from devprof.pipeline.files import load_kineto, load_nvprof
from devprof.store import Place, Row, Trace

_PID = 4000


def _export(path: Path, *, with_stack: bool) -> Path:
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    with profile(
        activities=[ProfilerActivity.CPU],
        record_shapes=True,
        profile_memory=True,
        with_stack=with_stack,
        with_modules=with_stack,
    ) as prof:
        prof.add_metadata_json("mine", '{"a": [1, 2]}')
        for step in range(3):
            with record_function(f"step {step}"):
                model(torch.randn(4, 8, requires_grad=True)).sum().backward()
    prof.export_chrome_trace(str(path))
    return path


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _export(tmp_path_factory.mktemp("torch") / "trace.json", with_stack=True)


@pytest.fixture(scope="module")
def exported_without_stack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _export(tmp_path_factory.mktemp("torch") / "trace.json", with_stack=False)


def _ns(number: str) -> int:
    whole, _, fraction = number.partition(".")
    return int(whole) * 1000 + int(fraction.ljust(3, "0"))


def _plain_recount(path: Path) -> list[tuple[Any, ...]]:
    """Return every event of the file as (category, name, start, end, thread, op id), with times by their text."""
    content = json.loads(path.read_text(), parse_float=str)
    base = content["baseTimeNanoseconds"]
    kinds = {kind.label for kind in ActivityType}
    rows = []
    for event in content["traceEvents"]:
        if event["ph"] in "Xi" and event.get("cat") in kinds:
            start = base + _ns(str(event["ts"]))
            op = event.get("args", {}).get("External id", 0)
            rows.append((event["cat"], event["name"], start, start + _ns(str(event.get("dur", "0"))), event["tid"], op))
    return sorted(rows)


def _recount(trace: Trace) -> list[tuple[Any, ...]]:
    kinds = [ActivityType(kind).label for kind in trace.activity_type.tolist()]
    names = [trace.name_of(event) for event in range(len(trace))]
    threads = [trace.rows[row].id for row in trace.row.tolist()]
    ranges = np.isin(trace.activity_type, (ActivityType.CPU_OP, ActivityType.USER_ANNOTATION))
    ops = np.where(ranges, trace.id, 0).tolist()
    return sorted(zip(kinds, names, trace.start_ns.tolist(), trace.end_ns.tolist(), threads, ops, strict=True))


def test_every_event_of_a_torch_file_is_there_to_the_nanosecond(exported: Path) -> None:
    trace = load_kineto(exported)
    assert len(trace) > 100
    assert _recount(trace) == _plain_recount(exported)
    assert trace.facts["file"] == {"format": "kineto", "left_out": {}, "notes": []}
    assert trace.facts["metadata"] == {"mine": {"a": [1, 2]}}
    assert (trace.facts["with_stack"], trace.facts["record_shapes"]) == (True, True)


def test_every_arg_of_a_torch_file_is_there(exported: Path) -> None:
    trace = load_kineto(exported)
    found: dict[tuple[str, str], int] = {}
    for key, column in trace.items.items():
        for event in column.events.tolist():
            value = column.value(event, trace.strings)
            text = str(value) if column.kind == 5 else json.dumps(value)
            found[key, text] = found.get((key, text), 0) + 1
    expected: dict[tuple[str, str], int] = {}
    for event in json.loads(exported.read_text())["traceEvents"]:
        if event["ph"] in "Xi" and event.get("cat", "Trace") != "Trace":
            for key, value in event.get("args", {}).items():
                if value is not None and key != "External id":
                    pair = (key, json.dumps(value))
                    expected[pair] = expected.get(pair, 0) + 1
    assert found == expected


def test_arrows_of_a_torch_file_stand_on_their_ops(exported: Path) -> None:
    trace = load_kineto(exported)
    file = [event for event in json.loads(exported.read_text())["traceEvents"] if event.get("cat") == "fwdbwd"]
    assert len(file) >= 4
    ends = np.flatnonzero(trace.flow_id)
    found = sorted((int(trace.flow_id[at]), bool(trace.flow_start[at]), trace.rows[trace.row[at]].id) for at in ends)
    assert found == sorted((event["id"], event["ph"] == "s", event["tid"]) for event in file)
    assert set(trace.flow_type[ends].tolist()) == {1}


def test_the_tree_is_that_of_time_on_each_thread(exported: Path) -> None:
    trace = load_kineto(exported)
    children = np.flatnonzero(trace.parent >= 0)
    above = trace.parent[children]
    assert (trace.row[children] == trace.row[above]).all()
    assert (trace.start_ns[children] >= trace.start_ns[above]).all()
    assert (trace.end_ns[children] <= trace.end_ns[above]).all()
    steps = trace.named("step 0")
    inside = [trace.name_of(int(child)) for child in children if trace.parent[child] == steps[0]]
    assert "aten::randn" in inside or any(name.startswith("<built-in method randn") for name in inside)


def _where(trace: Trace, event: int) -> tuple[Place, Row]:
    row = trace.rows[trace.row[event]]
    return trace.places[row.place], row


@pytest.mark.parametrize("name", ["again.json", "again.json.gz"])
def test_reading_exporting_and_reading_again_gives_the_same_trace(
    exported_without_stack: Path, tmp_path: Path, name: str
) -> None:
    first = load_kineto(exported_without_stack)
    chrome_trace(first, tmp_path / name)
    again = load_kineto(tmp_path / name)
    assert _recount(again) == _recount(first)
    for key in ("id", "linked", "flow_id", "flow_type", "flow_start", "parent", "start_ns", "end_ns"):
        assert np.array_equal(getattr(again, key), getattr(first, key)), key
    assert again.items.keys() == first.items.keys()
    assert [again.items_of(event) for event in range(len(again))] == [
        first.items_of(event) for event in range(len(first))
    ]
    assert [_where(again, event) for event in range(len(again))] == [
        _where(first, event) for event in range(len(first))
    ]
    assert (set(again.places), set(again.rows)) == (
        set(first.places),
        set(first.rows),
    )  # of rows without events the order is nobody's
    assert (again.window_start_ns, again.window_end_ns) == (first.window_start_ns, first.window_end_ns)
    assert again.facts["metadata"] == first.facts["metadata"]


def test_slices_that_the_exporter_moves_to_lanes_keep_all_else(exported: Path, tmp_path: Path) -> None:
    first = load_kineto(exported)
    chrome_trace(first, tmp_path / "again.json")
    again = load_kineto(tmp_path / "again.json")
    without_rows = [[row[:4] + row[5:] for row in _recount(trace)] for trace in (again, first)]
    assert sorted(without_rows[0]) == sorted(without_rows[1])


def test_an_nvprof_export_has_the_ranges_and_kernels_that_torch_finds_in_it(tmp_path: Path) -> None:
    path = tmp_path / "nvprof.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(
            """
            CREATE TABLE StringTable(_id_ INTEGER PRIMARY KEY AUTOINCREMENT, value TEXT NOT NULL UNIQUE);
            CREATE TABLE CUPTI_ACTIVITY_KIND_MARKER(_id_ INTEGER PRIMARY KEY AUTOINCREMENT, flags INT NOT NULL,
                timestamp INT NOT NULL, id INT NOT NULL, objectKind INT NOT NULL, objectId BLOB NOT NULL,
                name INT NOT NULL, domain INT NOT NULL);
            CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(_id_ INTEGER PRIMARY KEY AUTOINCREMENT, cbid INT NOT NULL,
                start INT NOT NULL, end INT NOT NULL, processId INT NOT NULL, threadId INT NOT NULL,
                correlationId INT NOT NULL, returnValue INT NOT NULL);
            CREATE TABLE CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL(_id_ INTEGER PRIMARY KEY AUTOINCREMENT, start INT NOT NULL,
                end INT NOT NULL, deviceId INT NOT NULL, streamId INT NOT NULL, correlationId INT NOT NULL,
                name INT NOT NULL);
            INSERT INTO StringTable VALUES (1, 'step'), (2, 'aten::mm, seq = 3'), (3, '_Z1kPf'), (4, 'aten::add, seq = 4');
            """
        )
        owner = (_PID).to_bytes(4, "little") + (_PID + 1).to_bytes(4, "little") + bytes(4)
        for number, (start, end, name) in enumerate([(0, 1000, 1), (10, 400, 2), (500, 900, 4)], start=1):
            for row in ((2, start, number, 2, owner, name, 0), (4, end, number, 2, owner, 0, 0)):
                connection.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MARKER VALUES (NULL,?,?,?,?,?,?,?)", row)
        for at, correlation in ((20, 7), (100, 8), (600, 9)):
            call = (211, at, at + 10, _PID, _PID + 1, correlation, 0)
            connection.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (NULL,?,?,?,?,?,?,?)", call)
            kernel = (at + 30, at + 30 + correlation, 0, 7, correlation, 3)
            connection.execute("INSERT INTO CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL VALUES (NULL,?,?,?,?,?,?)", kernel)
    trace = load_nvprof(path)
    found = {
        trace.name_of(event): (int(trace.start_ns[event]), int(trace.end_ns[event]), []) for event in range(len(trace))
    }
    for kernel in trace.of_type(ActivityType.CONCURRENT_KERNEL).tolist():
        above = int(trace.parent[trace.parent[kernel]])
        while above >= 0:
            found[trace.name_of(above)][2].append(int(trace.duration_ns[kernel]))
            above = int(trace.parent[above])
    expected = {
        event.name.split(",")[0]: (event.time_range.start, event.time_range.end, [k.duration for k in event.kernels])
        for event in torch.autograd.profiler.load_nvprof(str(path))
    }
    assert (
        {name: found[name] for name in expected}
        == expected
        == {
            "step": (0, 1000, [7, 8, 9]),
            "aten::mm": (10, 400, [7, 8]),
            "aten::add": (500, 900, [9]),
        }
    )
