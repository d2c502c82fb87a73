"""The first program runs as it is, and everything that torch says of its device work is true."""

from __future__ import annotations

import runpy
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import simland
from simland import CATEGORY_OF_CALL, Session, Trace, device_events, host_events, listed_work
from torch.autograd.profiler_util import _format_time

import devprof

EXAMPLE = Path(__file__).parents[2] / "examples/kernel_trace.py"
PROGRAM = """\
import torch
from torch.profiler import profile, ProfilerActivity

with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as prof:
    x = torch.randn(512, 512, device="openreg")
    y = torch.randn(512, 512, device="openreg")
    z = x @ y

prof.export_chrome_trace("kernel_trace.json")
"""
WORK = [("normal_kernel", "aten::normal_"), ("normal_kernel", "aten::normal_"), ("mm_kernel", "aten::mm")]
"""Kernel, and the op that launches it."""


@pytest.fixture(scope="module")
def outcome(fresh: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What became of the program in a fresh interpreter, as a user would run it."""
    folder = tmp_path_factory.mktemp("verbatim")
    (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
    done = fresh("program.py", folder=folder)
    done.folder = folder
    return done


@pytest.fixture(scope="module")
def trace(outcome: Any) -> Trace:
    assert outcome.returncode == 0, outcome.stderr
    return Trace.read(outcome.folder / "kernel_trace.json")


@pytest.fixture(scope="module")
def prof(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The profile of the program, run in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("in process"))
        yield runpy.run_path(str(EXAMPLE))["prof"]


def test_the_example_is_the_program() -> None:
    assert EXAMPLE.read_text(encoding="utf-8") == PROGRAM


def test_it_exits_with_0_and_says_nothing_but_what_torch_says(outcome: Any) -> None:
    assert outcome.returncode == 0
    assert outcome.stdout == ""
    assert [line for line in outcome.stderr.splitlines() if not line.startswith("USDT:")] == []


def test_it_leaves_one_file_which_is_strict_json(outcome: Any, trace: Trace) -> None:
    assert sorted(path.name for path in outcome.folder.iterdir()) == ["kernel_trace.json", "program.py"]
    assert trace.events


def test_the_file_holds_each_kernel_once_on_its_stream_and_names_its_op(trace: Trace) -> None:
    kernels = sorted(trace.work(), key=lambda one: one.start_ns)
    assert [(one.category, one.name, trace.ops()[one.op_id].name) for one in kernels] == [
        ("kernel", kernel, op) for kernel, op in WORK
    ]
    assert {one.row for one in kernels} == {(0, 0)}
    assert trace.row_names()[0, 0] == ("openreg 0", "stream 0")
    assert len({one.op_id for one in kernels}) == len(WORK)


def test_the_files_calls_of_the_runtime_are_the_launches_and_torchs_own_wait_at_the_end(trace: Trace) -> None:
    calls = [(one.name, trace.ops()[one.op_id].name if one.op_id else "") for one in trace.launches()]
    assert calls == [*(("orLaunchKernel", op) for _, op in WORK), ("orDeviceSynchronize", "")]


def test_an_arrow_leaves_each_launch_and_arrives_at_its_kernel(trace: Trace) -> None:
    kernels = {one.launch: one for one in trace.work()}
    launches = {one.launch: one for one in trace.launches() if one.launch in kernels}
    starts, finishes = trace.arrow_ends("ac2g", "s"), trace.arrow_ends("ac2g", "f")
    assert starts.keys() == finishes.keys() == kernels.keys() == launches.keys()
    for number, kernel in kernels.items():
        (start,), (finish,) = starts[number], finishes[number]
        assert (start["pid"], start["tid"]) == launches[number].row
        assert launches[number].start_ns <= trace.ns(start["ts"]) <= launches[number].end_ns
        assert (finish["pid"], finish["tid"]) == kernel.row
        assert trace.ns(finish["ts"]) == kernel.start_ns
        assert (launches[number].op_id, kernel.op_id) == (kernel.op_id, launches[number].op_id)


def test_the_files_account_closes(trace: Trace) -> None:
    account = trace.document["devprof"]["plugins"]["openreg"]
    counts = {key: account[key] for key in ("produced", "emitted", "dropped", "rejected", "device_work", "linked")}
    assert counts == {
        "produced": 7, "emitted": 7, "dropped": {}, "rejected": {}, "device_work": 3, "linked": 3,
    }  # fmt: skip
    assert (account["notes"], account["errors"], account["failures"], account["lost_unknown"]) == ({}, [], [], [])


def test_torch_lists_the_matmuls_kernel_under_aten_mm_and_nowhere_else(prof: Any) -> None:
    owners = {event.name: event for event in host_events(prof) if event.kernels}
    assert {name: [kernel.name for kernel in event.kernels] for name, event in owners.items()} == {
        "aten::normal_": ["normal_kernel"],
        "aten::mm": ["mm_kernel"],
    }
    (kernel,) = (event for event in device_events(prof) if event.name == "mm_kernel")
    (owned,) = owners["aten::mm"].kernels
    assert (owned.device, owned.duration) == (kernel.device_index, kernel.time_range.elapsed_us())
    assert owned.duration > 0


def test_torch_lists_the_kernels_of_every_op_exactly_once(prof: Any) -> None:
    owned = listed_work(kernel for event in host_events(prof) for kernel in event.kernels)
    records = Counter((e.name, e.device_index, e.time_range.elapsed_us()) for e in device_events(prof))
    assert owned == records
    assert sorted(event.name for event in device_events(prof)) == sorted(kernel for kernel, _ in WORK)


def test_launches_are_children_of_their_ops_on_their_thread_and_own_nothing(prof: Any) -> None:
    launches = [event for event in host_events(prof) if event.name == "orLaunchKernel"]
    assert [(e.cpu_parent.name, e.kernels, e.thread == e.cpu_parent.thread) for e in launches] == [
        (op, [], True) for _, op in WORK
    ]


def test_the_table_shows_the_time_of_the_matmuls_kernel(prof: Any) -> None:
    (kernel,) = (event for event in device_events(prof) if event.name == "mm_kernel")
    rows = [row for row in prof.key_averages() if row.key in ("mm_kernel", "aten::mm", "aten::matmul")]
    shown = {row.key: (row.self_device_time_total, row.device_time_total) for row in rows}
    duration_us = kernel.time_range.elapsed_us()
    assert shown == {
        "mm_kernel": (duration_us, duration_us),
        "aten::mm": (duration_us, duration_us),
        "aten::matmul": (0, duration_us),
    }
    assert duration_us > 0


def test_the_time_over_ops_is_the_time_over_records_is_the_tables_footer(prof: Any) -> None:
    over_ops = sum(event.self_device_time_total for event in host_events(prof))
    over_records = sum(event.time_range.elapsed_us() for event in device_events(prof))
    assert over_ops == pytest.approx(over_records, abs=1e-6)
    assert simland.footer(prof.key_averages().table()) == _format_time(over_records)


def test_the_report_says_that_nothing_was_lost(prof: Any) -> None:
    report = devprof.report_of(prof)
    assert (report.clean, report.complete, report.complaints()) == (True, True, [])


def test_launches_add_nothing_to_their_ops_device_time(virtual_runs: Any) -> None:
    """With a virtual clock a session with launches and one that filters them show the very same times, in ns."""
    with_launches, without = (virtual_runs[0][key] for key in ("with_launches", "without_launches"))
    assert with_launches["launches"] == [*["orLaunchKernel"] * 3, "orDeviceSynchronize"]
    assert without["launches"] == []
    assert with_launches["total"] == without["total"]
    assert with_launches["self"] == without["self"]
    assert dict(without["total"])["aten::mm"] > 0


def test_the_trace_tells_what_the_simulator_did(tmp_path: Path) -> None:
    session: Session = simland.record(simland.first_program, tmp_path)
    assert [(CATEGORY_OF_CALL[one.call], one.name) for one in session.worked] == [("kernel", name) for name, _ in WORK]
    assert simland.disagreements(session) == []
