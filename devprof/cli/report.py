"""``devprof report``: what is in a trace, as one page for a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from devprof.cli.output import Json, TraceFile, print_json, read
from devprof.export.report import html_report

__all__ = ["report"]


def report(
    trace_file: TraceFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write.")] = Path("report.html"),
    top: Annotated[int, typer.Option(help="Rows of each table.", min=1, max=1000)] = 20,
    as_json: Json = False,
) -> None:
    """Write one HTML page about a trace: findings, timeline, device time, idle causes, memory. It needs no network."""
    html_report(read(trace_file), output, title=trace_file.name, most=top)
    size_bytes = output.stat().st_size
    if as_json:
        print_json({"report": str(output.resolve()), "bytes": size_bytes})
    else:
        typer.echo(f"{output}: {size_bytes:,} bytes")
