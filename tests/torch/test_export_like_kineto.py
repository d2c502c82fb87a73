"""devprof's file of a torch session shows what Kineto's file of the same session shows, and the ids that Kineto leaves out."""

from __future__ import annotations

import json
import threading
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import torch
import toyland
from kineto_file import OF_TORCH_ALONE, Line, Shown, shown_by_file
from torch.profiler import record_function
from toyland import BOTH, CPU, Join, Runtime

import devprof.torch
from devprof.export import chrome_trace, stacks
from devprof.model import DeviceInfo, ResourceInfo
from tests.unit.export.traces import crossings, read


def without_a_range() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    model(torch.ones(3, 4)).sum().backward()


def a_step() -> None:
    with record_function("the step"):
        without_a_range()


def both_files(prof: Any, folder: Path) -> tuple[Shown, Shown]:
    """What devprof's file and Kineto's file of one session show."""
    chrome_trace(devprof.torch.trace_of(prof), folder / "ours.json")
    prof.export_chrome_trace(str(folder / "kineto.json"))
    return shown_by_file(folder / "ours.json"), shown_by_file(folder / "kineto.json")


def without(lines: Counter[Line], *keys: str) -> Counter[Line]:
    """The events without some of their args."""
    found: Counter[Line] = Counter()
    for line, count in lines.items():
        args = {key: value for key, value in json.loads(line.args).items() if key not in keys}
        found[line._replace(args=json.dumps(args))] += count
    return found


def assert_shows_the_same(ours: Shown, kineto: Shown, *added: str) -> None:
    """Both files show the same, but for some args of devprof's."""
    assert without(ours.lines, *OF_TORCH_ALONE, *added) == without(kineto.lines, *added)
    assert ours.arrows == kineto.arrows
    assert ours.processes == kineto.processes
    assert ours.threads == kineto.threads
    assert ours.window_end_ns == kineto.window_end_ns


@pytest.mark.parametrize(
    "options", [{}, {"record_shapes": True, "profile_memory": True, "with_flops": True}], ids=["plain", "everything"]
)
def test_a_host_session_is_the_same_event_by_event(tmp_path: Path, options: dict[str, bool]) -> None:
    with toyland.profile([CPU], **options) as prof:
        a_step()
    assert_shows_the_same(*both_files(prof, tmp_path))


def test_frames_that_a_range_begins_or_ends_in_stand_on_a_lane_of_their_own(tmp_path: Path) -> None:
    """torch puts a range's start into the frame of `__enter__`, and the two cross; all else is where Kineto has it."""
    with toyland.profile([CPU], with_stack=True, with_modules=True) as prof:
        a_step()
    ours, kineto = both_files(prof, tmp_path)
    # threads that other tests left waiting have frames of their own in the trace; the step ran on this one
    thread, theirs = threading.get_native_id(), {line.tid for line in kineto.lines}
    moved = [line for line in ours.lines if line.tid not in theirs]
    assert {line.name.split(": ")[-1] for line in moved} >= {"__enter__", "__exit__"}
    assert {line.cat for line in moved} == {"python_function"}
    back = Counter(
        {(line._replace(tid=thread) if line in moved else line): count for line, count in ours.lines.items()}
    )
    assert without(back, *OF_TORCH_ALONE) == kineto.lines
    assert crossings(read(tmp_path / "ours.json")) == []
    assert crossings(json.loads((tmp_path / "kineto.json").read_text(encoding="utf-8"), parse_float=Decimal))


def test_a_device_session_shows_the_same_and_the_launch_numbers(join: Join, tmp_path: Path) -> None:
    runtime = Runtime()
    join(
        script=runtime.script,
        devices=[DeviceInfo(0, "First", label="a label"), DeviceInfo(1, "Second", sort_index=7)],
        resources=[ResourceInfo(4, 0, "copies", sort_index=-1)],
    )
    with toyland.profile(BOTH) as prof:
        with record_function("range"):
            toyland.run_in_op(lambda: runtime.launch("linked", works=2))
        runtime.launch("not linked")
    ours, kineto = both_files(prof, tmp_path)
    as_recorded = Counter({_as_recorded(line): count for line, count in kineto.lines.items()})
    assert_shows_the_same(ours, kineto._replace(lines=as_recorded), "correlation", "device", "stream")
    args = {line.name: json.loads(line.args) for line in ours.lines if "linked" in line.name}
    for name in ("linked", "not linked"):
        assert args[name]["correlation"] == args[f"launch {name}"]["correlation"] > 0
        assert (args[name]["device"], args[name]["stream"]) == (0, 0)
        assert "stream" not in args[f"launch {name}"]


def _as_recorded(line: Line) -> Line:
    """Undo that Kineto draws a user range's span on a device 1 ns beyond both of its ends."""
    if line.cat != "gpu_user_annotation":
        return line
    return line._replace(start_ns=line.start_ns + 1, duration_ns=line.duration_ns - 2)


def test_stacks_are_those_of_torch(tmp_path: Path) -> None:
    """Where no slices cross; where they do, torch takes the time that two share off their parent twice."""
    verbose = torch._C._profiler._ExperimentalConfig(verbose=True)
    with toyland.profile([CPU], with_stack=True, experimental_config=verbose) as prof:
        without_a_range()
    stacks(devprof.torch.trace_of(prof), tmp_path / "ours.txt")
    prof.export_stacks(str(tmp_path / "torch.txt"))
    ours, expected = (Counter((tmp_path / name).read_text().splitlines()) for name in ("ours.txt", "torch.txt"))
    assert ours == expected
