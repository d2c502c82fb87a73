"""What `devprof validate` says of several files, some of which cannot be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from devprof.cli.main import app

_OP = {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 5, "dur": 1}


@pytest.fixture
def paths(tmp_path: Path) -> tuple[Path, Path, Path]:
    """Make a trace with a broken rule, a file that is no trace, and a sound trace."""
    broken, unreadable, sound = (tmp_path / name for name in ("broken.json", "unreadable.json", "sound.json"))
    broken.write_text(json.dumps([{**_OP, "dur": -1}]))
    unreadable.write_bytes(b"\x7fELF")
    sound.write_text(json.dumps([_OP]))
    return broken, unreadable, sound


def test_a_file_that_cannot_be_read_does_not_hide_what_is_found_in_the_others(paths: tuple[Path, ...]) -> None:
    done = CliRunner().invoke(app, ["validate", *map(str, paths)])
    _, unreadable, sound = paths
    assert done.exit_code == 2
    assert "error times.durations: 1 events end before they start" in done.output
    assert f"{sound}: 1 finding" in done.output
    assert f"devprof: {unreadable} is no trace in JSON" in done.output


def test_in_json_each_file_has_its_findings_and_one_that_cannot_be_read_says_why(paths: tuple[Path, ...]) -> None:
    done = CliRunner().invoke(app, ["validate", "--json", *map(str, paths)])
    rules = {path: [one["rule"] for one in found] for path, found in json.loads(done.stdout).items()}
    broken, unreadable, sound = map(str, paths)
    assert rules == {
        broken: ["times.durations", "rows.named"],
        sound: ["rows.named"],
        unreadable: ["file.readable"],
    }


def test_the_exit_code_is_one_where_all_can_be_read_and_a_rule_is_broken(paths: tuple[Path, ...]) -> None:
    broken, _, sound = map(str, paths)
    assert [CliRunner().invoke(app, ["validate", *files]).exit_code for files in ([broken, sound], [sound])] == [1, 0]
