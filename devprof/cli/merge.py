"""``devprof merge``: the traces of several ranks as one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from devprof.analysis import Answer
from devprof.cli.convert import WRITERS, writer_for
from devprof.cli.output import Json, print_answer, print_json
from devprof.pipeline.ranks import merge_files
from devprof.pipeline.ranks.clocks import ALIGNMENTS, Align

__all__ = ["merge"]

_SHOWN = ("rank", "file", "events", "begins_after_ns", "shift_ns", "matched", "spread_ns")


def merge(
    trace_files: Annotated[list[Path], typer.Argument(help="A trace of each rank, in any format that devprof reads.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help=f"The file to write; its name says the format: {', '.join(WRITERS)}.")
    ],
    align: Annotated[str, typer.Option(help=f"How times are lined up: {', '.join(ALIGNMENTS)}.")] = "clock",
    workers: Annotated[
        int | None, typer.Option(help="Most processes that read files; one trace each in memory.", min=1)
    ] = None,
    as_json: Json = False,
) -> None:
    """Merge the traces of several ranks or processes into one file, and say how far each was moved."""
    write = writer_for(output)
    facts: Any = merge_files(trace_files, output, align=cast(Align, align), workers=workers, write=write)
    ranks = [{key: rank.get(key) for key in _SHOWN} for rank in facts["ranks"]]
    size_bytes = output.stat().st_size
    if as_json:
        print_json(
            {"trace": str(output.resolve()), "bytes": size_bytes, "alignment": facts["alignment"], "ranks": ranks}
        )
        return
    print_answer(_table(ranks, facts["alignment"]))
    typer.echo(f"{output}: {sum(int(rank['events']) for rank in ranks)} events, {size_bytes:,} bytes")


def _table(ranks: list[dict[str, Any]], alignment: Mapping[str, Any]) -> Answer:
    columns = {key: [rank[key] for rank in ranks] for key in _SHOWN}
    return Answer(f"ranks, lined up by {alignment['by']}", columns, tuple(alignment["notes"]))
