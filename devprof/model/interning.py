"""From objects to columns: text tables and typed metadata columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from devprof.model.activity import MetadataValue
from devprof.model.metadata import MetadataColumn, MetadataKind

__all__ = ["Interner", "metadata_columns"]


class Interner:
    """A table of distinct texts; `index` is stable for the life of the table."""

    def __init__(self) -> None:
        self._index: dict[str, int] = {}

    def index(self, text: str) -> int:
        """Return the number of `text`, adding it if it is new.

        Raises:
            TypeError: it is not text.
        """
        if not isinstance(text, str):
            raise TypeError(f"expected text, found a {type(text).__name__}")
        return self._index.setdefault(text, len(self._index))

    @property
    def table(self) -> tuple[str, ...]:
        """Texts in the order of their numbers."""
        return tuple(self._index)


def metadata_columns(rows: Sequence[Mapping[str, MetadataValue]], texts: Interner) -> dict[str, MetadataColumn]:
    """Turn one mapping per row into one typed column per key.

    Args:
        rows: the items of each record.
        texts: table that string values are added to.

    Raises:
        ValueError: a key holds values of two types that no column can hold, or lists of two lengths.
    """
    keys = {key: None for row in rows for key in row}
    return {key: _column(key, [row.get(key) for row in rows], texts) for key in keys}


def _column(key: str, values: Sequence[MetadataValue | None], texts: Interner) -> MetadataColumn:
    present = np.array([value is not None for value in values], dtype=np.bool_)
    kinds = {_kind(key, value) for value in values if value is not None}
    kind = _common(key, kinds)
    filled = _filled(key, kind, values, texts)
    return MetadataColumn(kind, filled, None if present.all() else present)


def _kind(key: str, value: MetadataValue) -> MetadataKind:
    if isinstance(value, bool | np.bool_):
        return MetadataKind.BOOL
    if isinstance(value, int | np.integer):
        return MetadataKind.INT
    if isinstance(value, float | np.floating):
        return MetadataKind.FLOAT
    if isinstance(value, str):
        return MetadataKind.STRING
    if isinstance(value, tuple | list):
        return MetadataKind.INT_LIST
    raise ValueError(
        f"metadata {key!r} holds a {type(value).__name__}; expected bool, int, float, str or a tuple of ints"
    )


def _common(key: str, kinds: set[MetadataKind]) -> MetadataKind:
    if kinds == {MetadataKind.INT, MetadataKind.FLOAT}:
        return MetadataKind.FLOAT
    if len(kinds) != 1:
        raise ValueError(f"metadata {key!r} holds {sorted(k.name for k in kinds)} in one batch; expected one type")
    return next(iter(kinds))


def _filled(key: str, kind: MetadataKind, values: Sequence[MetadataValue | None], texts: Interner) -> np.ndarray:
    if kind is MetadataKind.STRING:
        return np.array([texts.index(str(v)) if v is not None else 0 for v in values], dtype=np.int32)
    if kind is MetadataKind.INT_LIST:
        lengths = {len(v) for v in values if v is not None}  # type: ignore[arg-type]
        if len(lengths) != 1:
            raise ValueError(f"metadata {key!r} holds lists of lengths {sorted(lengths)} in one batch; expected one")
        empty = (0,) * lengths.pop()
        return np.array([empty if v is None else v for v in values], dtype=np.int64)
    return np.array([0 if v is None else v for v in values])
