"""A trace as a notebook shows it: where its events stand, and of what kinds they are."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from devprof.model import ActivityType

if TYPE_CHECKING:
    from devprof.store.trace import Trace

__all__ = ["html_of"]

_MOST_ROWS = 20
_KINDS = {int(kind): kind.label for kind in ActivityType}


def html_of(trace: Trace) -> str:
    """Return a trace as HTML: one line on the whole, a table of its rows, the busiest first, and one of its kinds of events."""
    counts = np.bincount(trace.row, minlength=len(trace.rows))
    shown = [row for row in np.argsort(-counts, kind="stable").tolist() if counts[row]][:_MOST_ROWS]
    places = [trace.places[trace.rows[row].place] for row in shown]
    rows = [
        (place.name or f"{place.backend} {place.id}", trace.rows[row].name or str(trace.rows[row].id), int(counts[row]))
        for place, row in zip(places, shown, strict=True)
    ]
    of_kind = np.bincount(trace.activity_type, minlength=256)
    kinds = [
        (_KINDS.get(kind, f"activity_{kind}"), int(of_kind[kind]))
        for kind in np.argsort(-of_kind, kind="stable").tolist()
        if of_kind[kind]
    ]
    more = int(np.count_nonzero(counts)) - len(shown)
    note = f"<p>and {more} more rows</p>" if more else ""
    head = f"<h4>{html.escape(repr(trace).strip('<>'))}</h4>"
    return head + _table(("place", "row", "events"), rows) + note + _table(("kind", "events"), kinds)


def _table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [_line("th", heads), *(_line("td", row) for row in rows)]
    return f"<table>{''.join(lines)}</table>"


def _line(tag: str, cells: Sequence[object]) -> str:
    shown = (f"{cell:,}" if isinstance(cell, int) else html.escape(str(cell)) for cell in cells)
    return f"<tr>{''.join(f'<{tag}>{cell}</{tag}>' for cell in shown)}</tr>"
