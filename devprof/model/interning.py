"""From objects to columns: a table of texts, and typed metadata columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from devprof.model.items import Item, Shape
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


def metadata_columns(
    rows: Sequence[Mapping[str, Item]], shapes: Mapping[str, Shape], texts: Interner
) -> dict[str, MetadataColumn]:
    """Turn one mapping per row into one typed column per key.

    Args:
        rows: the items of each record, as `read_items` returns them.
        shapes: one shape per key that all rows fit.
        texts: table that string values are added to.
    """
    return {key: _column([row.get(key) for row in rows], shape, texts) for key, shape in shapes.items()}


def _column(values: Sequence[Item | None], shape: Shape, texts: Interner) -> MetadataColumn:
    absent = [value is None for value in values]
    filled: Sequence[Item]
    if shape.kind is MetadataKind.STRING:
        filled = [0 if value is None else texts.index(str(value)) for value in values]
    else:
        nothing: Item = (0,) * shape.width if shape.kind is MetadataKind.INT_LIST else 0
        filled = [nothing if value is None else value for value in values]
    present = ~np.array(absent, dtype=np.bool_) if any(absent) else None
    return MetadataColumn(shape.kind, np.array(filled, dtype=shape.dtype), present)
