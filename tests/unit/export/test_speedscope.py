"""The file for speedscope: as its specification says, opens and closes nested and in order of time."""

from __future__ import annotations

import gzip
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from devprof.errors import UsageError
from devprof.export import speedscope
from devprof.export.shapes import IS_SLICE
from devprof.model import ActivityType
from devprof.store import Row, Trace
from tests.unit.export.expected import clean
from tests.unit.export.test_hostile_traces import traces
from tests.unit.export.traces import ROWS, kernel, op, read, trace_of

WHOLE = """\
{"$schema":"https://www.speedscope.app/file-format-schema.json",
"shared":{"frames":[
{"name": "aten::mm"},
{"name": "k \\"1\\""},
{"name": "inner"}
]},
"profiles":[
{"type": "evented", "name": "python: MainThread", "unit": "nanoseconds", "startValue": 0, "endValue": 150,"events":[
{"type":"O","frame":0,"at":0},
{"type":"O","frame":2,"at":0},
{"type":"C","frame":2,"at":60},
{"type":"C","frame":0,"at":100}
]},
{"type": "evented", "name": "OpenReg 0: stream 7", "unit": "nanoseconds", "startValue": 0, "endValue": 150,"events":[
{"type":"O","frame":1,"at":20},
{"type":"C","frame":1,"at":120}
]},
{"type": "evented", "name": "OpenReg 0: stream 7 (2)", "unit": "nanoseconds", "startValue": 0, "endValue": 150,"events":[
{"type":"O","frame":1,"at":110},
{"type":"C","frame":1,"at":150}
]}
],
"name": "t.speedscope.json", "exporter": "devprof 0.1", "activeProfileIndex": 0}
"""


def small_trace() -> Trace:
    events = [
        op("aten::mm", 1_000, 1_100),
        kernel('k "1"', 1_020, 1_120),
        kernel('k "1"', 1_110, 1_150),
        op("inner", 1_000, 1_060),
        op("[memory]", 1_030, 1_030, type=ActivityType.CPU_INSTANT_EVENT),
    ]
    rows = [Row(0, 4321, "MainThread"), ROWS[1]]
    return trace_of(events, rows=rows, facts={"devprof_version": "0.1"})


def test_the_whole_file_is_as_the_specification_says(tmp_path: Path) -> None:
    speedscope(small_trace(), tmp_path / "t.speedscope.json")
    assert (tmp_path / "t.speedscope.json").read_text(encoding="utf-8") == WHOLE


def test_a_packed_file_is_a_file(tmp_path: Path) -> None:
    speedscope(small_trace(), tmp_path / "t.speedscope.json.gz")
    text = gzip.decompress((tmp_path / "t.speedscope.json.gz").read_bytes()).decode()
    assert text == WHOLE.replace("t.speedscope.json", "t.speedscope.json.gz")


def slices_of(file: Any) -> Counter[tuple[str, int, int]]:
    """Name, start and end of all slices, as speedscope takes them; it refuses what is out of order or does not nest."""
    found: Counter[tuple[str, int, int]] = Counter()
    frames = [frame["name"] for frame in file["shared"]["frames"]]
    for profile in file["profiles"]:
        stack: list[tuple[int, int]] = []
        now = profile["startValue"]
        for event in profile["events"]:
            assert now <= event["at"] <= profile["endValue"]
            now = event["at"]
            if event["type"] == "O":
                stack.append((event["frame"], now))
            else:
                frame, start = stack.pop()
                assert frame == event["frame"]
                found[frames[frame], start, now] += 1
        assert not stack
    return found


def test_slices_that_touch_start_together_or_have_no_length_nest(tmp_path: Path) -> None:
    events = [
        op("next", 50, 100),
        op("no length", 50, 50),
        op("inner", 0, 50),
        op("outer", 0, 100),
        op("no length", 50, 50),
        op("after", 100, 120),
        op("at the end", 120, 120),
    ]
    speedscope(trace_of(events), tmp_path / "t.json")
    file = read(tmp_path / "t.json")
    assert slices_of(file) == Counter((e["name"], e["start_ns"], e["end_ns"]) for e in events)
    names = [frame["name"] for frame in file["shared"]["frames"]]
    assert [e["type"] + names[e["frame"]] for e in file["profiles"][0]["events"]] == [
        *(
            "Oouter",
            "Oinner",
            "Cinner",
            "Onext",
            "Ono length",
            "Cno length",
            "Ono length",
            "Cno length",
            "Cnext",
            "Couter",
        ),
        *("Oafter", "Cafter", "Oat the end", "Cat the end"),
    ]


def test_many_slices_stay_in_order(tmp_path: Path) -> None:
    n = 20_000
    events = [op(f"op {i % 3}", 10 * i, 10 * i + 10, i % 2) for i in range(n)]
    speedscope(trace_of(events, rows=[Row(0, 1), Row(0, 2)]), tmp_path / "t.json")
    expected = Counter((e["name"], e["start_ns"], e["end_ns"]) for e in events)
    assert slices_of(read(tmp_path / "t.json")) == expected


def test_a_trace_without_slices_has_no_profile(tmp_path: Path) -> None:
    speedscope(trace_of([op("[memory]", 3, 3, type=ActivityType.CPU_INSTANT_EVENT)]), tmp_path / "t.json")
    file = read(tmp_path / "t.json")
    assert (file["shared"], file["profiles"]) == ({"frames": []}, [])


def test_a_file_that_cannot_be_made_is_the_callers_mistake(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no directory"):
        speedscope(small_trace(), tmp_path / "nowhere" / "t.json")


@settings(deadline=None, max_examples=200)
@given(traces())
def test_whatever_a_trace_holds_its_slices_are_there_and_nest(trace: Trace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        speedscope(trace, Path(folder) / "t.json")
        file = read(Path(folder) / "t.json")
    slices = [i for i in range(len(trace)) if IS_SLICE[trace.activity_type[i]]]
    first_ns = min((int(trace.start_ns[i]) for i in slices), default=0)
    expected = Counter(
        (
            clean(trace.name_of(i)),
            int(trace.start_ns[i]) - first_ns,
            max(int(trace.start_ns[i]), int(trace.end_ns[i])) - first_ns,
        )
        for i in slices
    )
    assert slices_of(file) == expected
