"""torch's events and averages beside devprof's of the same profile, as plain values: times in whole ns, devices by name.

Both are read through the same attributes, so that what is compared is what a user reads.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from devprof.store import Trace

__all__ = ["GROUPINGS", "averages_read", "differing", "events_read", "unlike"]

GROUPINGS: list[tuple[bool, int, bool]] = [
    (False, 0, False),
    (True, 0, False),
    (False, 1, False),
    (False, 3, False),
    (False, 0, True),
    (True, 5, True),
]
"""All ways of grouping: by shapes, by depth of stack, by overload."""

_TIMES = (
    "cpu_time_total",
    "self_cpu_time_total",
    "device_time_total",
    "self_device_time_total",
)
_TIMES_PER_CALL = ("cpu_time", "device_time")
_MEMORY = ("cpu_memory_usage", "self_cpu_memory_usage", "device_memory_usage", "self_device_memory_usage")
_COMMON = ("key", "count", "node_id", "is_async", "is_remote", "is_legacy", "is_user_annotation", "scope", "flops")
_OF_EVENTS = (
    "name",
    "trace_name",
    "id",
    "sequence_nr",
    "fwd_thread",
    "is_python_function",
    "input_shapes",
    "structured_input_shapes",
    "structured_input_strides",
    "input_dtypes",
    "overload_name",
    "stack",
    "activity_type",
    "linked_correlation_id",
    "external_id",
    "flow_id",
    "flow_type",
    "flow_start",
    "device_index",
    "device_resource_id",
    "python_id",
    "python_parent_id",
    "python_module_id",
)
_OF_AVERAGES = ("input_shapes", "overload_name", "stack")
_OF_LONE_MEMORY = ("key", "count", "is_async", *_MEMORY)
"""What torch gives the rows that it makes for memory outside of all events; it leaves most else empty."""

Value = dict[str, Any]


def events_read(listed: Iterable[Any], trace: Trace) -> list[Value]:
    """Return events as plain values.

    Args:
        listed: torch's `EventList` or devprof's.
        trace: the trace, which knows torch's numbers of threads.
    """
    numbers = trace.facts["torch_thread_numbers"]
    assert isinstance(numbers, Mapping)
    return [_event(one, {int(native): number for native, number in numbers.items()}) for one in listed]


def averages_read(rows: Iterable[Any]) -> list[Value]:
    """Return averages as plain values, those of torch or of devprof."""
    return [{**_figures(row), **{name: getattr(row, name) for name in _OF_AVERAGES}} for row in rows]


def differing(mine: Sequence[Value], theirs: Sequence[Value]) -> dict[str, list[tuple[str, Any, Any]]]:
    """Return by attribute where values differ: name, devprof's value, torch's value.

    Raises:
        AssertionError: the lists are not of the same events.
    """
    assert [one["key"] for one in mine] == [one["key"] for one in theirs]
    found: dict[str, list[tuple[str, Any, Any]]] = {}
    for ours, torchs in zip(mine, theirs, strict=True):
        for name in ours:
            if ours[name] != torchs[name]:
                found.setdefault(name, []).append((ours["key"], ours[name], torchs[name]))
    return found


def unlike(mine: str, theirs: str, *, without: str = "", in_order: bool = True) -> list[tuple[list[str], list[str]]]:
    """Return the lines of two tables that differ, as words; rules are left out.

    A number may differ by one in its last place: both round, and torch adds up floats.

    Args:
        mine, theirs: the tables.
        without: a row of that name is left out of both.
        in_order: whether the rows must stand in the same order.
    """
    ours, torchs = ([words for words in _words(table) if words[0] != without] for table in (mine, theirs))
    if not in_order:
        ours, torchs = sorted(ours), sorted(torchs)
    pairs = list(itertools.zip_longest(ours, torchs, fillvalue=[]))
    return [(a, b) for a, b in pairs if len(a) != len(b) or not all(map(_alike, a, b))]


def _words(table: str) -> list[list[str]]:
    return [line.split() for line in table.splitlines() if line and line[0] not in "-="]


def _alike(mine: str, theirs: str) -> bool:
    ours, torchs = (re.fullmatch(r"(-?\d+)\.(\d+)(s|ms|us|%|)", word) for word in (mine, theirs))
    if ours is None or torchs is None:
        return mine == theirs
    if (len(ours[2]), ours[3]) != (len(torchs[2]), torchs[3]):
        return False
    return abs(int(ours[1] + ours[2]) - int(torchs[1] + torchs[2])) <= 1


def _ns(time_us: float) -> int:
    return round(time_us * 1000)


def _figures(one: Any) -> Value:
    return {
        **{name: getattr(one, name) for name in (*_COMMON, *_MEMORY)},
        **{name: _ns(getattr(one, name)) for name in _TIMES},
        **{name: _ns(getattr(one, name) * one.count) for name in _TIMES_PER_CALL},
        "on_host": str(one.device_type).lower().endswith("cpu"),
    }


def _event(one: Any, threads: Mapping[int, int]) -> Value:
    if one.name == "[memory]":
        return {name: getattr(one, name) for name in _OF_LONE_MEMORY}
    parent, children = one.cpu_parent, one.cpu_children
    return {
        **_figures(one),
        **{name: getattr(one, name) for name in _OF_EVENTS},
        "thread": threads.get(one.thread, one.thread),
        "start": _ns(one.time_range.start),
        "end": _ns(one.time_range.end),
        "parent": parent and (parent.name, parent.id, _ns(parent.time_range.start)),
        "children": [(child.name, child.id, _ns(child.time_range.start)) for child in children],
        "kernels": [(kernel.name, kernel.device, _ns(kernel.duration)) for kernel in one.kernels],
    }
