"""Small traces to export, and a reader that refuses whatever strict JSON refuses."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from devprof.model import ActivityType, kLinkAsyncCpuGpu
from devprof.store import ItemColumn, ItemKind, Place, PlaceKind, Row, Trace

HOST = Place(4321, PlaceKind.HOST, "python")
DEVICE = Place(0, PlaceKind.DEVICE, "OpenReg 0", backend="openreg")
PLACES = (HOST, DEVICE)
ROWS = (Row(0, 4321, "thread 4321 (MainThread)"), Row(1, 7, "stream 7"))
MAIN, STREAM = 0, 1
BASE_NS = 1790857026000000000
"""The base of everything that happens in the quarter of a year after it."""


def trace_of(
    events: Sequence[Mapping[str, Any]],
    *,
    items: Mapping[str, tuple[ItemKind, Mapping[int, Any]]] | None = None,
    counters: Mapping[str, Mapping[int, float]] | None = None,
    texts: Sequence[str] = (),
    rows: Sequence[Row] = ROWS,
    places: Sequence[Place] = PLACES,
    **more: Any,
) -> Trace:
    """Build a trace from one mapping per event: name, type, start_ns and end_ns from `BASE_NS`, and any column."""
    strings = list(dict.fromkeys([*texts, *(event["name"] for event in events)]))
    defaults = {"id": 0, "linked": 0, "linked_user": 0, "flow_id": 0, "flow_type": 0, "flow_start": 0, "parent": -1}

    def column(key: str, dtype: Any) -> Any:
        return np.array([event.get(key, defaults.get(key)) for event in events], dtype=dtype)

    def number(kind: ItemKind, value: Any) -> Any:
        if kind not in (ItemKind.STRING, ItemKind.JSON):
            return bool(value) if kind is ItemKind.BOOL else value
        if value not in strings:
            strings.append(value)
        return strings.index(value)

    item_columns = {
        key: ItemColumn(kind, np.array(sorted(values)), np.array([number(kind, values[i]) for i in sorted(values)]))
        for key, (kind, values) in (items or {}).items()
    }
    counter_columns = {
        key: ItemColumn(ItemKind.FLOAT, np.array(sorted(values)), np.array([values[i] for i in sorted(values)], float))
        for key, values in (counters or {}).items()
    }
    return Trace(
        strings=tuple(strings),
        activity_type=np.array([int(event.get("type", ActivityType.CPU_OP)) for event in events], dtype=np.uint8),
        name=np.array([strings.index(event["name"]) for event in events], dtype=np.int32),
        start_ns=np.array([BASE_NS + event["start_ns"] for event in events], dtype=np.int64),
        end_ns=np.array([BASE_NS + event.get("end_ns", event["start_ns"]) for event in events], dtype=np.int64),
        row=column("row", np.int32) if events else np.empty(0, np.int32),
        id=column("id", np.int64),
        linked=column("linked", np.int64),
        linked_user=column("linked_user", np.int64),
        flow_id=column("flow_id", np.int64),
        flow_type=column("flow_type", np.uint8),
        flow_start=column("flow_start", np.uint8),
        parent=column("parent", np.int32),
        places=tuple(places),
        rows=tuple(rows),
        items=item_columns,
        counters=counter_columns,
        **more,
    )


def op(name: str, start_ns: int, end_ns: int, row: int = MAIN, **columns: Any) -> dict[str, Any]:
    """One op on the host."""
    return {"name": name, "start_ns": start_ns, "end_ns": end_ns, "row": row, **columns}


def kernel(name: str, start_ns: int, end_ns: int, row: int = STREAM, **columns: Any) -> dict[str, Any]:
    """One kernel on a stream."""
    return op(name, start_ns, end_ns, row, type=ActivityType.CONCURRENT_KERNEL, **columns)


def strict(text: str) -> Any:
    """Parse JSON and refuse NaN, keys that stand twice, and text that is not UTF-8."""

    def refuse(word: str) -> Any:
        raise AssertionError(f"{word} in the file")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len(dict(pairs)) == len(pairs), f"a key stands twice among {[key for key, _ in pairs]}"
        return dict(pairs)

    text.encode()  # a lone surrogate is no UTF-8
    return json.loads(text, parse_constant=refuse, parse_float=Decimal, object_pairs_hook=unique)


def read(path: Path) -> Any:
    """Read a file strictly; its decimal numbers as `Decimal`."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return strict(data.decode("utf-8"))


def events_of(file: Any, phase: str) -> list[dict[str, Any]]:
    """The events of one phase, in the order of the file, without Kineto's span of the window."""
    return [event for event in file["traceEvents"] if event["ph"] == phase and event.get("cat") != "Trace"]


def start_ns(file: Any, event: Mapping[str, Any]) -> int:
    """Absolute start of an event, exact."""
    exact = file["baseTimeNanoseconds"] + Decimal(event["ts"]) * 1000
    assert exact == int(exact)
    return int(exact)


def end_ns(file: Any, event: Mapping[str, Any]) -> int:
    """Absolute end of a slice, exact."""
    exact = start_ns(file, event) + Decimal(event["dur"]) * 1000
    assert exact == int(exact)
    return int(exact)


def crossings(file: Any) -> list[tuple[str, str]]:
    """Names of slices that partly overlap on one track, or that a viewer would nest the wrong way round.

    As a viewer does it: by time, and by the order of the file where times are equal; a stack of what is open.
    """
    tracks: dict[tuple[Any, Any], list[tuple[int, int, str]]] = defaultdict(list)
    for event in events_of(file, "X"):
        tracks[event["pid"], event["tid"]].append((start_ns(file, event), end_ns(file, event), event["name"]))
    found = []
    for slices in tracks.values():
        stack: list[tuple[int, str]] = []
        for start, end, name in sorted(slices, key=lambda one: one[0]):
            while stack and stack[-1][0] <= start:
                stack.pop()
            if stack and stack[-1][0] < end:
                found.append((stack[-1][1], name))
            stack.append((end, name))
    return found


def small_trace() -> Trace:
    """An op, a launch, a kernel, an instant and a sample, with items of every kind."""
    launch = {"flow_id": 2**30, "flow_type": kLinkAsyncCpuGpu}
    events = [
        op("aten::mm", 1_000, 9_000, id=5),
        op("orLaunch", 2_000, 3_000, type=ActivityType.PRIVATEUSE1_RUNTIME, id=2**30, linked=5, flow_start=1, **launch),
        kernel("mm", 4_000, 8_001, id=2**30, linked=5, **launch),
        op("[memory]", 5_000, 5_000, type=ActivityType.CPU_INSTANT_EVENT, linked=5),
        op("SM active", 6_000, 6_000, STREAM, type=ActivityType.MTIA_COUNTERS),
    ]
    items = {
        "grid": (ItemKind.INT_LIST, {2: [4, 1, -1]}),
        "Input Dims": (ItemKind.JSON, {0: "[[8, 8], [8, 8]]"}),
        "est. achieved occupancy %": (ItemKind.FLOAT, {2: 12.5}),
        "note": (ItemKind.STRING, {2: 'a "quoted" é \ud800'}),
        "finished": (ItemKind.BOOL, {0: 0, 3: 1}),
        "Bytes": (ItemKind.INT, {1: 2**62, 2: 7, 3: -64}),
    }
    return trace_of(events, items=items, counters={"busy": {4: 0.25}})
