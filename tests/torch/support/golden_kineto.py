"""A trace that Kineto wrote on a GPU, logged into a profile of this process by another backend's profiler."""

from __future__ import annotations

import ctypes
import gzip
import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import toyland

from devprof.model import ActivityType, kLinkAsyncCpuGpu
from devprof.store import Trace

__all__ = ["Event", "events_of", "found_in", "give"]

_FOLDER = Path(__file__).parents[3] / "plugins/cuda_cupti/tests/golden"
_TYPES = {kind.label: kind for kind in ActivityType}
_NOT_ITEMS = ("External id", "correlation")


class Event(NamedTuple):
    """A call or a piece of work: times from the first event on, in ns; `items` as JSON with sorted keys."""

    category: str
    name: str
    start_ns: int
    duration_ns: int
    device: int
    row: int
    launch: int
    arrow: tuple[int, bool]
    items: str


class _Item(ctypes.Structure):
    _fields_ = (("key", ctypes.c_char_p), ("value", ctypes.c_char_p), ("is_text", ctypes.c_int))


def events_of(name: str) -> list[Event]:
    """Return the calls and the work of a golden trace; the process that made the calls is this one."""
    trace = json.loads(gzip.decompress((_FOLDER / f"{name}_kineto.json.gz").read_bytes()))["traceEvents"]
    slices = [event for event in trace if event["ph"] == "X"]
    zero_ns = min(round(event["ts"] * 1000) for event in slices)
    arrows = _arrows(trace)
    return [_event(event, zero_ns, arrows) for event in slices]


def _arrows(trace: list[dict[str, Any]]) -> dict[tuple[int, int, float], tuple[int, bool]]:
    """Return the end of an arrow at each place and time; of ends of one place the start goes first, as Kineto writes them."""
    ends = [event for event in trace if event["ph"] in "sf"]
    whole = {event["id"] for event in ends if event["ph"] == "s"}
    return {
        (end["pid"], end["tid"], end["ts"]): (end["id"], end["ph"] == "s")
        for end in sorted(ends, key=lambda one: one["ph"] == "s")
        if end["id"] in whole
    }


def _event(event: dict[str, Any], zero_ns: int, arrows: dict[tuple[int, int, float], tuple[int, bool]]) -> Event:
    args = event.get("args", {})
    on_host = event["cat"] in ("cuda_runtime", "cuda_driver")
    return Event(
        event["cat"],
        event["name"],
        round(event["ts"] * 1000) - zero_ns,
        round(event["dur"] * 1000),
        os.getpid() if on_host else event["pid"],
        event["tid"],
        args.get("correlation", 0),
        arrows.get((event["pid"], event["tid"], event["ts"]), (0, False)),
        json.dumps({key: value for key, value in args.items() if key not in _NOT_ITEMS}, sort_keys=True),
    )


def give(events: list[Event]) -> None:
    """Have another backend's profiler log these events in the next profile."""
    other = toyland.other_backend()
    for one in events:
        items = json.loads(one.items)
        table = (_Item * len(items))(*_items(items))
        times_place = (ctypes.c_int64 * 4)(one.start_ns, one.start_ns + one.duration_ns, one.device, one.row)
        number, starts = one.arrow
        flow = (ctypes.c_uint * 3)(number, kLinkAsyncCpuGpu if number else 0, starts)
        kind = int(_TYPES[one.category])
        other.other_give(kind, one.name.encode(), times_place, one.launch, flow, table, len(items))


def _items(items: dict[str, Any]) -> Iterator[_Item]:
    for key, value in items.items():
        is_text = isinstance(value, str)
        yield _Item(key.encode(), (value if is_text else json.dumps(value)).encode(), is_text)


def found_in(trace: Trace, like: list[Event]) -> Counter[Event]:
    """Return the events of these categories in a trace, in the same form."""
    categories = {one.category for one in like}
    chosen = [at for at in range(len(trace)) if ActivityType(int(trace.activity_type[at])).label in categories]
    zero_ns = min(int(trace.start_ns[at]) for at in chosen)
    return Counter(_found(trace, at, zero_ns) for at in chosen)


def _found(trace: Trace, at: int, zero_ns: int) -> Event:
    row = trace.rows[trace.row[at]]
    items = {key: list(value) if isinstance(value, tuple) else value for key, value in trace.items_of(at).items()}
    return Event(
        ActivityType(int(trace.activity_type[at])).label,
        trace.name_of(at),
        int(trace.start_ns[at]) - zero_ns,
        int(trace.duration_ns[at]),
        trace.places[row.place].id,
        row.id,
        int(trace.id[at]),
        (int(trace.flow_id[at]), bool(trace.flow_start[at])),
        json.dumps({key: value for key, value in items.items() if key not in _NOT_ITEMS}, sort_keys=True),
    )
