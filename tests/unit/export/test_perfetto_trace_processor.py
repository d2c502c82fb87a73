"""Perfetto's trace processor takes the files as they are meant: nothing dropped, times exact, arrows and args in place."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from devprof.export import perfetto_trace
from devprof.export.shapes import IS_SLICE
from devprof.model import kLinkAsyncCpuGpu
from devprof.pipeline.files import load
from devprof.store import Trace
from tests.unit.export.expected import category
from tests.unit.export.public_traces import each_public_trace
from tests.unit.export.test_perfetto import memory_trace
from tests.unit.export.trace_processor import answers, needs_trace_processor
from tests.unit.export.traces import BASE_NS, kernel, op, small_trace, trace_of

pytestmark = [needs_trace_processor, pytest.mark.usefixtures("perfetto_writer")]

COMPLAINTS = "SELECT name, value FROM stats WHERE value > 0 AND severity != 'info'"
SLICES = "SELECT name, category, ts, dur FROM slice"


def test_slices_args_arrows_samples_and_threads_arrive(tmp_path: Path) -> None:
    perfetto_trace(small_trace(), tmp_path / "t.pftrace")
    queries = [
        COMPLAINTS,
        f"SELECT name, ts - {BASE_NS}, dur, depth FROM slice ORDER BY ts",
        "SELECT o.name, i.name AS work FROM flow JOIN slice o ON o.id = slice_out JOIN slice i ON i.id = slice_in",
        """SELECT key, coalesce(int_value, real_value, string_value) FROM slice JOIN args USING (arg_set_id)
        WHERE slice.name = 'mm' ORDER BY key""",
        f"SELECT ts - {BASE_NS}, value, t.name FROM counter JOIN counter_track t ON t.id = track_id",
        """SELECT slice.name, tid, thread.name AS thread, pid, process.name AS process
        FROM slice JOIN thread_track t ON t.id = track_id JOIN thread USING (utid) JOIN process USING (upid)""",
        """SELECT slice.name, t.name AS track, above.name AS above FROM slice JOIN track t ON t.id = track_id
        JOIN track above ON above.id = t.parent_id""",
    ]
    thread = (4321, "thread 4321 (MainThread)", 4321, "python")
    assert answers(tmp_path / "t.pftrace", queries, tmp_path) == [
        [],
        [
            ("aten::mm", 1_000, 8_000, 0),
            ("orLaunch", 2_000, 1_000, 1),
            ("mm", 4_000, 4_001, 0),
            ("[memory]", 5_000, 0, 1),
        ],
        [("orLaunch", "mm")],
        [
            ("debug.Bytes", 7),
            ("debug.External id", 5),
            ("debug.correlation", 2**30),
            ("debug.est_ achieved occupancy %", 12.5),
            ("debug.grid", "[4, 1, -1]"),
            ("debug.note", 'a "quoted" é \ufffd'),
        ],
        [(6_000, 0.25, "SM active busy")],
        [("aten::mm", *thread), ("orLaunch", *thread), ("[memory]", *thread)],
        [("mm", "stream 7", "OpenReg 0")],
    ]


def test_slices_that_touch_start_together_or_cross_stand_as_deep_as_they_are(tmp_path: Path) -> None:
    events = [
        op("next", 50, 100),
        op("at its start", 50, 50),
        op("inner", 0, 50),
        op("outer", 0, 100),
        op("after", 100, 120),
        kernel("K1", 0, 100),
        kernel("K2", 80, 150),
        kernel("K3", 90, 95),
    ]
    perfetto_trace(trace_of(events), tmp_path / "t.pftrace")
    depths = f"SELECT name, ts - {BASE_NS}, dur, depth FROM slice"
    complaints, found = answers(tmp_path / "t.pftrace", [COMPLAINTS, depths], tmp_path)
    assert complaints == []
    assert set(found) == {
        ("outer", 0, 100, 0),
        ("inner", 0, 50, 1),
        ("next", 50, 50, 1),
        ("at its start", 50, 0, 2),
        ("after", 100, 20, 0),
        ("K1", 0, 100, 0),
        ("K2", 80, 70, 0),
        ("K3", 90, 5, 1),
    }


@each_public_trace
def test_a_public_trace_arrives_as_a_whole(public_trace: Path, tmp_path: Path) -> None:
    trace = load(public_trace)
    perfetto_trace(trace, tmp_path / "t.pftrace")
    queries = [COMPLAINTS, SLICES, "SELECT count(*) FROM flow"]
    complaints, slices, [(flows,)] = answers(tmp_path / "t.pftrace", queries, tmp_path)
    assert complaints == []
    assert Counter(slices) == Counter(
        (trace.name_of(i), category(kind), start, max(end - start, 0) if IS_SLICE[kind] else 0)
        for i, (kind, start, end) in enumerate(
            zip(trace.activity_type.tolist(), trace.start_ns.tolist(), trace.end_ns.tolist(), strict=True)
        )
    )
    assert flows == _arrows(trace)


def _arrows(trace: Trace) -> int:
    """How many ends of arrows have a start that is not after them."""
    columns = (trace.flow_type, trace.flow_id, trace.flow_start, trace.start_ns)
    ends = [one for one in zip(*(column.tolist() for column in columns), strict=True) if one[1]]
    starts: dict[tuple[int, int], int] = {}
    for kind, number, is_start, start_ns in ends:
        if is_start:
            starts.setdefault((kind, number), start_ns)
    return sum(
        (kind, number) in starts and starts[kind, number] <= start_ns
        for kind, number, is_start, start_ns in ends
        if not is_start
    )


def test_an_arrow_back_in_time_is_the_only_thing_that_is_not_shown(tmp_path: Path) -> None:
    launch = {"flow_id": 1, "flow_type": kLinkAsyncCpuGpu}
    trace = trace_of([op("launch", 10, 20, flow_start=1, **launch), kernel("k", 5, 9, **launch)])
    perfetto_trace(trace, tmp_path / "t.pftrace")
    names = "SELECT name FROM slice ORDER BY ts"
    assert answers(tmp_path / "t.pftrace", [names, "SELECT * FROM flow"], tmp_path) == [[("k",), ("launch",)], []]


def test_memory_arrives_as_counters_of_bytes(tmp_path: Path) -> None:
    perfetto_trace(memory_trace(), tmp_path / "t.pftrace")
    counters = f"""SELECT t.name, t.unit, ts - {BASE_NS}, value FROM counter JOIN counter_track t ON t.id = track_id
        WHERE t.name LIKE '%allocated' ORDER BY t.name, ts"""
    cuda = ("cuda:0 memory allocated", "bytes")
    assert answers(tmp_path / "t.pftrace", [COMPLAINTS, counters], tmp_path) == [
        [],
        [("cpu memory allocated", "bytes", 2, 5), (*cuda, 1, 30), (*cuda, 3, 10), (*cuda, 4, 0)],
    ]
