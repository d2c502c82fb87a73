"""What a plugin declares has defaults that fit most, and addresses that native code can jump to."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from devprof.contract import CONTRACT_VERSION, Capabilities, CorrelationAccess, NativeCorrelation


def test_a_plugin_that_declares_nothing_fits_this_contract_and_costs_nothing_per_op() -> None:
    assert Capabilities() == Capabilities(CONTRACT_VERSION, None, CorrelationAccess.READ, "")


def test_the_version_is_a_pair_of_numbers() -> None:
    assert [type(part) for part in CONTRACT_VERSION] == [int, int]


def test_a_declaration_cannot_be_changed_afterwards() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Capabilities().torch_device = "npu"  # type: ignore[misc]


@pytest.mark.parametrize("address", [0, 1, 2**64 - 1])
def test_any_address_of_64_bits_is_one(address: int) -> None:
    assert dataclasses.astuple(NativeCorrelation(address, address)) == (address, address)


@pytest.mark.parametrize("address", [-1, 2**64, None, 1.0, "0x1", b"\0" * 8])
def test_what_is_no_address_is_refused_by_name(address: Any) -> None:
    for field in ("push", "pop"):
        with pytest.raises(
            ValueError, match=rf"NativeCorrelation\.{field} is .*, expected the address of a C function"
        ):
            NativeCorrelation(**{"push": 1, "pop": 1, field: address})
