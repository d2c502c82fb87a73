"""Rules on names and values that make a trace hard to read, or no valid file."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping

import numpy as np

from devprof.rules.finding import Rule, Severity, Violation, where
from devprof.store import ItemKind, Trace

__all__ = ["RULES"]


def _names_can_be_read(trace: Trace) -> Iterator[Violation]:
    bad = [not text or any(map(_cannot_be_read, text)) for text in trace.strings]
    yield from where(
        np.array([*bad, False], dtype=np.bool_)[trace.name],
        lambda n, at: (
            f"{n} names are empty, or hold control characters, half characters or the mark of ones that could not be read; "
            f"the first is {trace.name_of(at)!r}"
        ),
    )


def _cannot_be_read(char: str) -> bool:
    return char == "\ufffd" or unicodedata.category(char) in ("Cc", "Cs")


def _rows_are_named(trace: Trace) -> Iterator[Violation]:
    unnamed = np.array([not row.name for row in trace.rows] + [False], dtype=np.bool_)
    used = np.unique(trace.row)
    if count := int(np.count_nonzero(unnamed[used])):
        first = trace.rows[int(used[unnamed[used]][0])]
        yield Violation(count, f"{count} rows with events have no name; the first has number {first.id}")


def _numbers_are_finite(trace: Trace) -> Iterator[Violation]:
    for key, column in {**trace.items, **trace.counters}.items():
        if column.kind is ItemKind.FLOAT:
            mask = np.zeros(len(trace), dtype=np.bool_)
            mask[column.events[~np.isfinite(column.values)]] = True
            yield from where(
                mask,
                lambda n, at, key=key: (
                    f"{n} values of {key!r} are no finite number, and strict JSON has no other; the first is at "
                    f"{trace.name_of(at)!r}"
                ),  # type: ignore[misc]
            )


def _file_was_strict(trace: Trace) -> Iterator[Violation]:
    """Look at what the reader of a file took although JSON does not allow it; other readers refuse the file for it."""
    file = trace.facts.get("file")
    lax = file.get("not_strict") if isinstance(file, Mapping) else None
    for what, count in lax.items() if isinstance(lax, Mapping) else ():
        yield Violation(int(count), f"the file is no strict JSON, others may refuse it: {count} times {what}")


def _file_was_whole(trace: Trace) -> Iterator[Violation]:
    """Look at what the reader of a file noted: what is no strict JSON, what was cut off, what could not be read."""
    file = trace.facts.get("file")
    if not isinstance(file, Mapping):
        return
    left_out, notes = file.get("left_out"), file.get("notes")
    for reason, count in left_out.items() if isinstance(left_out, Mapping) else ():
        yield Violation(int(count), f"{count} things in the file could not be read: {reason}")
    for note in notes if isinstance(notes, list | tuple) else ():
        yield Violation(1, f"the file: {note}")


RULES = (
    Rule("text.names", Severity.INFO, "Names can be read.", _names_can_be_read),
    Rule("rows.named", Severity.INFO, "Rows have names.", _rows_are_named),
    Rule("file.whole", Severity.WARNING, "The file is whole, and what its format says.", _file_was_whole),
    Rule("file.strict", Severity.WARNING, "A file in JSON is strict JSON.", _file_was_strict),
    Rule("items.finite", Severity.WARNING, "Numbers are finite.", _numbers_are_finite),
)
