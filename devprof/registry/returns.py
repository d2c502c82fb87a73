"""What each hook must return, and the sentence that says so when it does not."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence, Set, Sized
from dataclasses import dataclass
from numbers import Integral, Real
from types import MappingProxyType

from devprof.contract import Capabilities, ClockDomain, NativeCorrelation, TraceStatus
from devprof.errors import PluginContractError
from devprof.model import ActivityType, DeviceInfo, ResourceInfo

__all__ = ["PROFILER_RETURNS", "SESSION_RETURNS", "STUBS_RETURNS", "Expectation", "check_return", "describe"]

_LONGEST_VALUE = 60

_MOST_ITEMS = 100_000
"""Items that a hook may return: facts of a capture are kept for as long as its trace."""

_MOST_TEXT = 16 * 2**20
"""Characters that they may have together."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a hook must return.

    Attributes:
        words: the expected value, such as ``"a list of DeviceInfo"``.
        problem: says what is wrong with a value, such as ``"item 2 is None"``; empty text: nothing.
        advice: what the plugin's author may have meant, or an empty text.
    """

    words: str
    problem: Callable[[object], str]
    advice: str = ""


def check_return(plugin: str, hook: str, value: object, expect: type | tuple[type, ...] | Expectation) -> None:
    """Check what a plugin returned.

    Args:
        plugin: name of the plugin, for the message.
        hook: what was called, for the message.
        value: what it returned.
        expect: type, types or `Expectation`.

    Raises:
        PluginContractError: the value is something else; expected, found and the likely cause are in the message.
    """
    if not isinstance(expect, Expectation):
        expect = _instance(*(expect if isinstance(expect, tuple) else (expect,)))
    problem = expect.problem(value)
    if not problem:
        return
    raise PluginContractError(plugin, hook, f"returned {problem}, expected {expect.words}{_advice(value, expect)}")


def describe(value: object) -> str:
    """Name a value for a message: its type, and the value where it is short."""
    if value is None:
        return "None"
    if isinstance(value, type):
        return f"the class {value.__qualname__}"
    try:
        # what is too long to be shown is not made into text: a plugin may return a million of anything
        text = "" if isinstance(value, Sized) and len(value) > _LONGEST_VALUE else repr(value)
    except Exception:  # noqa: BLE001 - a plugin's object may do anything
        text = ""
    kind = type(value).__qualname__
    return f"{kind} {text}" if text and len(text) <= _LONGEST_VALUE else f"an object of type {kind}"


def _advice(value: object, expect: Expectation) -> str:
    if inspect.iscoroutine(value):
        value.close()  # else Python adds "was never awaited" to the real message
        return ": the method is async and nobody awaits it; write a plain function"
    if inspect.isgenerator(value):
        return ": the method has a 'yield', so its body has not run; return the value"
    if value is None and "None" not in expect.words:
        return ": is a 'return' missing?"
    return f": {expect.advice}" if expect.advice else ""


def _instance(*types: type, words: str = "", advice: str = "") -> Expectation:
    def problem(value: object) -> str:
        return "" if isinstance(value, types) else describe(value)

    return Expectation(words or " or ".join(_type_name(one) for one in types), problem, advice)


def _type_name(one: type) -> str:
    return "None" if one is type(None) else one.__qualname__


def _items(value: Iterable[object], kind: type) -> str:
    for index, item in enumerate(value):
        if index >= _MOST_ITEMS:
            return f"a collection of more than {_MOST_ITEMS:,} items"
        if not isinstance(item, kind):
            return f"a collection whose item {index} is {describe(item)}"
    return ""


def _sequence_of(kind: type) -> Expectation:
    def problem(value: object) -> str:
        if not isinstance(value, Sequence) or isinstance(value, str | bytes):
            return describe(value)
        return _items(value, kind)

    return Expectation(f"a list or tuple of {kind.__qualname__}", problem)


def _set_of(kind: type) -> Expectation:
    def problem(value: object) -> str:
        return _items(value, kind) if isinstance(value, Set) else describe(value)

    advice = f"use members of {kind.__qualname__}, not their numbers or names"
    return Expectation(f"a set of {kind.__qualname__}", problem, advice)


@dataclass(slots=True)
class _Room:
    """How much more one answer may hold."""

    items: int = _MOST_ITEMS
    text: int = _MOST_TEXT

    def take(self, value: object) -> str:
        """Take one value; say so where there is no room for it."""
        self.items -= 1
        self.text -= len(value) if isinstance(value, str) else 0
        if self.items < 0:
            return f"a value of more than {_MOST_ITEMS:,} items"
        return f"a value with more than {_MOST_TEXT:,} characters of text" if self.text < 0 else ""


def _json_problem(value: object, room: _Room) -> str:
    if full := room.take(value):
        return full
    if value is None or isinstance(value, bool | int | float | str):
        return ""
    if isinstance(value, list | tuple):
        return next((text for item in value if (text := _json_problem(item, room))), "")
    if isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str):
                return f"a mapping with the key {describe(key)}"
            if text := room.take(key) or _json_problem(item, room):
                return f"a mapping whose {key[:_LONGEST_VALUE]!r} is {text}"
        return ""
    return describe(value)


def _json_object(value: object) -> str:
    return _json_problem(value, _Room()) if isinstance(value, Mapping) else describe(value)


def _json_objects(value: object) -> str:
    if not isinstance(value, list | tuple):
        return describe(value)
    room = _Room()
    for item in value:
        text = _json_problem(item, room) if isinstance(item, Mapping) else describe(item)
        if text:
            return f"a collection with {text}"
    return ""


_NOTHING = _instance(type(None), words="nothing (None)")
_A_FLAG = _instance(bool)
_JSON = "JSON values only: text, numbers, booleans, None, lists and mappings with text keys"

PROFILER_RETURNS: Mapping[str, Expectation] = MappingProxyType(
    {
        "name": _instance(str),
        "capabilities": _instance(Capabilities),
        "available_activities": _set_of(ActivityType),
    }
)
"""What the methods of an `IActivityProfiler` return; `configure` is `validate_session`'s."""

