"""What a hook returns is checked against the contract, and the message says what was meant."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from devprof.contract import (
    Capabilities,
    ClockDomain,
    IActivityProfiler,
    IActivityProfilerSession,
    NativeCorrelation,
    ProfilerStubs,
    TraceStatus,
)
from devprof.errors import PluginContractError
from devprof.model import ActivityType, DeviceInfo, ResourceInfo
from devprof.registry import PROFILER_RETURNS, SESSION_RETURNS, STUBS_RETURNS, check_return
from devprof.registry.returns import describe

GOOD: list[tuple[str, object]] = [
    ("start", None),
    ("status", TraceStatus.READY),
    ("errors", ["one"]),
    ("errors", ()),
    ("get_device_infos", [DeviceInfo(0, "dev")]),
    ("get_resource_infos", (ResourceInfo(7, 0, "stream 7"),)),
    ("get_device_properties", [{"name": "x", "sizes": [1, 2], "more": {"a": None}}]),
    ("get_metadata", {"driver": "1.2", "ok": True, "n": 3, "x": 1.5, "list": ({"a": 1},)}),
    ("clock_domain", None),
    ("clock_domain", ClockDomain("dev")),
    ("sample_clock", 2**62),
    ("sample_clock", np.int64(5)),
    ("native_correlation", NativeCorrelation(1, 2)),
]

JSON_ONLY = "JSON values only: text, numbers, booleans, None, lists and mappings with text keys"

BAD: list[tuple[str, object, str]] = [
    ("start", 42, "returned int 42, expected nothing (None)"),
    ("status", "ready", "returned str 'ready', expected TraceStatus"),
    ("errors", "one", "returned str 'one', expected a list or tuple of str"),
    ("errors", ["one", 2], "returned a collection whose item 1 is int 2, expected a list or tuple of str"),
    ("errors", None, "returned None, expected a list or tuple of str: is a 'return' missing?"),
    (
        "get_device_infos",
        [ResourceInfo],
        "returned a collection whose item 0 is the class ResourceInfo, expected a list or tuple of DeviceInfo",
    ),
    (
        "get_metadata",
        {"a": {"b": object}},
        f"returned a mapping whose 'a' is a mapping whose 'b' is the class object, expected a mapping: {JSON_ONLY}",
    ),
    (
        "get_metadata",
        {1: 2},
        f"returned a mapping with the key int 1, expected a mapping: {JSON_ONLY}",
    ),
    (
        "get_device_properties",
        [{"x": b"raw"}],
        f"returned a collection with a mapping whose 'x' is bytes b'raw', expected a list of mappings: {JSON_ONLY}",
    ),
    ("clock_domain", "ns", "returned str 'ns', expected ClockDomain or None"),
    ("sample_clock", 1.5, "returned float 1.5, expected int: ticks are whole numbers"),
]


@pytest.mark.parametrize(("method", "value"), GOOD)
def test_what_the_contract_asks_for_is_accepted(method: str, value: object) -> None:
    check_return("demo", f"session.{method}", value, SESSION_RETURNS[method])


@pytest.mark.parametrize(("method", "value", "message"), BAD)
def test_anything_else_is_refused_with_expected_found_and_advice(method: str, value: object, message: str) -> None:
    with pytest.raises(PluginContractError) as caught:
        check_return("demo", f"session.{method}", value, SESSION_RETURNS[method])
    assert (caught.value.plugin, caught.value.hook, caught.value.reason) == ("demo", f"session.{method}", message)


def test_numbers_in_place_of_activity_types_are_refused_though_they_are_equal() -> None:
    check_return(
        "demo", "profiler.available_activities", {ActivityType.GPU_MEMCPY}, PROFILER_RETURNS["available_activities"]
    )
    with pytest.raises(PluginContractError, match="item 0 is int 3, expected a set of ActivityType: use members of"):
        check_return("demo", "profiler.available_activities", {3}, PROFILER_RETURNS["available_activities"])


def test_an_async_method_is_named_as_such_and_leaves_no_further_warning() -> None:
    async def start() -> None: ...

    with pytest.raises(PluginContractError, match=r"returned .*coroutine.*: the method is async and nobody awaits it"):
        check_return("demo", "session.start", start(), SESSION_RETURNS["start"])


def test_a_generator_is_named_as_such() -> None:
    def errors() -> Any:
        yield "one"

    with pytest.raises(PluginContractError, match="has a 'yield', so its body has not run"):
        check_return("demo", "session.errors", errors(), SESSION_RETURNS["errors"])


def test_plain_types_can_be_expected_too() -> None:
    check_return("demo", "hook", Capabilities(), (Capabilities, type(None)))
    with pytest.raises(PluginContractError, match="returned int 3, expected str or None"):
        check_return("demo", "hook", 3, (str, type(None)))


def test_an_object_that_cannot_be_shown_is_named_by_its_type() -> None:
    class Broken:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    name = Broken.__qualname__
    assert [describe(Broken()), describe("x" * 100)] == [f"an object of type {name}", "an object of type str"]


@pytest.mark.parametrize(
    ("protocol", "table", "elsewhere"),
    [
        (IActivityProfiler, PROFILER_RETURNS, {"configure"}),
        (IActivityProfilerSession, SESSION_RETURNS, set()),
        (ProfilerStubs, STUBS_RETURNS, set()),
    ],
)
def test_every_method_of_the_contract_has_its_expectation(protocol: type, table: Any, elsewhere: set[str]) -> None:
    methods = {name for name, member in vars(protocol).items() if inspect.isfunction(member) and name[0] != "_"}
    assert methods - elsewhere == set(table)


@pytest.mark.parametrize("make", [lambda: None, lambda: 0, dict])
def test_stubs_may_give_any_handle(make: Callable[[], object]) -> None:
    check_return("demo", "stubs.record", make(), STUBS_RETURNS["record"])


class Endless(Sequence[DeviceInfo]):
    """Says that it is short, and never ends."""

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: Any) -> Any:
        return DeviceInfo(0, "device")


@pytest.mark.parametrize(
    ("method", "value", "problem"),
    [
        ("get_device_infos", [DeviceInfo(0, "device")] * 100_001, "a collection of more than 100,000 items"),
        ("get_device_infos", Endless(), "a collection of more than 100,000 items"),
        ("get_metadata", {"a": [0] * 100_001}, "a mapping whose 'a' is a value of more than 100,000 items"),
        (
            "get_metadata",
            {"a": "x" * 2**24},
            "a mapping whose 'a' is a value with more than 16,777,216 characters of text",
        ),
        ("get_device_properties", [{}] * 100_001, "a collection with a value of more than 100,000 items"),
    ],
)
def test_a_flood_of_facts_is_refused(method: str, value: object, problem: str) -> None:
    with pytest.raises(PluginContractError) as caught:
        check_return("demo", f"session.{method}", value, SESSION_RETURNS[method])
    assert caught.value.reason.startswith(f"returned {problem}, expected ")


def test_as_many_facts_as_a_capture_may_need_are_taken() -> None:
    check_return(
        "demo",
        "session.get_metadata",
        {"a": [0] * 99_995, "b": "x" * (2**24 - 2)},
        SESSION_RETURNS["get_metadata"],
    )


def test_a_value_that_is_too_long_to_be_shown_is_never_made_into_text() -> None:
    class Unreadable(list[int]):
        def __repr__(self) -> str:
            raise AssertionError("read")

    with pytest.raises(PluginContractError, match=r"returned an object of type .*Unreadable, expected nothing"):
        check_return("demo", "session.stop", Unreadable([0] * 1_000_000), SESSION_RETURNS["stop"])
