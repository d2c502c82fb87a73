"""A Trace as the events of the file that Kineto writes, and such a file, both in one comparable form."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from devprof.model import ActivityType
from devprof.store import ItemKind, RawJson, Trace

OF_TORCH_ALONE = frozenset({"Record scope", "End thread", "Flops", "Overload name"})
"""Items that torch's own events have and its file lacks."""

_UNLINKED_WITHOUT_ID = frozenset(
    {
        ActivityType.GPU_MEMCPY,
        ActivityType.GPU_MEMSET,
        ActivityType.CONCURRENT_KERNEL,
        ActivityType.CUDA_RUNTIME,
        ActivityType.CUDA_DRIVER,
        ActivityType.PRIVATEUSE1_RUNTIME,
        ActivityType.PRIVATEUSE1_DRIVER,
    }
)
"""Kinds whose own id Kineto does not print as "External id" (output_json.cpp)."""
_COUNTERS = frozenset({ActivityType.MTIA_COUNTERS, ActivityType.XPU_SCOPE_PROFILER})
_FLOWS = {1: "fwdbwd", 2: "ac2g"}


class Line(NamedTuple):
    """One event of the file; times in Unix ns, `args` as JSON with sorted keys."""

    ph: str
    cat: str
    name: str
    pid: int
    tid: int
    start_ns: int
    duration_ns: int
    args: str


class Arrow(NamedTuple):
    """One end of an arrow."""

    ph: str
    cat: str
    id: int
    pid: int
    tid: int
    at_ns: int


class Shown(NamedTuple):
    """What a trace shows: events and arrows with how often each is there, names of rows, the window's end."""

    lines: Counter[Line]
    arrows: Counter[Arrow]
    processes: set[tuple[int, str, str, int]]
    threads: set[tuple[int, int, str, int]]
    window_end_ns: int


def shown_by_file(path: Path) -> Shown:
    """Read a file of Kineto's."""
    file = json.loads(path.read_bytes(), parse_float=Decimal, strict=False)
    base = file["baseTimeNanoseconds"]
    events = file["traceEvents"]
    own = [event for event in events if event["ph"] in "XiC" and event.get("cat", "Trace") != "Trace"]
    arrows = [event for event in events if event["ph"] in "sf"]
    window = [event for event in events if event["name"] == "Record Window End"]
    return Shown(
        lines=Counter(_line(event, base) for event in own),
        arrows=Counter(Arrow(e["ph"], e["cat"], e["id"], e["pid"], e["tid"], _ns(e["ts"], base)) for e in arrows),
        processes=set(_processes(events)),
        threads=set(_threads(events)),
        window_end_ns=_ns(window[0]["ts"], base),
    )


def _line(event: dict[str, Any], base_ns: int) -> Line:
    args = {key: value for key, value in event.get("args", {}).items() if value is not None}
    return Line(
        event["ph"],
        event["cat"],
        event["name"],
        event["pid"],
        event["tid"],
        _ns(event["ts"], base_ns),
        _ns(event.get("dur", 0), 0),
        _sorted(args),
    )


def _ns(us: Any, base_ns: int) -> int:
    exact = base_ns + Decimal(us) * 1000
    assert exact == int(exact)
    return int(exact)


def _sorted(args: dict[str, Any]) -> str:
    return json.dumps({key: _number(value) for key, value in args.items()}, sort_keys=True, default=float)


def _number(value: Any) -> Any:
    """Kineto prints a whole real number without a point."""
    return int(value) if isinstance(value, float | Decimal) and value == int(value) else value


def _processes(events: list[dict[str, Any]]) -> Iterable[tuple[int, str, str, int]]:
    found: dict[int, dict[str, Any]] = {}
    for event in events:
        if event["ph"] == "M" and event["name"].startswith("process_") and event["pid"] != "Spans":
            found.setdefault(event["pid"], {}).update(event["args"])
    return ((pid, args["name"], args["labels"], args["sort_index"]) for pid, args in found.items())


def _threads(events: list[dict[str, Any]]) -> Iterable[tuple[int, int, str, int]]:
    found: dict[tuple[int, int], dict[str, Any]] = {}
    for event in events:
        if event["ph"] == "M" and event["name"].startswith("thread_"):
            found.setdefault((event["pid"], event["tid"]), {}).update(event["args"])
    return ((pid, tid, args["name"], args["sort_index"]) for (pid, tid), args in found.items())


def shown_by_trace(trace: Trace) -> Shown:
    """Say what Kineto's file of this trace would show."""
    events = range(len(trace))
    named = [place for place in trace.places if place.sort_index is not None]
    rows = [(trace.places[row.place].id, row) for row in trace.rows if row.sort_index is not None]
    return Shown(
        lines=Counter(_line_of(trace, event) for event in events),
        arrows=Counter(_arrow_of(trace, event) for event in events if trace.flow_id[event]),
        processes={(place.id, place.name, place.label, place.sort_index or 0) for place in named},
        threads={(place, abs(row.id), row.name, row.sort_index or 0) for place, row in rows},
        window_end_ns=trace.window_end_ns,
    )


def _line_of(trace: Trace, event: int) -> Line:
    kind = ActivityType(int(trace.activity_type[event]))
    row = trace.rows[trace.row[event]]
    start, end = int(trace.start_ns[event]), int(trace.end_ns[event])
    if kind is ActivityType.GPU_USER_ANNOTATION:  # Kineto draws it around what it spans
        start, end = start - 1, end + 1
    timed = kind is not ActivityType.CPU_INSTANT_EVENT and kind not in _COUNTERS
    return Line(
        "X" if timed else "C" if kind in _COUNTERS else "i",
        kind.label,
        trace.name_of(event),
        trace.places[row.place].id,
        abs(row.id),
        start,
        max(end - start, 0) if timed else 0,
        _sorted(_counted(trace, event) if kind in _COUNTERS else _args(trace, event, kind)),
    )


def _counted(trace: Trace, event: int) -> dict[str, Any]:
    values = {key: column.value(event, trace.strings) for key, column in trace.counters.items()}
    return {key: value for key, value in values.items() if value is not None}


def _args(trace: Trace, event: int, kind: ActivityType) -> dict[str, Any]:
    items = trace.items_of(event)
    args = {key: _plain(value) for key, value in items.items() if key not in OF_TORCH_ALONE}
    external = int(trace.linked[event])
    if not external and kind not in _UNLINKED_WITHOUT_ID:
        external = int(trace.id[event])
    if external and kind is not ActivityType.CPU_INSTANT_EVENT:
        args["External id"] = external
    return args


def _plain(value: Any) -> Any:
    if isinstance(value, RawJson):
        return json.loads(value)
    return list(value) if isinstance(value, tuple) else value


def _arrow_of(trace: Trace, event: int) -> Arrow:
    row = trace.rows[trace.row[event]]
    return Arrow(
        "s" if trace.flow_start[event] else "f",
        _FLOWS[int(trace.flow_type[event])],
        int(trace.flow_id[event]),
        trace.places[row.place].id,
        abs(row.id),
        int(trace.start_ns[event]),
    )


def kinds_of(trace: Trace) -> dict[str, ItemKind]:
    """Return the type of each item column."""
    return {key: column.kind for key, column in trace.items.items()}
