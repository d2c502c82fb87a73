"""Rows as a table of plain text, in the layout of torch's tables."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from devprof.analysis.columns import Longs, distinct
from devprof.analysis.figures import FLOPS, Figure, Figures
from devprof.analysis.formatting import FLOP_UNITS, flops_unit, memory_text, share_text, time_text
from devprof.errors import UsageError
from devprof.store import HOST_BACKEND

__all__ = ["TableSource", "Widths", "html_of", "table_of"]

_WIDTH = 12
_GAP = "  "
_UNITS = ("s", "ms", "us")


class TableSource(Protocol):
    """What a table needs of a list of r rows."""

    @property
    def figures(self) -> Figures:
        """Where the figures come from."""

    @property
    def place(self) -> Longs:
        """(r,) int64, place in `figures.events` of each row's event, or of its first."""

    @property
    def counts(self) -> Longs:
        """(r,) int64, number of events of each row."""

    def column(self, figure: Figure) -> Longs:
        """Return one figure of every row: (r,) int64."""

    def shapes(self) -> tuple[Longs, Sequence[str]] | None:
        """Return the number of each row's shapes, (r,), and their texts; None: rows have none."""

    def overloads(self) -> tuple[Longs, Sequence[str]] | None:
        """Return the number of each row's overload name, (r,), and the names; None: rows have none."""

    def stack_of(self, row: int) -> Sequence[str]:
        """Return the Python stack that a row shows."""


class Widths(NamedTuple):
    """Greatest widths of columns, letters; None: no limit."""

    name: int | None
    shapes: int | None
    source: int | None


class _Column(NamedTuple):
    title: str
    width: int
    text: Callable[[int], str]
    to_the_left: bool = False

    def cell(self, text: str) -> str:
        return f"{text:<{self.width}}" if self.to_the_left else f"{text:>{self.width}}"


def table_of(
    rows: TableSource,
    shown: Longs,
    *,
    widths: Widths,
    header: str | None,
    top_level_events_only: bool,
    time_unit: str | None,
) -> str:
    """Write a table.

    Args:
        rows: all rows; shares and widths are of all of them.
        shown: indices of the rows to show, in order.
        widths: greatest widths.
        header: a line above the table.
        top_level_events_only: whether to say that only those are shown.
        time_unit: "s", "ms" or "us" for all times; None: each in its own.

    Raises:
        UsageError: `time_unit` is none of them.
    """
    if time_unit is not None and time_unit not in _UNITS:
        raise UsageError(f"time_unit is {time_unit!r}; a table shows times in one of {', '.join(_UNITS)}, or None")
    if not len(rows.place):
        return ""
    columns = list(_columns(rows, shown, widths, time_unit))
    stacks = [rows.stack_of(row) for row in shown.tolist()]
    source = _source_column(stacks, widths.source)
    every = [*columns, source] if source else columns
    rule = "".join("-" * column.width + _GAP for column in every)
    bar = "=" * (len(rule) - len(_GAP))
    lines = [bar, header] if header is not None else []
    lines += [bar, "This report only display top-level ops statistics"] if top_level_events_only else []
    lines += [rule, _line(every, [column.title for column in every]), rule]
    for row, stack in zip(shown.tolist(), stacks, strict=True):
        cells = [column.text(row) for column in columns]
        lines += [_line(every, cells)] if source is None else _with_stack(every, cells, stack)
    return "".join(line + "\n" for line in [*lines, rule, *_sums(rows, time_unit)])


def html_of(rows: TableSource, shown: Longs) -> str:
    """Write a table for a notebook: the columns of `table_of`, texts whole and escaped.

    Args:
        rows: all rows.
        shown: indices of the rows to show, in order.
    """
    if not len(rows.place):
        return "<p>no events</p>"
    columns = list(_columns(rows, shown, Widths(None, None, None), None))
    heads = "".join(f"<th>{html.escape(column.title)}</th>" for column in columns)
    lines = ("".join(f"<td>{html.escape(column.text(row))}</td>" for column in columns) for row in shown.tolist())
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    sums = "".join(f"<p>{html.escape(line)}</p>" for line in _sums(rows, None))
    return f"<table><tr>{heads}</tr>{body}</table>{sums}"


def _line(columns: Sequence[_Column], cells: Sequence[str]) -> str:
    return "".join(column.cell(cell) + _GAP for column, cell in zip(columns, cells, strict=True))


def _columns(rows: TableSource, shown: Longs, widths: Widths, unit: str | None) -> Iterator[_Column]:
    name = _name_column(rows, widths.name)
    yield name
    if overloads := rows.overloads():
        numbers, texts = overloads
        yield _Column("Overload Name", name.width, lambda row: _cut(texts[int(numbers[row])], widths.name))
    yield from _time_columns(rows, unit)
    yield from _memory_columns(rows)
    counts = rows.counts
    yield _column("# of Calls", lambda row: str(int(counts[row])))
    if shapes := rows.shapes():
        yield _shapes_column(*shapes, widths.shapes)
    if rows.figures.counts_flops and (column := _flops_column(rows.column(FLOPS))):
        yield column


