"""``devprof report`` and ``devprof view`` as commands: what they say, and to what they refuse."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from devprof.cli.main import app
from devprof.errors import TraceFileError, UsageError

EVENT = {"ph": "X", "cat": "cpu_op", "name": "mm", "pid": 1, "tid": 1, "ts": 1.0, "dur": 2.0}


@pytest.fixture
def trace_file(tmp_path: Path) -> Path:
    path = tmp_path / "step.json"
    path.write_text(json.dumps({"traceEvents": [EVENT]}))
    return path


def test_the_page_has_the_name_of_the_trace_and_is_where_it_was_asked_for(trace_file: Path) -> None:
    target = trace_file.with_name("page.html")
    done = CliRunner().invoke(app, ["report", str(trace_file), "-o", str(target), "--json"], catch_exceptions=False)
    assert json.loads(done.stdout) == {"report": str(target.resolve()), "bytes": target.stat().st_size}
    assert "<h1>step.json</h1>" in target.read_text(encoding="utf-8")


@pytest.mark.parametrize("command", ["report", "view"])
def test_a_file_that_is_no_trace_is_refused_and_nothing_is_written(command: str, tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("hello")
    words = ["-o", str(tmp_path / "page.html")] if command == "report" else ["--no-open"]
    done = CliRunner().invoke(app, [command, str(path), *words])
    assert isinstance(done.exception, TraceFileError)
    assert list(tmp_path.iterdir()) == [path]


def test_without_the_ui_view_says_so_before_it_reads_the_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("devprof.cli.perfetto_ui.importlib.util.find_spec", lambda name: None)
    done = CliRunner().invoke(app, ["view", "no such file"])
    assert isinstance(done.exception, UsageError)
    assert "devprof[view]" in str(done.exception)
