"""`devprof summary`: what it shows first, and what it says as JSON."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path
from typing import Any

import pytest

from devprof.pipeline.files import load

BASE_S = 1_700_000_000


def event(name: str, cat: str, ts_us: float, dur_us: float, **args: object) -> dict[str, object]:
    tid = 7 if cat == "kernel" else 1
    times = {"ts": BASE_S * 1_000_000 + ts_us, "dur": dur_us}
    return {"ph": "X", "name": name, "cat": cat, "pid": 0 if cat == "kernel" else 50, "tid": tid, **times, "args": args}


def launched(name: str, ts_us: float, dur_us: float, number: int) -> list[dict[str, object]]:
    return [
        event(name, "cpu_op", ts_us, 5, **{"External id": number}),
        event("cudaLaunchKernel", "cuda_runtime", ts_us + 1, 2, **{"External id": number, "correlation": 100 + number}),
        event("k_" + name, "kernel", ts_us + 10, dur_us, device=0, stream=7, correlation=100 + number),
    ]


def labelled(device: int) -> dict[str, object]:
    labels = {"labels": f"GPU {device}"}
    return {"ph": "M", "name": "process_labels", "ts": 0, "pid": device, "tid": 0, "args": labels}


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A step of 300 us with a short op before a long one."""
    path = tmp_path / "t.json"
    events = [
        event("ProfilerStep#3", "user_annotation", 0, 300),
        *launched("short", 10, 1, 1),
        *launched("long", 50, 90, 2),
    ]
    path.write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
    return path


def devprof(*words: str | Path) -> Any:
    command = [sys.executable, "-m", "devprof", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)


def test_ops_that_took_most_time_on_devices_come_first(trace: Path) -> None:
    lines = devprof("summary", trace, "--top", "3").stdout.splitlines()
    head = next(number for number, line in enumerate(lines) if "Self CPU %" in line)
    assert [line.split()[0] for line in lines[head + 2 : head + 5]] == ["long", "k_long", "short"]


def test_spans_of_ranges_on_devices_are_not_among_the_ops(trace: Path) -> None:
    events = json.loads(trace.read_text())["traceEvents"]
    span = {**event("forward", "gpu_user_annotation", 20, 130), "pid": 0, "tid": 7}
    trace.write_text(json.dumps({"traceEvents": [*events, event("forward", "user_annotation", 5, 80), span]}))
    lines = devprof("summary", trace).stdout.splitlines()
    head = next(number for number, line in enumerate(lines) if "Self CPU %" in line)
    names = [line.split()[0] for line in lines[head + 2 :] if line.strip()]
    assert names[:2] == ["long", "k_long"]
    assert names.count("forward") == 1
    shares = [line.split()[7] for line in lines[head + 2 : head + 6]]
    assert shares == ["98.90%", "98.90%", "1.10%", "1.10%"]
    assert "not listed: the time on devices from first work to last, idle time included, of 1 range" in lines


def test_a_steps_start_is_counted_from_the_windows(trace: Path) -> None:
    lines = devprof("summary", trace).stdout.splitlines()
    row = lines[lines.index("steps") + 2].split("\t")
    assert row == ["3", "0 ns", "300.000 us", "91.000 us"]


def test_json_has_the_ops_and_the_times_of_the_trace(trace: Path) -> None:
    said = json.loads(devprof("summary", trace, "--json").stdout)
    assert {row["name"]: row["device_time_total"] for row in said["ops"] if row["device_time_total"]} == {
        "short": 1.0,
        "k_short": 1.0,
        "long": 90.0,
        "k_long": 90.0,
        "ProfilerStep*": 91.0,
    }
    assert said["steps"] == [
        {"step": 3, "start_ns": int(load(trace).start_ns.min()), "duration_ns": 300_000, "busy cuda:0_ns": 91_000}
    ]


def test_a_flame_graph_of_a_trace_without_python_functions_has_its_ops(trace: Path, tmp_path: Path) -> None:
    devprof("convert", trace, tmp_path / "t.folded")
    paths = [line.rpartition(" ")[0] for line in (tmp_path / "t.folded").read_text(encoding="utf-8").splitlines()]
    assert {path for path in paths if path.endswith("LaunchKernel")} == {
        "ProfilerStep#3;short;cudaLaunchKernel",
        "ProfilerStep#3;long;cudaLaunchKernel",
    }


def test_in_a_narrow_terminal_numbers_stay_whole_and_names_are_text(trace: Path, tmp_path: Path) -> None:
    odd = tmp_path / "odd.json"
    odd.write_text(trace.read_text(encoding="utf-8").replace("k_long", "k[red]x[/y]" + "z" * 60), encoding="utf-8")
    shown = _in_terminal(40, "summary", odd)
    assert "98.9 % │ 90.000 us │ 90.000 us │ 90.000 us │" in shown
    assert "k[red]x[/y]zzzzzzzzzzzzz" in shown


def _in_terminal(columns: int, *words: str | Path) -> str:
    """Run a command with a terminal as its stdout, and return what it showed."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    command = [sys.executable, "-m", "devprof", *map(str, words)]
    environment = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES")}
    with subprocess.Popen(command, stdout=follower, stdin=subprocess.DEVNULL, env={**environment, "TERM": "dumb"}):
        os.close(follower)
        parts = []
        with (
            contextlib.suppress(OSError),
            os.fdopen(leader, "rb", buffering=0) as screen,
        ):  # EIO: the other end is closed
            while part := screen.read(65536):
                parts.append(part)
    return b"".join(parts).decode()


def test_of_a_merged_trace_each_rank_has_its_steps_and_places_without_events_are_only_counted(
    trace: Path, tmp_path: Path
) -> None:
    whole = json.loads(trace.read_text("utf-8"))
    files = []
    for rank in (0, 1):
        files.append(tmp_path / f"{rank}.json")
        said = {"distributedInfo": {"rank": rank}, "traceEvents": [*whole["traceEvents"], *map(labelled, range(3))]}
        files[-1].write_text(json.dumps(said), encoding="utf-8")
    devprof("merge", *files, "-o", tmp_path / "all.devprof")
    lines = devprof("summary", tmp_path / "all.devprof").stdout.splitlines()
    begin = lines.index("steps")
    assert [line.split("\t") for line in lines[begin + 1 : begin + 4]] == [
        ["rank", "step", "start", "duration", "busy cuda:0", "busy cuda:1"],
        ["0", "3", "0 ns", "300.000 us", "91.000 us", ""],
        ["1", "3", "0 ns", "300.000 us", "", "91.000 us"],
    ]
    facts = dict(line.split("\t") for line in lines if line.count("\t") == 1)
    assert (facts["ranks"], facts["lined_up_by"]) == ("0, 1", "clock")
    facts = dict(line.split("\t") for line in devprof("summary", files[0]).stdout.splitlines() if line.count("\t") == 1)
    assert facts["places"] == "process 50, cuda:0 and 2 without events"
