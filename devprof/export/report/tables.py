"""Answers as tables: each number in a fitting unit, with the exact one beside it for sorting and for programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from devprof.analysis import Answer
from devprof.export.report.markup import Markup, joined, tag
from devprof.export.report.pictures import bar
from devprof.export.report.units import bytes_text, count_text, cut, share_text, time_text, title_of

__all__ = ["answer_table", "facts_table", "table"]

_UNITS: tuple[tuple[str, Callable[[Any], str]], ...] = (
    ("_ns", time_text),
    ("_share", share_text),
    ("_bytes", bytes_text),
)


def answer_table(answer: Answer, most: int, *, pictures: Mapping[str, Sequence[Markup]] | None = None) -> Markup:
    """Return the first rows of an answer, and how many there are if that is not all.

    Args:
        answer: the answer.
        most: greatest number of rows.
        pictures: further columns by title: a picture for each row.
    """
    pictures = pictures or {}
    shown = answer.take(slice(most))
    heads = [(title_of(key), shown.is_number(key)) for key in answer.columns]
    rows = [
        [*(_cell(key, value) for key, value in row.items()), *(tag("td", column[i]) for column in pictures.values())]
        for i, row in enumerate(shown)
    ]
    note = f"The first {most} of {len(answer)} rows." if len(answer) > most else ""
    return joined(table([*heads, *((title, False) for title in pictures)], rows), *_notes(note, *answer.notes))


def table(heads: Sequence[tuple[str, bool]], rows: Sequence[Sequence[Markup]]) -> Markup:
    """Return a table.

    Args:
        heads: what each column is called, and whether it holds numbers.
        rows: cells.
    """
    titles = (tag("th", title, scope="col", class_="n" if is_number else None) for title, is_number in heads)
    body = (tag("tr", *row) for row in rows)
    return tag("div", tag("table", tag("thead", tag("tr", *titles)), tag("tbody", *body)), class_="scroll")


def facts_table(facts: Mapping[str, str]) -> Markup:
    """Return facts with what they are about."""
    rows = (tag("tr", tag("th", cut(key, 80), scope="row"), tag("td", cut(value))) for key, value in facts.items())
    return tag("div", tag("table", tag("tbody", *rows), class_="facts"), class_="scroll")


def _notes(*notes: str) -> list[Markup]:
    return [tag("p", note, class_="note") for note in notes if note]


def _cell(key: str, value: Any) -> Markup:
    if value is None or isinstance(value, str):
        return tag("td", cut(value or ""), class_="t", title=cut(value) if value and len(value) > 40 else None)
    unit = next((unit for end, unit in _UNITS if key.endswith(end)), None)
    shown = unit(value) if unit else count_text(value) if isinstance(value, int) else f"{value:.4g}"
    picture = bar(value) if key.endswith("_share") else ""
    return tag("td", shown, picture, class_="n", data_value=repr(value))
