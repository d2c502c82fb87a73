"""Texts get stable numbers, and one mapping per row becomes one typed column per key."""

from __future__ import annotations

import numpy as np
import pytest

from devprof.model.interning import Interner, metadata_columns
from devprof.model.items import Item, Shape
from devprof.model.metadata import MetadataKind


def test_a_text_keeps_its_number_and_a_new_one_gets_the_next() -> None:
    texts = Interner()
    assert [texts.index(text) for text in ("b", "a", "b", "", "a")] == [0, 1, 0, 2, 1]
    assert texts.table == ("b", "a", "")


@pytest.mark.parametrize("value", [b"a", None, 1, ["a"]])
def test_what_is_no_text_has_no_number(value: object) -> None:
    with pytest.raises(TypeError, match=f"expected text, found a {type(value).__name__}"):
        Interner().index(value)  # type: ignore[arg-type]


def test_a_key_becomes_a_column_of_its_kind_with_a_mask_where_rows_lack_it() -> None:
    rows: list[dict[str, Item]] = [
        {"i": 1, "f": 0.5, "b": True, "s": "x", "l": (1, 2)},
        {"i": 2, "s": "y"},
        {"i": 3, "f": 4, "b": False, "s": "x", "l": (3, 4)},
    ]
    shapes = {
        "i": Shape(MetadataKind.INT),
        "f": Shape(MetadataKind.FLOAT),
        "b": Shape(MetadataKind.BOOL),
        "s": Shape(MetadataKind.STRING),
        "l": Shape(MetadataKind.INT_LIST, 2),
    }
    texts = Interner()
    found = {
        key: (c.kind, c.values.tolist(), None if c.present is None else c.present.tolist())
        for key, c in metadata_columns(rows, shapes, texts).items()
    }
    some = [True, False, True]
    assert found == {
        "i": (MetadataKind.INT, [1, 2, 3], None),
        "f": (MetadataKind.FLOAT, [0.5, 0.0, 4.0], some),
        "b": (MetadataKind.BOOL, [1, 0, 0], some),
        "s": (MetadataKind.STRING, [0, 1, 0], None),
        "l": (MetadataKind.INT_LIST, [[1, 2], [0, 0], [3, 4]], some),
    }
    assert texts.table == ("x", "y")


def test_empty_lists_make_a_column_without_numbers() -> None:
    column = metadata_columns([{"l": ()}, {"l": ()}], {"l": Shape(MetadataKind.INT_LIST, 0)}, Interner())["l"]
    assert column.values.shape == (2, 0)
    assert column.values.dtype == np.int64


def test_no_row_makes_columns_of_no_row() -> None:
    columns = metadata_columns([], {"l": Shape(MetadataKind.INT)}, Interner())
    assert {key: len(column) for key, column in columns.items()} == {"l": 0}