def _name_column(rows: TableSource, most: int | None) -> _Column:
    keys, key = rows.figures.names.keys, rows.figures.key[rows.place]
    longest = max(len(keys[number]) for number in distinct(key, len(keys))[0].tolist())
    return _Column("Name", _at_most(longest + 4, most), lambda row: _cut(keys[int(key[row])], most))


def _at_most(width: int, most: int | None) -> int:
    return width if most is None else min(width, most)


def _cut(text: str, most: int | None) -> str:
    return text if most is None or len(text) < most - 3 else text[: most - 3] + "..."


def _time_columns(rows: TableSource, unit: str | None) -> Iterator[_Column]:
    own, total = (rows.column(Figure("time", HOST_BACKEND, alone)) for alone in (True, False))
    whole = int(own.sum())
    is_async = rows.figures.is_async[rows.place]
    yield _column("Self CPU %", lambda row: share_text(int(own[row]), whole))
    yield _time("Self CPU", own, unit)
    yield _column("CPU total %", lambda row: "0" if is_async[row] else share_text(int(total[row]), whole))
    yield _time("CPU total", total, unit)
    yield _time("CPU time avg", total / np.maximum(rows.counts, 1), unit)
    for backend in rows.figures.backends:
        yield from _device_columns(rows, backend, unit)


def _device_columns(rows: TableSource, backend: str, unit: str | None) -> Iterator[_Column]:
    """Yield the four columns of a backend, if its devices did something; each backend has its own."""
    if not _ran(rows, backend):
        return
    own, total = (rows.column(Figure("time", backend, alone)) for alone in (True, False))
    title, whole = backend.upper(), rows.figures.work_ns(backend)
    yield _time(f"Self {title}", own, unit)
    yield _column(f"Self {title} %", lambda row: share_text(int(own[row]), whole))
    yield _time(f"{title} total", total, unit)
    yield _time(f"{title} time avg", total / np.maximum(rows.counts, 1), unit)


def _ran(rows: TableSource, backend: str) -> bool:
    return rows.figures.any_positive(Figure("time", backend, own=True))


def _column(title: str, text: Callable[[int], str]) -> _Column:
    return _Column(title, max(_WIDTH, len(title)), text)


def _time(title: str, values: np.ndarray[tuple[int], np.dtype[np.generic]], unit: str | None) -> _Column:
    return _column(title, lambda row: time_text(values[row].item(), unit))


def _memory_columns(rows: TableSource) -> Iterator[_Column]:
    figures = rows.figures
    if not figures.counts_memory:
        return
    others = [b for b in figures.backends if figures.any_positive(Figure("memory", b, own=True))]
    for backend, title in [(HOST_BACKEND, "CPU"), *((other, other.upper()) for other in others)]:
        for own, words in ((False, f"{title} Mem"), (True, f"Self {title} Mem")):
            yield _memory(words, rows.column(Figure("memory", backend, own)))


def _memory(title: str, values: Longs) -> _Column:
    return _column(title, lambda row: memory_text(int(values[row])))


def _shapes_column(numbers: Longs, texts: Sequence[str], most: int | None) -> _Column:
    longest = max(len(texts[number]) for number in distinct(numbers, len(texts))[0].tolist())
    width = _at_most(longest + 4, most)
    return _Column("Input Shapes", max(width, _WIDTH), lambda row: texts[int(numbers[row])][:width])


def _flops_column(flops: Longs) -> _Column | None:
    counted = flops[flops > 0]
    if not len(counted):
        return None
    power = flops_unit(int(counted.min()))
    scale = 1000**power
    title = f"Total {FLOP_UNITS[power]}"
    return _column(title, lambda row: f"{int(flops[row]) / scale:8.3f}" if flops[row] > 0 else "--")


def _source_column(stacks: Sequence[Sequence[str]], most: int | None) -> _Column | None:
    longest = max((len(entry) for stack in stacks for entry in stack), default=0)
    if not longest:
        return None
    return _Column("Source Location", _at_most(longest + 4, most), lambda row: "", to_the_left=True)


def _with_stack(columns: Sequence[_Column], cells: Sequence[str], stack: Sequence[str]) -> Iterator[str]:
    """Yield a row's line, one for each further function of its stack, and an empty one."""
    width, empty = columns[-1].width, [""] * len(cells)
    entries = [_cut_front(entry, width) for entry in stack] or [""]
    yield _line(columns, [*cells, entries[0]])
    for entry in [*entries[1:], ""]:
        yield _line(columns, [*empty, entry])


def _cut_front(path: str, width: int) -> str:
    return path if len(path) <= width else "..." + path[len(path) - width + 3 :]


def _sums(rows: TableSource, unit: str | None) -> Iterator[str]:
    own = rows.column(Figure("time", HOST_BACKEND, own=True))
    yield f"Self CPU time total: {time_text(int(own.sum()), unit)}"
    for backend in rows.figures.backends:
        if _ran(rows, backend):
            yield f"Self {backend.upper()} time total: {time_text(rows.figures.work_ns(backend), unit)}"
