"""What a trace's names can do to a terminal: nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import devprof
from devprof.cli.main import app
from devprof.cli.output import printable
from devprof.store import save

HOSTILE = (
    "\x1b]0;title\x07",
    "\x1b[2J\x1b[1;1Hgone",
    "over\rwritten",
    "\x9b31mred",
    "\u202egnp.exe",
    "half \ud800",
    "[bold red]markup[/bold red]",
    "two\x0blines",
)
COMMANDS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]")


@pytest.fixture(scope="module")
def trace_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hostile") / "hostile.devprof"
    with devprof.profile(activities=["cpu"], host="python") as prof:
        for name in HOSTILE:
            with devprof.record_function(name):
                pass
    save(prof.trace, path)
    return path


@pytest.mark.parametrize("command", ["summary", "validate"])
def test_no_command_prints_what_a_terminal_would_obey(command: str, trace_file: Path) -> None:
    done = CliRunner().invoke(app, [command, str(trace_file)])
    assert done.exit_code in (0, 1)
    assert COMMANDS.findall(done.output) == []
    if command == "summary":
        assert "\ufffd]0;title\ufffd" in done.output
        assert "[bold red]markup[/bold red]" in done.output


def test_text_that_is_only_text_is_printed_as_it_is() -> None:
    assert printable("aten::add\tµs 中文 é\n🙂") == "aten::add\tµs 中文 é\n🙂"
