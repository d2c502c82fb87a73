"""One record is read whole or refused by the field that is wrong."""

from __future__ import annotations

import dataclasses
import enum
from typing import Any

import numpy as np
import pytest

from devprof.model import ActivityType, Flow, GenericTraceActivity, RecordError, kLinkAsyncCpuGpu
from devprof.model.items import Shape
from devprof.model.metadata import MetadataKind
from devprof.model.rows import NUMBERS, Row, read_row

KERNEL = GenericTraceActivity(ActivityType.CONCURRENT_KERNEL, "k", 10, 20)


def _reason(**changes: Any) -> str:
    with pytest.raises(RecordError) as caught:
        read_row(dataclasses.replace(KERNEL, **changes))
    return caught.value.reason


def test_every_field_is_read_into_its_column() -> None:
    activity = GenericTraceActivity(
        ActivityType.GPU_MEMCPY, "copy", 1, 2, 3, 4, 5, 6, 7, 8, Flow(9, kLinkAsyncCpuGpu, True), {"b": 1}, {"c": 2}
    )
    numbers = (3, 1, 2, 3, 4, 5, 6, 7, 8, 9, 2, 1)
    assert read_row(activity) == Row("copy", numbers, {"b": 1}, {"b": Shape(MetadataKind.INT)}, {"c": 2.0})
    host = ["activity_type", "start", "end", "id", "device", "resource", "thread_id", "linked", "linked_user"]
    assert list(NUMBERS) == [*host, "flow_id", "flow_type", "flow_start"]


def test_numpys_numbers_and_texts_become_pythons() -> None:
    row = read_row(
        GenericTraceActivity(np.uint8(5), np.str_("k"), np.int64(1), np.uint64(2), device=np.int32(3))  # type: ignore[arg-type]
    )
    assert row.numbers[:5] == (5, 1, 2, 0, 3)
    assert {type(number) for number in row.numbers} == {int}
    assert type(row.name) is str


def test_a_text_enum_stands_for_its_text() -> None:
    class Name(str, enum.Enum):  # noqa: UP042 - this older way is the one whose `str()` is not its text
        GEMM = "gemm"

    assert read_row(dataclasses.replace(KERNEL, activity_name=Name.GEMM)).name == "gemm"


@pytest.mark.parametrize("field", ["start_ns", "end_ns", "id", "resource", "thread_id", "linked", "linked_user"])
def test_a_64_bit_field_says_what_is_wrong_with_it(field: str) -> None:
    assert _reason(**{field: 2**63}) == f"{field} is out of range"
    assert _reason(**{field: -(2**63) - 1}) == f"{field} is out of range"
    assert _reason(**{field: 1.0}) == f"{field} is a float"
    assert _reason(**{field: "1"}) == f"{field} is a str"
    assert _reason(**{field: None}) == f"{field} is a NoneType"


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("activity_type", 256, "activity_type is out of range"),
        ("activity_type", -1, "activity_type is out of range"),
        ("activity_type", "kernel", "activity_type is a str"),
        ("activity_type", 5.7, "activity_type is a float"),
        ("activity_name", b"k", "activity_name is a bytes"),
        ("activity_name", None, "activity_name is a NoneType"),
        ("device", 2**31, "device is out of range"),
        ("device", float("nan"), "device is a float"),
        ("flow", (1, 2, True), "flow is a tuple"),
        ("flow", 0, "flow is a int"),
        ("flow", Flow(2**63, 1, True), "flow.id is out of range"),
        ("flow", Flow(1, 256, True), "flow.type is out of range"),
        ("flow", Flow(1, 1, 2), "flow.start is out of range"),  # type: ignore[arg-type]
        ("flow", Flow(1, 1, "yes"), "flow.start is a str"),  # type: ignore[arg-type]
        ("metadata", None, "metadata is a NoneType"),
        ("counter_values", {"c": None}, "a counter value is a NoneType"),
    ],
)
def test_a_field_of_a_wrong_type_or_size_is_named(field: str, value: object, reason: str) -> None:
    assert _reason(**{field: value}) == reason


def test_changing_the_object_afterwards_does_not_change_the_row() -> None:
    items: dict[str, Any] = {"grid": [1, 2, 3]}
    activity = dataclasses.replace(KERNEL, metadata=items)
    row = read_row(activity)
    activity.start_ns, activity.activity_name = 99, "other"
    items["grid"].append(4)
    items["more"] = 1
    assert (row.name, row.numbers[1], row.metadata) == ("k", 10, {"grid": (1, 2, 3)})
