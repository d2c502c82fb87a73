"""Rows of devices and resources: what they are called, where they stand, and what is refused."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from devprof.model import DeviceInfo, ResourceInfo, TraceSpan


def test_devices_stand_below_every_host_process_unless_they_say_otherwise() -> None:
    assert DeviceInfo(2, "npu").row == 5_000_002
    assert DeviceInfo(2, "npu", sort_index=0).row == 0
    assert DeviceInfo(2, "npu", sort_index=-7).row == -7


def test_resources_stand_in_the_order_of_their_numbers_unless_they_say_otherwise() -> None:
    assert ResourceInfo(7, 0, "stream 7").row == 7
    assert ResourceInfo(7, 0, "stream 7", sort_index=0).row == 0


def test_numpys_numbers_become_pythons() -> None:
    device = DeviceInfo(np.int64(2), "npu", sort_index=np.int32(3))  # type: ignore[arg-type]
    resource = ResourceInfo(np.int64(-1), np.int8(2), "stream", np.uint8(4))  # type: ignore[arg-type]
    assert (device, resource) == (DeviceInfo(2, "npu", sort_index=3), ResourceInfo(-1, 2, "stream", 4))
    assert {type(n) for n in (device.id, device.row, resource.id, resource.device_id, resource.row)} == {int}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"id": -1}, r"DeviceInfo.id is out of range: -1, expected 0\.\.2147483647"),
        ({"id": 2**31}, "DeviceInfo.id is out of range"),
        ({"id": "0"}, "DeviceInfo.id is a str, expected a whole number"),
        ({"id": 0.0}, "DeviceInfo.id is a float"),
        ({"name": None}, "DeviceInfo.name is a NoneType, expected text"),
        ({"label": b"x"}, "DeviceInfo.label is a bytes, expected text"),
        ({"sort_index": 2**63}, "DeviceInfo.sort_index is out of range"),
    ],
)
def test_a_device_that_native_code_could_not_name_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(DeviceInfo(0, "npu"), **changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"id": 2**63}, "ResourceInfo.id is out of range"),
        ({"id": None}, "ResourceInfo.id is a NoneType"),
        ({"device_id": -1}, "ResourceInfo.device_id is out of range"),
        ({"name": 7}, "ResourceInfo.name is a int, expected text"),
        ({"sort_index": 1.5}, "ResourceInfo.sort_index is a float"),
    ],
)
def test_a_resource_that_native_code_could_not_name_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(ResourceInfo(0, 0, "stream"), **changes)


def test_a_span_outside_a_schedule_has_no_iteration() -> None:
    assert TraceSpan(1, 2, "npu") == TraceSpan(start_ns=1, end_ns=2, name="npu", iteration=-1)
