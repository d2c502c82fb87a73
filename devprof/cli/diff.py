"""``devprof diff``: what changed between two traces."""

from __future__ import annotations

from typing import Annotated

import typer

from devprof import analysis
from devprof.cli.output import Json, TraceFile, print_answer, print_json, read

__all__ = ["diff"]


def diff(
    before: TraceFile,
    after: TraceFile,
    top: Annotated[int, typer.Option(help="Most rows.", min=1)] = 30,
    as_json: Json = False,
) -> None:
    """Compare two traces by name: what is new, gone, slower or faster, the greatest change first."""
    answer = analysis.diff(read(before), read(after))
    if as_json:
        print_json(answer.as_dict())
    elif len(answer):
        print_answer(answer, top)
    else:
        typer.echo("no difference in counts or durations")
