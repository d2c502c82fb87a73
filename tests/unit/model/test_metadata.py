"""A metadata column has the dtype and shape that its kind says, or does not exist."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from devprof.model import MetadataColumn, MetadataKind

K = MetadataKind


@pytest.mark.parametrize(
    ("kind", "values", "dtype"),
    [
        (K.INT, np.array([1, 2], dtype=np.int16), np.int64),
        (K.FLOAT, np.array([1, 2], dtype=np.int16), np.float64),
        (K.BOOL, np.array([True, False]), np.uint8),
        (K.STRING, np.array([0, 1]), np.int32),
        (K.INT_LIST, np.array([[1, 2], [3, 4]], dtype=np.uint8), np.int64),
    ],
)
def test_values_get_the_dtype_of_their_kind(kind: MetadataKind, values: npt.NDArray[Any], dtype: npt.DTypeLike) -> None:
    column = MetadataColumn(kind, values)
    assert (column.values.dtype, column.values.tolist(), len(column)) == (np.dtype(dtype), values.tolist(), 2)


@pytest.mark.parametrize(
    ("kind", "values", "present", "message"),
    [
        (K.INT, [1.5], None, "INT metadata does not fit int64"),
        (K.INT, np.array([2**63], dtype=np.uint64), None, "INT metadata does not fit int64"),
        (K.INT, [[1]], None, r"INT metadata has shape \(1, 1\), expected \(n,\)"),
        (K.INT, 5, None, r"INT metadata has shape \(\), expected \(n,\)"),
        (K.BOOL, [2], None, "BOOL metadata holds 2, expected 0 or 1"),
        (K.BOOL, [-1], None, "BOOL metadata does not fit uint8"),
        (K.STRING, [2**31], None, "STRING metadata does not fit int32"),
        (K.STRING, ["text"], None, "STRING metadata does not fit int32"),
        (K.FLOAT, ["1.5"], None, "FLOAT metadata does not fit float64"),
        (K.INT_LIST, [1, 2], None, r"INT_LIST metadata has shape \(2,\), expected \(n, k\)"),
        (K.INT, [1, 2], [True], r"present has shape \(1,\), expected \(2,\)"),
        (K.INT, [1, 2], [1, 5], "present does not fit bool"),
        (9, [1], None, "9 is not a valid MetadataKind"),
    ],
)
def test_what_does_not_fit_is_refused(kind: Any, values: Any, present: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MetadataColumn(kind, values, present)


def test_taking_rows_takes_values_and_mask() -> None:
    column = MetadataColumn(K.INT_LIST, np.array([[1, 2], [3, 4], [5, 6]]), np.array([True, False, True]))
    for rows in (np.array([False, True, True]), np.array([1, 2]), slice(1, None)):
        taken = column.take(rows)
        assert taken.present is not None
        assert (taken.values.tolist(), taken.present.tolist()) == ([[3, 4], [5, 6]], [False, True])


def test_a_row_has_the_key_unless_the_mask_says_no() -> None:
    values = np.array([1, 2])
    assert [MetadataColumn(K.INT, values).has(row) for row in (0, 1)] == [True, True]
    assert [MetadataColumn(K.INT, values, np.array([False, True])).has(row) for row in (0, 1)] == [False, True]


def test_a_column_cannot_be_written() -> None:
    column = MetadataColumn(K.INT, np.array([1, 2]), np.array([True, False]))
    assert column.present is not None
    for array in (column.values, column.present):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
