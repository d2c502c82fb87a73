"""An array becomes a column only where no value changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from devprof.model.fitting import fitted


@pytest.mark.parametrize(
    ("given", "dtype"),
    [
        ([1, -2, 3], np.int64),
        ([True, False], np.uint8),
        ([1.0, -2.0, 2.0**62], np.int64),
        (np.array([0, 255], dtype=np.uint64), np.uint8),
        (np.array([2**63 - 1], dtype=np.uint64), np.int64),
        (np.array([-(2**53), 2**53]), np.float64),
        ([0.5, float("nan"), float("inf")], np.float64),
        (np.array([1.5], dtype=np.float16), np.float64),
        (np.array([0, 1], dtype=np.uint8), np.bool_),
        ([], np.int64),
        (np.array([[1, 2], [3, 4]], dtype=np.int32), np.int64),
    ],
)
def test_values_that_fit_keep_their_value(given: npt.ArrayLike, dtype: npt.DTypeLike) -> None:
    column = fitted("x", given, dtype)
    assert column.dtype == dtype
    np.testing.assert_array_equal(column, np.asarray(given, dtype=dtype))


@pytest.mark.parametrize(
    ("given", "dtype", "found"),
    [
        ([1.5], np.int64, "float64 and values from 1.5 to 1.5"),
        ([float("nan")], np.int64, "float64 and values from nan to nan"),
        ([float("inf")], np.int64, "float64 and values from inf to inf"),
        ([2.0**63], np.int64, "float64"),
        ([-1, 2**63], np.int64, "float64"),
        (np.array([2**63], dtype=np.uint64), np.int64, "uint64 and values from 9223372036854775808"),
        ([2**70], np.int64, "object"),
        ([None], np.int64, "object"),
        (["12"], np.int64, "<U2"),
        ([b"12"], np.int64, "|S2"),
        ([1 + 0j], np.int64, "complex128"),
        (np.array(["2024-01-01"], dtype="datetime64[ns]"), np.int64, "datetime64"),
        ([-1, 256], np.uint8, "int64 and values from -1 to 256"),
        ([2], np.bool_, "int64 and values from 2 to 2"),
        ([2**53 + 1], np.float64, "int64"),
    ],
)
def test_a_value_that_would_change_is_refused_with_what_was_found(
    given: npt.ArrayLike, dtype: npt.DTypeLike, found: str
) -> None:
    with pytest.raises(ValueError, match="column 'x' does not fit") as caught:
        fitted("column 'x'", given, dtype)
    assert found in str(caught.value)


def test_an_array_that_fits_is_taken_over_and_its_owner_keeps_it_writeable() -> None:
    mine: npt.NDArray[Any] = np.arange(3, dtype=np.int64)
    column = fitted("x", mine, np.int64)
    assert np.shares_memory(column, mine)
    with pytest.raises(ValueError, match="read-only"):
        column[0] = 7
    mine[0] = 7


def test_a_strided_array_becomes_contiguous() -> None:
    column = fitted("x", np.arange(10, dtype=np.int64)[::2], np.int64)
    assert column.flags.c_contiguous
    assert column.tolist() == [0, 2, 4, 6, 8]
