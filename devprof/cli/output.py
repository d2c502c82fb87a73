"""What the commands on traces have in common: how they read one, and how they print an answer."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table

from devprof.analysis import Answer, Averages
from devprof.cli.progress import reading
from devprof.pipeline.files import load
from devprof.store import Trace

__all__ = [
    "Json",
    "TraceFile",
    "averages_as_rows",
    "echo",
    "print_answer",
    "print_averages",
    "print_json",
    "printable",
    "read",
]

_NAME_WIDTH = 24
_WIDEST = 10_000
# control characters but for line ends and tabs, halves of surrogate pairs, and what changes the direction of writing
_COMMANDS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_FIGURES = ("count", "cpu_time_total", "self_cpu_time_total", "device_time_total", "self_device_time_total")

TraceFile = Annotated[
    Path, typer.Argument(help="A trace: .devprof, .json, .json.gz, or an SQLite export of Nsight or nvprof.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]


def read(path: Path) -> Trace:
    """Read a trace file.

    Raises:
        TraceFileError: it cannot be opened, or is no trace.
    """
    with reading(path) as progress:
        return load(path, progress=progress)


def printable(text: str) -> str:
    """Return a text that a terminal shows and does not obey: what comes from a trace may hold escape sequences."""
    return _COMMANDS.sub("\ufffd", text)


def echo(text: str = "", *, err: bool = False) -> None:
    """Print what may hold texts of a trace."""
    typer.echo(printable(text), err=err)


def print_json(value: Mapping[str, Any], *, err: bool = False) -> None:
    """Print JSON; if `err` to stderr and on one line, for there it stands below whatever else a program wrote."""
    typer.echo(json.dumps(value, indent=None if err else 2, allow_nan=False, default=str), err=err)


def averages_as_rows(averages: Averages) -> list[dict[str, object]]:
    """Return averages as JSON values; times in us."""
    return [{"name": one.key, **{figure: getattr(one, figure) for figure in _FIGURES}} for one in averages]


def print_averages(averages: Averages, rows: int, *, err: bool = False) -> None:
    """Print a short table: what took most time on devices, or where nothing ran on any, on the host.

    Args:
        averages: what to print; spans of ranges on devices are left out, because their idle time is nobody's.
        rows: how many at most.
        err: to stderr.
    """
    on_device = any(one.self_device_time_total for one in averages)
    key = "self_device_time_total" if on_device else "self_cpu_time_total"
    echo(averages.table(sort_by=key, row_limit=rows, device_spans=False), err=err)
    if spans := int(averages.is_device_span.sum()):
        of = "1 range" if spans == 1 else f"{spans} ranges"
        echo(f"not listed: the time on devices from first work to last, idle time included, of {of}", err=err)


def print_answer(answer: Answer, rows: int | None = None) -> None:
    """Print a table: with lines and colours in a terminal, plain when piped. Numbers of ns get a fitting unit.

    Args:
        answer: the table.
        rows: most rows to print; the rest is counted.
    """
    shown = answer if rows is None else answer.take(slice(rows))
    title = answer.title if rows is None or len(answer) <= rows else f"{answer.title} (first {rows} of {len(answer)})"
    cells = [[printable(_cell(key, value)).replace("\n", "\ufffd") for key, value in row.items()] for row in shown]
    heads = [_head(key) for key in answer.columns]
    if sys.stdout.isatty():
        _print_rich(title, heads, cells, answer)
    else:
        _print_plain(title, heads, cells)
    for note in answer.notes:
        echo(note)


def _print_rich(title: str, heads: list[str], cells: list[list[str]], answer: Answer) -> None:
    table = Table(title=title, title_justify="left")
    for number, (head, key) in enumerate(zip(heads, answer.columns, strict=True)):
        texts = [*head.split(), *(row[number] for row in cells)]
        is_number = answer.is_number(key)
        # a number in pieces cannot be read; a name can, unless they are very short
        least = max(map(len, texts), default=1) if is_number else min(max(map(len, texts), default=1), _NAME_WIDTH)
        table.add_column(head, justify="right" if is_number else "left", overflow="fold", min_width=least)
    for row in cells:
        table.add_row(*map(escape, row))
    console = Console()
    # as torch's tables: wider than a narrow terminal, which then breaks lines
    unbound = console.options.update(max_width=_WIDEST)
    width = max(console.width, Measurement.get(console, unbound, table).minimum)
    Console(width=width, height=console.height).print(table)


def _print_plain(title: str, heads: list[str], cells: list[list[str]]) -> None:
    typer.echo(title)
    for row in [heads, *cells]:
        typer.echo("\t".join(row))


def _head(key: str) -> str:
    return key.removesuffix("_ns").replace("_", " ")


def _cell(key: str, value: Any) -> str:
    if value is None:
        return ""
    if key.endswith("_share"):
        return f"{100 * value:.1f} %"
    return _time(float(value)) if key.endswith("_ns") else str(value)


def _time(span_ns: float) -> str:
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if abs(span_ns) >= size:
            return f"{span_ns / size:.3f} {unit}"
    return f"{span_ns:.0f} ns"
