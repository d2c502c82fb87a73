"""The bar of a long read."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from devprof.cli.progress import reading

_PATH = Path("odd[name].json")


class _Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def _console() -> tuple[Console, io.StringIO]:
    drawn = io.StringIO()
    return Console(file=drawn, force_terminal=True, width=100), drawn


def test_a_read_that_takes_a_while_gets_a_bar_that_goes_away_again() -> None:
    clock, (console, drawn) = _Clock(), _console()
    with reading(_PATH, console=console, seconds=clock) as progress:
        assert progress is not None
        progress(1_000_000, 8_000_000)
        assert drawn.getvalue() == ""
        clock.now_s += 1.5
        progress(2_000_000, 8_000_000)
        assert "odd[name].json" in drawn.getvalue()
        assert "2.0/8.0 MB" in drawn.getvalue()
        clock.now_s += 0.01
        progress(3_000_000, 8_000_000)
        assert "3.0/8.0 MB" not in drawn.getvalue()
        clock.now_s += 0.2
        progress(4_000_000, 8_000_000)
        assert "4.0/8.0 MB" in drawn.getvalue()
    assert drawn.getvalue().endswith("\x1b[2K")  # the line is empty again


def test_a_short_read_draws_nothing() -> None:
    clock, (console, drawn) = _Clock(), _console()
    with reading(_PATH, console=console, seconds=clock) as progress:
        assert progress is not None
        clock.now_s += 0.9
        progress(8, 8)
    assert drawn.getvalue() == ""


def test_the_bar_goes_away_when_the_read_fails() -> None:
    clock, (console, drawn) = _Clock(), _console()

    def fail() -> None:
        with reading(_PATH, console=console, seconds=clock) as progress:
            assert progress is not None
            clock.now_s += 2
            progress(1, 8)
            raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        fail()
    assert drawn.getvalue().endswith("\x1b[2K")


def test_nothing_is_drawn_where_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    with reading(_PATH) as progress:
        assert progress is None
    assert capsys.readouterr() == ("", "")
