"""No two slices on one track cross, whatever the trace holds."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devprof.export import chrome_trace, fitting, lanes
from devprof.export.build_spec import EXPORT
from devprof.export.events import IS_SLICE
from devprof.export.fitting import by_start, longest_first
from devprof.export.lanes import assign_lanes
from devprof.export.native_library import library
from devprof.export.nesting import Nesting
from devprof.export.perfetto_order import slices_in_order
from devprof.model import ActivityType
from devprof.native import library_path
from devprof.store import Row, Trace
from tests.unit.export.test_hostile_traces import traces
from tests.unit.export.traces import BASE_NS, PLACES, crossings, end_ns, events_of, kernel, op, read, start_ns, trace_of

T = ActivityType


def lane_of_each(trace: Trace) -> list[int]:
    found = assign_lanes(trace, IS_SLICE)
    lane = np.zeros(len(trace), dtype=np.int64)
    lane[found.events] = found.lane
    return lane.tolist()


CASES = [
    # slices, lanes with the longest first, lanes by start
    ([(0, 100), (80, 150), (90, 95)], [0, 1, 0], [0, 1, 0]),
    ([(0, 10), (10, 20), (20, 20), (5, 10)], [0, 0, 0, 0], [0, 0, 0, 0]),
    ([(0, 10), (0, 10), (0, 5), (5, 10)], [0, 0, 0, 0], [0, 0, 0, 0]),
    ([(0, 10), (5, 15), (10, 20), (15, 25)], [0, 1, 0, 1], [0, 1, 0, 1]),
    ([(0, 30), (10, 40), (20, 50), (35, 36)], [0, 1, 2, 0], [0, 1, 2, 0]),
    ([(50, 60), (0, 55), (10, 20)], [1, 0, 0], [1, 0, 0]),
    ([(5, 5), (0, 5), (5, 9), (4, 5)], [0, 0, 0, 0], [0, 0, 0, 0]),
    ([(0, 10), (9, 3), (2, 12)], [0, 0, 1], [0, 0, 1]),
    ([(0, 10), (8, 100), (95, 105), (20, 30)], [1, 0, 1, 0], [0, 1, 0, 0]),
]


@pytest.mark.usefixtures("native_writers")
@settings(deadline=None, max_examples=300)
@given(traces())
def test_native_code_leaves_out_of_the_look_only_rows_that_need_none(trace: Trace) -> None:
    nesting = Nesting(library(library_path(EXPORT)), trace, IS_SLICE)
    expected, found = assign_lanes(trace, IS_SLICE), assign_lanes(trace, IS_SLICE, nesting.looked_at)
    for name in ("events", "lane", "count", "ahead"):
        assert getattr(found, name).tolist() == getattr(expected, name).tolist()
    assert nesting.in_order == slices_in_order(trace, IS_SLICE)


@pytest.mark.usefixtures("native_writers")
@pytest.mark.parametrize(
    ("slices", "looked_at", "in_order"),
    [
        ([(0, 10), (0, 5), (2, 3), (5, 10), (10, 20), (20, 20)], False, True),
        ([(0, 10), (5, 11)], True, True),
        ([(0, 5), (0, 10)], True, False),
        ([(5, 6), (0, 1)], True, False),
        ([(0, 10), (10, 10), (10, 20)], True, False),
    ],
)
def test_a_row_is_looked_at_where_slices_cross_or_do_not_come_in_order(
    slices: list[tuple[int, int]], looked_at: bool, in_order: bool
) -> None:
    nesting = Nesting(library(library_path(EXPORT)), trace_of([kernel("k", *times) for times in slices]), IS_SLICE)
    assert (nesting.looked_at.tolist(), nesting.in_order) == ([False, looked_at], in_order)


@pytest.mark.parametrize(("slices", "longest", "by_start"), CASES)
def test_the_longest_slices_stay_on_the_first_lane(
    slices: list[tuple[int, int]], longest: list[int], by_start: list[int]
) -> None:
    assert lane_of_each(trace_of([kernel("k", *times) for times in slices])) == longest


@pytest.mark.parametrize(("slices", "longest", "by_start"), CASES)
def test_where_many_slices_cross_the_first_ones_stay(
    slices: list[tuple[int, int]], longest: list[int], by_start: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fitting, "_MOST_TRIES", 0)
    assert lane_of_each(trace_of([kernel("k", *times) for times in slices])) == by_start


def test_what_lies_inside_a_slice_in_the_tree_moves_with_it() -> None:
    function = {"type": T.PYTHON_FUNCTION}
    events = [
        op("main", 0, 1_000, **function),
        op("__enter__", 100, 140, parent=0, **function),
        op("helper", 110, 120, parent=1, **function),
        op("deeper", 112, 118, parent=2, **function),
        op("[memory]", 113, 113, parent=3, type=T.CPU_INSTANT_EVENT),
        op("the range", 130, 900, parent=0, type=T.USER_ANNOTATION),
        op("aten::mm", 200, 300, parent=5),
        op("__exit__", 880, 920, parent=0, **function),
        op("outside of its parent", 950, 960, parent=1),
    ]
    assert lane_of_each(trace_of(events)) == [0, 1, 1, 1, 0, 0, 0, 1, 0]


def test_a_slice_keeps_to_the_lane_of_its_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    events = [
        op("task A", 0, 100),
        op("task B", 50, 150),
        op("op of A", 60, 70, parent=0),
        op("op of B", 65, 75, parent=1),
    ]
    for way in (longest_first, by_start):
        monkeypatch.setattr(fitting, "longest_first", way)
        assert lane_of_each(trace_of(events)) == [0, 1, 0, 1]


def test_instants_and_counters_need_no_lane() -> None:
    events = [kernel("k", 0, 10), op("i", 5, 15, 1, type=T.CPU_INSTANT_EVENT), op("c", 5, 15, 1, type=T.MTIA_COUNTERS)]
    assert lane_of_each(trace_of(events)) == [0, 0, 0]


def test_a_long_slice_is_remembered_over_the_parts_in_which_a_trace_is_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lanes, "_AT_ONCE", 10)
    events = [op("long", 0, 1_000), *(op("o", 10 * i, 10 * i + 10) for i in range(99)), op("cross", 995, 1_005)]
    assert lane_of_each(trace_of(events)) == [0] * 100 + [1]


def test_rows_of_further_lanes_are_named_after_the_first_and_take_no_number_that_lives(tmp_path: Path) -> None:
    rows = [Row(1, 7, "stream 7"), Row(1, 8, "stream 8"), Row(1, 9, "stream 9"), Row(0, 4321, "main")]
    crossing = [kernel("a", 0, 10, 0), kernel("b", 5, 15, 0), kernel("c", 7, 20, 0)]
    trace = trace_of([*crossing, kernel("d", 0, 9, 1), kernel("e", 0, 9, 2), op("o", 0, 9, 3)], rows=rows)
    chrome_trace(trace, tmp_path / "t.json")
    file = read(tmp_path / "t.json")
    named: dict[Any, dict[str, Any]] = {}
    for event in events_of(file, "M"):
        if event["name"].startswith("thread_"):
            named.setdefault((event["pid"], event["tid"]), {}).update(event["args"])
    assert named == {
        (0, 7): {"name": "stream 7", "sort_index": 0},
        (0, 10): {"name": "stream 7 (2)", "sort_index": 1},
        (0, 11): {"name": "stream 7 (3)", "sort_index": 2},
        (0, 8): {"name": "stream 8", "sort_index": 3},
        (0, 9): {"name": "stream 9", "sort_index": 4},
        (4321, 4321): {"name": "main", "sort_index": 4321},
    }
    assert crossings(file) == []


def test_a_span_around_work_that_starts_with_it_comes_first_in_the_file(tmp_path: Path) -> None:
    spans = [op(name, 0, end, 1, type=T.GPU_USER_ANNOTATION) for name, end in (("inner", 20), ("outer", 30))]
    trace = trace_of([kernel("k", 0, 10), kernel("l", 12, 19), *spans])
    chrome_trace(trace, tmp_path / "t.json")
    file = read(tmp_path / "t.json")
    assert [event["name"] for event in events_of(file, "X")] == ["outer", "inner", "k", "l"]
    assert crossings(file) == []


TIMES = st.integers(0, 40)
SLICES = st.lists(st.tuples(TIMES, TIMES, st.integers(0, 2), st.integers(-1, 5)), max_size=40)


@settings(deadline=None)
@given(SLICES, st.sampled_from([3, 8, 1000]), st.sampled_from([0, 10**6]))
def test_no_slices_cross_on_any_track_and_none_is_lost(
    slices: list[tuple[int, int, int, int]], at_once: int, tries: int
) -> None:
    rows = (Row(0, 1), Row(1, 1), Row(1, 2))
    events = [
        op(f"{i}", start, end, row, parent=min(parent, i - 1), type=T.CPU_OP if row == 0 else T.CONCURRENT_KERNEL)
        for i, (start, end, row, parent) in enumerate(slices)
    ]
    trace = trace_of(events, rows=rows)
    with mock.patch.object(lanes, "_AT_ONCE", at_once), mock.patch.object(fitting, "_MOST_TRIES", tries):
        file = written(trace)
    assert crossings(file) == []
    found = Counter(
        (event["name"], event["pid"], start_ns(file, event), end_ns(file, event)) for event in events_of(file, "X")
    )
    expected = Counter(
        (str(i), PLACES[rows[row].place].id, BASE_NS + start, BASE_NS + max(start, end))
        for i, (start, end, row, _) in enumerate(slices)
    )
    assert found == expected


def written(trace: Trace) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        chrome_trace(trace, Path(folder) / "t.json")
        return read(Path(folder) / "t.json")
