"""A plain recount of a Kineto file: what its device work sums up to, by loops over its JSON and whole numbers."""

from __future__ import annotations

import bisect
import json
from collections import defaultdict
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

__all__ = ["recount"]

Spans = list[tuple[int, int]]


def recount(path: Path) -> dict[str, Any]:
    """Return the same figures as the analyses give, in ns: by name, by stream, by step, and the queue of each stream.

    Args:
        path: a file of `write_kineto_file`: kernels of one device, with the launch's number in ``correlation``.
    """
    events = [
        event for event in json.loads(path.read_text("utf-8"), parse_float=Decimal)["traceEvents"] if "dur" in event
    ]
    launched = {event["args"]["correlation"]: _start_ns(event) for event in events if event["cat"] == "cuda_runtime"}
    kernels = [event for event in events if event["cat"] == "kernel"]
    by_name: dict[str, list[int]] = defaultdict(list)
    by_stream: dict[int, Spans] = defaultdict(list)
    waits: dict[int, Spans] = defaultdict(list)
    for kernel in kernels:
        start_ns, duration_ns = _start_ns(kernel), _ns(kernel["dur"])
        by_name[kernel["name"]].append(duration_ns)
        by_stream[kernel["tid"]].append((start_ns, start_ns + duration_ns))
        waits[kernel["tid"]].append((launched[kernel["args"]["correlation"]], start_ns))
    streams = {stream: _joined(spans) for stream, spans in by_stream.items()}
    device = _joined([span for spans in by_stream.values() for span in spans])
    return {
        "device_breakdown": {name: [len(some), sum(some), min(some), max(some)] for name, some in by_name.items()},
        "stream_usage": {s: [len(by_stream[s]), _length(spans), _idle(spans)] for s, spans in streams.items()},
        "overlap": _length(device),
        "queue_length": [change for stream in sorted(waits) for change in _queue(waits[stream])],
        "steps": _steps(events, device),
    }


def _steps(events: Iterable[dict[str, Any]], device: Spans) -> list[list[int]]:
    found = []
    for event in events:
        if event["cat"] == "user_annotation":
            begin_ns, duration_ns = _start_ns(event), _ns(event["dur"])
            found.append([begin_ns, duration_ns, _covered(device, begin_ns, begin_ns + duration_ns)])
    return sorted(found)


def _queue(waits: Spans) -> list[list[int]]:
    """Return when the length of a queue changes, and to what."""
    changes: dict[int, int] = defaultdict(int)
    for entered_ns, left_ns in waits:
        changes[entered_ns] += 1
        changes[left_ns] -= 1
    length, found = 0, []
    for time_ns in sorted(changes):
        length += changes[time_ns]
        found.append([time_ns, length])
    return found


def _joined(spans: Spans) -> Spans:
    joined: Spans = []
    for start_ns, end_ns in sorted(spans):
        if joined and start_ns <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end_ns))
        else:
            joined.append((start_ns, end_ns))
    return joined


def _length(spans: Spans) -> int:
    return sum(end_ns - start_ns for start_ns, end_ns in spans)


def _idle(spans: Spans) -> int:
    return spans[-1][1] - spans[0][0] - _length(spans)


def _covered(spans: Spans, begin_ns: int, stop_ns: int) -> int:
    at = max(bisect.bisect(spans, (begin_ns, begin_ns)) - 1, 0)
    total = 0
    while at < len(spans) and spans[at][0] < stop_ns:
        total += max(min(spans[at][1], stop_ns) - max(spans[at][0], begin_ns), 0)
        at += 1
    return total


def _start_ns(event: dict[str, Any]) -> int:
    return _ns(event["ts"])


def _ns(us: Decimal | int) -> int:
    return int(us * 1000)
