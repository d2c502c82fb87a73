"""The parts that every batch is checked with."""

from __future__ import annotations

import numpy as np
import pytest

from devprof.model.columns import COLUMNS, fixed_column, repeated, text_table, value_at
from devprof.model.metadata import MetadataColumn, MetadataKind
from devprof.model.rows import NUMBERS


def test_a_row_fills_every_column_but_the_name() -> None:
    assert {*NUMBERS, "name"} == set(COLUMNS)


def test_a_scalar_is_repeated_and_an_array_is_not() -> None:
    array = np.array([1, 2])
    assert repeated(7, 3).tolist() == [7, 7, 7]
    assert repeated(array, 3) is array


def test_a_column_has_its_length_or_is_refused() -> None:
    assert fixed_column("id", [1, 2], 2, np.int64).tolist() == [1, 2]
    with pytest.raises(ValueError, match=r"column 'id' has shape \(2,\), expected \(3,\)"):
        fixed_column("id", [1, 2], 3, np.int64)


def test_a_table_of_plain_texts_is_taken_as_it_is() -> None:
    table = ("a", "", "\ud800")
    assert text_table(table) is table


@pytest.mark.parametrize(
    ("kind", "values", "wanted"),
    [
        (MetadataKind.INT, [2**63 - 1], 2**63 - 1),
        (MetadataKind.FLOAT, [0.1], 0.1),
        (MetadataKind.BOOL, [True], True),
        (MetadataKind.STRING, [1], "b"),
        (MetadataKind.INT_LIST, [[1, 2]], (1, 2)),
    ],
)
def test_a_value_comes_back_as_pythons_own(kind: MetadataKind, values: list[object], wanted: object) -> None:
    found = value_at(MetadataColumn(kind, np.array(values)), 0, ("a", "b"))
    assert found == wanted
    assert type(found) is type(wanted)
