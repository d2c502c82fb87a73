"""Metadata of one record is read once; what no column can hold is refused with a reason that can be counted."""

from __future__ import annotations

import enum
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from devprof.model.items import MixedKindsError, RecordError, Shape, merged, read_counters, read_items, whole
from devprof.model.metadata import MetadataKind

INT, FLOAT, BOOL, STRING = (Shape(kind) for kind in list(MetadataKind)[:4])
BIG = Shape(MetadataKind.INT, exact=False)


class Text(str, enum.Enum):  # noqa: UP042 - this older way is the one whose `str()` is not its text
    ROW = "row"


class Number(enum.IntEnum):
    THREE = 3


class Index:
    def __index__(self) -> int:
        return 12


def _list(width: int) -> Shape:
    return Shape(MetadataKind.INT_LIST, width)


@pytest.mark.parametrize(
    ("value", "wanted", "shape"),
    [
        (True, True, BOOL),
        (np.bool_(False), False, BOOL),
        (7, 7, INT),
        (Number.THREE, 3, INT),
        (np.uint64(2**53), 2**53, INT),
        (2**53 + 1, 2**53 + 1, BIG),
        (-(2**63), -(2**63), BIG),
        (1.5, 1.5, FLOAT),
        (np.float32(0.5), 0.5, FLOAT),
        (float("-inf"), float("-inf"), FLOAT),
        ("", "", STRING),
        ("\ud800", "\ud800", STRING),
        (Text.ROW, "row", STRING),
        (np.str_("x"), "x", STRING),
        ((), (), _list(0)),
        ([1, Number.THREE], (1, 3), _list(2)),
        (np.array([4, 5], dtype=np.int32), (4, 5), _list(2)),
    ],
)
def test_a_value_becomes_a_plain_one_of_its_type(value: Any, wanted: Any, shape: Shape) -> None:
    values, shapes = read_items({"k": value})
    assert (values, shapes) == ({"k": wanted}, {"k": shape})
    assert type(values["k"]) is type(wanted)


def test_an_item_that_is_none_is_left_out() -> None:
    assert read_items(MappingProxyType({"a": None, "b": 1})) == ({"b": 1}, {"b": INT})


@pytest.mark.parametrize(
    ("items", "reason"),
    [
        (None, "metadata is a NoneType"),
        ([("a", 1)], "metadata is a list"),
        ({1: 1}, "a key of metadata is a int"),
        ({None: None}, "a key of metadata is a NoneType"),
        ({"a": b"x"}, "a metadata value is a bytes"),
        ({"a": {"b": 1}}, "a metadata value is a dict"),
        ({"a": 1j}, "a metadata value is a complex"),
        ({"a": object()}, "a metadata value is a object"),
        ({"a": 2**63}, "a metadata number is out of range"),
        ({"a": (1, 2.0)}, "an item of a metadata list is a float"),
        ({"a": ("1",)}, "an item of a metadata list is a str"),
        ({"a": ((1, 2), (3, 4))}, "an item of a metadata list is a tuple"),
        ({"a": [2**70]}, "an item of a metadata list is out of range"),
    ],
)
def test_what_metadata_may_not_hold_is_refused_by_its_type_and_not_by_its_value(items: object, reason: str) -> None:
    with pytest.raises(RecordError) as caught:
        read_items(items)
    assert caught.value.reason == reason


def test_the_message_names_the_key_and_the_expected_types() -> None:
    with pytest.raises(RecordError, match="'grid', expected bool, int, float, str or a tuple of ints"):
        read_items({"grid": {}})


@pytest.mark.parametrize("number", [3, 3.0, True, Fraction(3), np.float32(3), np.int8(3)])
def test_any_real_number_is_a_counter_value(number: Any) -> None:
    values = read_counters({"c": number})
    assert values == {"c": float(number)}
    assert type(values["c"]) is float


@pytest.mark.parametrize("value", ["3", b"3", None, 1j, Decimal(3), [3]])
def test_what_is_no_real_number_is_no_counter_value(value: object) -> None:
    with pytest.raises(RecordError, match=f"a counter value is a {type(value).__name__}: 'c'"):
        read_counters({"c": value})


@pytest.mark.parametrize("value", [12, True, np.int64(12), Index()])
def test_a_whole_number_is_anything_that_serves_as_an_index(value: object) -> None:
    assert whole("id", value) == (1 if value is True else 12)
    assert type(whole("id", value)) is int


@pytest.mark.parametrize("value", [1.0, "1", b"1", None, float("nan"), [1], Fraction(1)])
def test_a_number_of_another_type_is_not_whole_even_where_its_value_is(value: object) -> None:
    with pytest.raises(RecordError, match=f"^id is a {type(value).__name__}, expected a whole number$"):
        whole("id", value)


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 2**70])
def test_a_number_beyond_its_column_is_refused(value: int) -> None:
    with pytest.raises(RecordError, match=rf"^id is out of range: {value}, expected -9223372036854775808\.\."):
        whole("id", value)


@pytest.mark.parametrize(
    ("one", "other", "together"),
    [
        (INT, INT, INT),
        (INT, BIG, BIG),
        (BIG, BIG, BIG),
        (INT, FLOAT, FLOAT),
        (FLOAT, INT, FLOAT),
        (STRING, STRING, STRING),
        (_list(3), _list(3), _list(3)),
    ],
)
def test_two_shapes_that_one_column_can_hold_are_merged(one: Shape, other: Shape, together: Shape) -> None:
    assert merged({"a": one, "x": BOOL}, {"a": other, "y": STRING}) == {"a": together, "x": BOOL, "y": STRING}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (BIG, FLOAT),
        (FLOAT, BIG),
        (BOOL, INT),
        (INT, STRING),
        (_list(2), _list(3)),
        (_list(0), _list(1)),
        (INT, _list(1)),
    ],
)
def test_two_shapes_that_no_column_can_hold_are_refused_and_nothing_changes(one: Shape, other: Shape) -> None:
    known = {"a": one}
    with pytest.raises(MixedKindsError, match="'a' holds"):
        merged(known, {"new": INT, "a": other})
    assert known == {"a": one}