SESSION_RETURNS: Mapping[str, Expectation] = MappingProxyType(
    {
        "start": _NOTHING,
        "stop": _NOTHING,
        "status": _instance(TraceStatus),
        "errors": _sequence_of(str),
        "process_trace": _NOTHING,
        "flush_trace": _NOTHING,
        "get_device_infos": _sequence_of(DeviceInfo),
        "get_resource_infos": _sequence_of(ResourceInfo),
        "get_device_properties": Expectation("a list of mappings", _json_objects, _JSON),
        "get_metadata": Expectation("a mapping", _json_object, _JSON),
        "get_trace_buffer": _NOTHING,
        "clock_domain": _instance(ClockDomain, type(None)),
        "sample_clock": _instance(Integral, words="int", advice="ticks are whole numbers"),
        "native_correlation": _instance(NativeCorrelation, type(None)),
        "push_correlation_id": _NOTHING,
        "pop_correlation_id": _NOTHING,
        "push_user_correlation_id": _NOTHING,
        "pop_user_correlation_id": _NOTHING,
        "toggle_collection_dynamic": _NOTHING,
    }
)
"""What the methods of an `IActivityProfilerSession` return."""

STUBS_RETURNS: Mapping[str, Expectation] = MappingProxyType(
    {
        "record": Expectation("a handle", lambda value: describe(value) if inspect.iscoroutine(value) else ""),
        "elapsed": _instance(Real, words="float", advice="microseconds between the two events"),
        "mark": _NOTHING,
        "range_push": _NOTHING,
        "range_pop": _NOTHING,
        "enabled": _A_FLAG,
        "on_each_device": _NOTHING,
        "synchronize": _NOTHING,
    }
)
"""What the methods of `ProfilerStubs` return."""
