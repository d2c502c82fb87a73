"""``devprof diff``: what changed between two traces, with an exit code for CI."""

from __future__ import annotations

from typing import Annotated

import typer

from devprof import analysis
from devprof.cli.output import Json, TraceFile, print_answer, print_json, read
from devprof.errors import UsageError

__all__ = ["diff"]

_VERDICTS = ", ".join(analysis.VERDICTS)


def diff(
    before: TraceFile,
    after: TraceFile,
    top: Annotated[int, typer.Option(help="Most rows.", min=1)] = 30,
    device_only: Annotated[bool, typer.Option("--device-only", help="Only kernels, copies and sets.")] = False,
    least: Annotated[
        float, typer.Option(help="Least change of a name's total time, in percent; less is left out.", min=0)
    ] = 0.0,
    fail_on: Annotated[
        list[str] | None, typer.Option(help=f"Exit code 1 where a row says so: {_VERDICTS}; may be given again.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare two traces by name: what is new, gone, more, fewer, slower or faster, the greatest change first."""
    unwanted = _known(fail_on or [])
    answer = analysis.diff(read(before), read(after), device_only=device_only, least_share=least / 100)
    if as_json:
        print_json(answer.as_dict())
    elif len(answer) or answer.notes:
        print_answer(answer, top)
    else:
        typer.echo("no difference in counts or durations")
    if unwanted & set(answer.column("verdict")):
        raise typer.Exit(1)


def _known(verdicts: list[str]) -> set[str]:
    """Return verdicts, which may be joined by commas.

    Raises:
        UsageError: there is none of that name.
    """
    given = {word.strip() for text in verdicts for word in text.split(",")}
    if strange := sorted(given - set(analysis.VERDICTS)):
        raise UsageError(f"there is no verdict {strange[0]!r}; expected among {_VERDICTS}")
    return given
