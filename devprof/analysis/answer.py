"""`Answer`: a table of numbers and texts, for a person, a notebook or a program."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from devprof.errors import UsageError

__all__ = ["Answer", "Column"]

Column = npt.NDArray[Any] | Sequence[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """Columns of one length. A column whose name ends in ``_ns`` is in nanoseconds, ``_share`` is a part of 1.

    Attributes:
        title: what was asked.
        columns: values by column name.
        notes: what a reader should know.
    """

    title: str
    columns: Mapping[str, Column]
    notes: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        lengths = {len(column) for column in self.columns.values()}
        if len(lengths) > 1:
            raise ValueError(f"columns of different lengths: { {key: len(c) for key, c in self.columns.items()} }")

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self.row(index) for index in range(len(self)))

    def row(self, index: int) -> dict[str, Any]:
        """Return one row, as plain Python values."""
        return {key: _plain(column[index]) for key, column in self.columns.items()}

    def column(self, name: str) -> Column:
        """Return one column.

        Raises:
            UsageError: there is none of that name.
        """
        if name not in self.columns:
            raise UsageError(f"there is no column {name!r}; expected among {list(self.columns)}")
        return self.columns[name]

    def is_number(self, name: str) -> bool:
        """Say whether a column holds numbers, and nothing else but None.

        Raises:
            UsageError: there is none of that name.
        """
        return _is_number(self.column(name))

    def sorted_by(self, name: str, *, descending: bool = True) -> Answer:
        """Return the same rows in the order of one column; equal ones keep their order.

        Raises:
            UsageError: there is no column of that name.
        """
        values = np.asarray(self.column(name))
        order = np.argsort(values, kind="stable")
        if descending:
            order = len(values) - 1 - np.argsort(values[::-1], kind="stable")[::-1]
        return self.take(order)

    def take(self, rows: npt.NDArray[np.integer[Any]] | slice) -> Answer:
        """Return some rows."""
        return Answer(self.title, {key: _take(column, rows) for key, column in self.columns.items()}, self.notes)

    def as_dict(self) -> dict[str, object]:
        """Return the table as JSON values."""
        return {"title": self.title, "rows": list(self), "notes": list(self.notes)}

    def __str__(self) -> str:
        texts = [list(self.columns), *([_shown(k, v) for k, v in row.items()] for row in self)]
        widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
        numeric = [self.is_number(name) for name in self.columns]
        lines = ["  ".join(_padded(*cell) for cell in zip(row, widths, numeric, strict=True)).rstrip() for row in texts]
        return "\n".join([self.title, *lines, *self.notes])

    def _repr_html_(self) -> str:
        heads = "".join(f"<th>{html.escape(key)}</th>" for key in self.columns)
        rows = ("".join(f"<td>{html.escape(_shown(k, v))}</td>" for k, v in row.items()) for row in self)
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in self.notes)
        return f"<h4>{html.escape(self.title)}</h4><table><tr>{heads}</tr>{body}</table>{notes}"


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _take(column: Column, rows: npt.NDArray[np.integer[Any]] | slice) -> Column:
    if isinstance(column, np.ndarray) or isinstance(rows, slice):
        return column[rows]  # type: ignore[index]  # a list takes slices, an array both
    return [column[int(row)] for row in rows]


def _is_number(column: Column) -> bool:
    if isinstance(column, np.ndarray):
        return column.dtype.kind in "iufb"
    some = [value for value in column if value is not None]
    return bool(some) and all(isinstance(value, int | float | np.number) for value in some)


def _padded(text: str, width: int, numeric: bool) -> str:
    return text.rjust(width) if numeric else text.ljust(width)


def _shown(key: str, value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if key.endswith("_share"):
        return f"{100 * value:.1f} %"
    return f"{value:.1f}" if isinstance(value, float) else f"{value:,}" if key.endswith("_ns") else str(value)
