"""`Rows`: records of one kind, a column per field."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Rows", "joined"]

Mask = npt.NDArray[np.bool_]
Column = npt.NDArray[Any]


class Rows:
    """Records of one kind. Immutable: columns are contiguous and read-only.

    ``rows["start"]`` is a column, (n,), under CUPTI's name of the field.
    """

    __slots__ = ("_columns", "_n")

    def __init__(self, columns: Mapping[str, Column], n: int) -> None:
        """Take over columns of length n."""
        self._columns = dict(columns)
        self._n = n
        for column in self._columns.values():
            column.flags.writeable = False

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, field: str) -> Column:
        return self._columns[field]

    def __contains__(self, field: object) -> bool:
        return field in self._columns

    def __repr__(self) -> str:
        return f"<{self._n} rows: {', '.join(self._columns)}>"

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the columns, in the order of the record."""
        return tuple(self._columns)

    def take(self, kept: Mask) -> Rows:
        """Return the rows of a mask, (n,); these rows themselves where it holds for all."""
        if kept.all():
            return self
        return Rows({name: column[kept] for name, column in self._columns.items()}, int(np.count_nonzero(kept)))

    def ordered(self, order: npt.NDArray[np.intp]) -> Rows:
        """Return the rows in another order, (n,) indices."""
        return Rows({name: column[order] for name, column in self._columns.items()}, len(order))

    def replaced(self, field: str, values: Column) -> Rows:
        """Return the rows with another column, (n,), in the place of one."""
        return Rows({**self._columns, field: values}, self._n)


def joined(parts: Iterable[Rows]) -> Rows:
    """Return rows one after the other.

    Raises:
        ValueError: they have not the same fields, so they are of libraries of different releases.
    """
    parts = list(parts)
    if len(parts) == 1:
        return parts[0]
    fields = {part.fields for part in parts}
    if len(fields) != 1:
        differing = sorted(set().union(*fields) - set(parts[0].fields).intersection(*fields))
        raise ValueError(
            f"buffers of libraries of different releases cannot be joined: not all have {', '.join(differing)}"
        )
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0].fields}
    return Rows(columns, sum(map(len, parts)))
