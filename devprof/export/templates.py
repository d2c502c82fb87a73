"""Args as parts of a template: the text around a chunk's values, and the values as Python's ``%`` takes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from devprof.export.chunks import Field
from devprof.export.strict_json import WrittenTexts, quoted, verbatim
from devprof.store import ItemKind, Trace

__all__ = ["Piece", "Pieces"]

_WORDS = ("false", "true")


class Piece(NamedTuple):
    """One arg in a template.

    Attributes:
        text: with a ``%s`` for each column; of a whole number it takes less time than ``%d``.
        columns: (m,) arrays, or the values themselves.
        present: (m,) bool: which events have it.
        written: turns a list of a column's values into what the conversion takes; None: as they are.
    """

    text: str
    columns: tuple[npt.NDArray[Any], ...]
    present: npt.NDArray[np.bool_]
    written: Callable[[list[Any]], Iterable[object]] | None = None

    def lists(self, order: npt.NDArray[np.int64]) -> list[list[Any]]:
        """Return what the conversions take: a list for each, in this order."""
        lists = [column[order].tolist() for column in self.columns]
        return lists if self.written is None else [list(self.written(values)) for values in lists]


class Pieces:
    """Makes pieces of the fields of one trace."""

    def __init__(self, trace: Trace) -> None:
        self._written: dict[ItemKind, Callable[[list[Any]], Iterable[object]]] = {
            ItemKind.FLOAT: _float_texts,
            ItemKind.BOOL: _words,
            ItemKind.STRING: WrittenTexts(trace.strings, quoted).of,
            ItemKind.JSON: WrittenTexts(trace.strings, verbatim).of,
        }

    def of(self, field: Field) -> Piece:
        """Return the piece of a field; what is the same throughout the chunk stands in its text."""
        columns = field.columns
        value = "%s"
        if field.kind is ItemKind.INT_LIST:
            value = f"[{','.join(['%s'] * len(columns))}]"
        piece = Piece(f"{field.key.replace('%', '%%')}:{value}", columns, field.present, self._written.get(field.kind))
        return _with_constant(piece)


def _with_constant(piece: Piece) -> Piece:
    for column in piece.columns:
        bits = column.view(np.int64) if column.dtype == np.float64 else column  # 0.0 and -0.0 have different texts
        if not bool((bits == bits[0]).all()):
            return piece
    one = np.zeros(1, dtype=np.int64)
    values = tuple(value for column in piece.lists(one) for value in column)
    return Piece((piece.text % values).replace("%", "%%"), (), piece.present)


def _float_texts(values: list[float]) -> list[str]:
    """Return the shortest texts that read back as these numbers; of few distinct ones each is made once."""
    distinct = set(values)
    if 2 * len(distinct) > len(values):
        return list(map(repr, values))
    texts = {value: repr(value) for value in distinct if value}  # -0.0 and 0.0 are equal and have different texts
    return [texts.get(value) or repr(value) for value in values]


def _words(values: list[int]) -> list[str]:
    return [_WORDS[value != 0] for value in values]
