"""``devprof convert``: one format into another."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from devprof import export
from devprof.cli.output import Json, TraceFile, print_json, read
from devprof.errors import UsageError
from devprof.store import Trace, save

__all__ = ["WRITERS", "convert", "writer_for"]

WRITERS: dict[str, Callable[[Trace, Path], dict[str, int] | None]] = {
    ".devprof": save,
    ".speedscope.json": export.speedscope,  # before what its name ends with as well
    ".speedscope.json.gz": export.speedscope,
    ".json": export.chrome_trace,
    ".json.gz": export.chrome_trace,
    ".pftrace": export.perfetto_trace,
    ".pftrace.gz": export.perfetto_trace,
    ".folded": lambda trace, path: export.folded(trace, path),
    ".csv": export.table,
    ".csv.gz": export.table,
    ".parquet": export.table,
}
"""What writes which files, by the end of their names; it returns what is not in the file and how many."""


def convert(
    trace_file: TraceFile,
    target: Annotated[Path, typer.Argument(help=f"The file to write; its name says the format: {', '.join(WRITERS)}.")],
    as_json: Json = False,
) -> None:
    """Convert a trace into the format that the target's name says."""
    write = writer_for(target)
    trace = read(trace_file)
    left_out = write(trace, target) or {}
    size_bytes = target.stat().st_size
    if as_json:
        print_json({"trace": str(target.resolve()), "events": len(trace), "bytes": size_bytes, "left_out": left_out})
    else:
        typer.echo(f"{target}: {len(trace)} events, {size_bytes:,} bytes")
        if left_out:
            typer.echo(f"left out: {', '.join(f'{count:,} {what}' for what, count in left_out.items())}")


def writer_for(target: Path) -> Callable[[Trace, Path], dict[str, int] | None]:
    """Return what writes files of that name.

    Raises:
        UsageError: nothing does.
    """
    for end, write in WRITERS.items():
        if target.name.endswith(end):
            return write
    raise UsageError(f"nothing is known to write {target.name!r}; its name should end with one of {', '.join(WRITERS)}")
