"""`devprof diff`: what it prints, and its exit code, which CI reads."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.cli.command import devprof


def trace(path: Path, kernel_us: float, op_us: float, **more: float) -> Path:
    """Write a trace of an op and of kernels."""
    op = {
        "ph": "X",
        "name": "aten::mm",
        "cat": "cpu_op",
        "ts": 1_700_000_000_000_000,
        "dur": op_us,
        "pid": 50,
        "tid": 1,
    }
    kernels = [
        {**op, "name": name, "cat": "kernel", "dur": dur, "pid": 0, "tid": 7, "args": {"device": 0, "stream": 7}}
        for name, dur in {"gemm": kernel_us, **more}.items()
    ]
    path.write_text(json.dumps({"traceEvents": [op, *kernels]}), encoding="utf-8")
    return path


@pytest.fixture
def traces(tmp_path: Path) -> tuple[Path, Path]:
    return trace(tmp_path / "a.json", 100, 10), trace(tmp_path / "b.json", 104, 90, relu=1)


def diff(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return devprof("diff", *words)


def test_every_change_is_shown_the_greatest_first_and_none_fails(traces: tuple[Path, Path]) -> None:
    done = diff(*traces)
    lines = done.stdout.splitlines()
    assert (done.returncode, [line.split("\t")[0] for line in lines[2:]]) == (0, ["aten::mm", "gemm", "relu"])


def test_of_devices_alone_small_changes_left_out(traces: tuple[Path, Path]) -> None:
    done = diff(*traces, "--device-only", "--least", "5")
    lines = done.stdout.splitlines()
    assert [line.split("\t")[0] for line in lines[2:]] == ["relu", "left out: 1 with a change of less than 5 %"]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--fail-on", "slower"], 1),
        (["--fail-on", "gone,fewer"], 0),
        (["--fail-on", "gone", "--fail-on", "new"], 1),
        (["--fail-on", "slower", "--device-only", "--least", "5"], 0),
        (["--fail-on", "slower", "--json"], 1),
    ],
)
def test_the_exit_code_is_1_where_a_row_says_what_is_not_wanted(
    traces: tuple[Path, Path], words: list[str], code: int
) -> None:
    assert diff(*traces, *words).returncode == code


def test_an_unknown_verdict_is_wrong_use_before_a_trace_is_read(tmp_path: Path) -> None:
    done = diff(tmp_path / "none.json", tmp_path / "none.json", "--fail-on", "worse")
    assert (done.returncode, done.stdout) == (2, "")
    assert "no verdict 'worse'; expected among new, gone, more, fewer, slower, faster" in done.stderr
