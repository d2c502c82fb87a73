"""What a file does not have is counted: each exporter returns it, logs it, and `devprof convert` says it."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from devprof.cli.convert import convert
from devprof.export import chrome_trace, folded, perfetto_trace, speedscope, stacks
from devprof.model import ActivityType, kLinkAsyncCpuGpu
from devprof.store import ItemKind, Trace, save
from tests.unit.export.traces import STREAM, kernel, op, small_trace, trace_of

ARROW = {"flow_type": kLinkAsyncCpuGpu}


@pytest.fixture
def lossy() -> Trace:
    """Arrows with one end, a start too many, and one of a kind that Kineto has no name for; a number that JSON has none for."""
    events = [
        op("launch", 0, 1, flow_id=1, flow_start=1, **ARROW),
        op("again", 2, 3, flow_id=1, flow_start=1, **ARROW),
        kernel("k", 4, 5, flow_id=1, **ARROW),
        kernel("never launched", 6, 7, flow_id=2, **ARROW),
        op("never run", 8, 9, flow_id=3, flow_start=1, **ARROW),
        op("of another kind", 10, 11, flow_id=4, flow_type=9, flow_start=1),
        op("to it", 12, 13, flow_id=4, flow_type=9),
        op("sample", 14, 14, STREAM, type=ActivityType.MTIA_COUNTERS, flow_id=2, **ARROW),
        op("instant", 15, 15, type=ActivityType.CPU_INSTANT_EVENT),
    ]
    items = {"share": (ItemKind.FLOAT, {0: float("nan"), 2: 1.0}), "note": (ItemKind.INT, {7: 1})}
    return trace_of(events, items=items, counters={"busy": {7: 0.5}})


def test_chrome_json_says_which_arrows_numbers_and_args_it_does_not_have(lossy: Trace, tmp_path: Path) -> None:
    assert chrome_trace(lossy, tmp_path / "t.json") == {
        "ends of arrows without a start": 2,
        "further starts of an arrow": 1,
        "ends of arrows of a kind or at a place that the format does not have": 2,
        "numbers that are not finite": 1,
        "args of counters' samples": 1,
    }


@pytest.mark.usefixtures("perfetto_writer")
def test_a_perfetto_file_says_which_arrows_and_args_it_does_not_have(lossy: Trace, tmp_path: Path) -> None:
    assert perfetto_trace(lossy, tmp_path / "t.pftrace") == {
        "ends of arrows without a start": 1,
        "starts of arrows without an end": 1,
        "further starts of an arrow": 1,
        "ends of arrows of a kind or at a place that the format does not have": 1,
        "args of counters' samples": 1,
    }


def test_speedscope_and_stacks_say_what_they_have_no_place_for(lossy: Trace, tmp_path: Path) -> None:
    assert speedscope(lossy, tmp_path / "t.json") == {"instants and samples": 2, "args": 3, "ends of arrows": 8}
    assert stacks(lossy, tmp_path / "t.txt") == {"events without a stack or a microsecond": 9}
    assert folded(lossy, tmp_path / "t.folded") == {"events without time of their own": 4}


def test_a_trace_that_is_in_the_file_as_a_whole_leaves_nothing_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "devprof.export"):
        assert chrome_trace(small_trace(), tmp_path / "t.json") == {}
        assert perfetto_trace(small_trace(), tmp_path / "t.pftrace") == {}
    assert caplog.messages == []


def test_what_is_left_out_is_logged_with_the_files_name(
    lossy: Trace, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "devprof.export"):
        speedscope(lossy, tmp_path / "t.json")
    assert caplog.messages == [f"{tmp_path / 't.json'} does not have: 2 instants and samples, 3 args, 8 ends of arrows"]


def test_convert_says_what_is_left_out(lossy: Trace, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(lossy, tmp_path / "t.devprof")
    target = tmp_path / "t.speedscope.json"
    convert(tmp_path / "t.devprof", target)
    assert capsys.readouterr().out.splitlines()[-1] == "left out: 2 instants and samples, 3 args, 8 ends of arrows"
    convert(tmp_path / "t.devprof", target, as_json=True)
    left_out = json.loads(capsys.readouterr().out)["left_out"]
    assert left_out == {"instants and samples": 2, "args": 3, "ends of arrows": 8}
