"""Small files as Kineto writes them, and what a reader noted of them."""

from __future__ import annotations

import json
from collections.abc import Callable

from devprof.store import Trace

__all__ = ["Read", "file_of", "left_out", "names_of", "not_strict", "notes_of", "slice_of", "written_as"]

Read = Callable[..., Trace]
"""Fixture `read`: write a file and read it."""


def slice_of(name: str, ts: object, dur: object, **more: object) -> dict[str, object]:
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 2, "ts": ts, "dur": dur, **more}


def file_of(*events: object, **top: object) -> dict[str, object]:
    return {"schemaVersion": 1, **top, "traceEvents": list(events)}


def written_as(content: object, written: str) -> str:
    """Return JSON with a value as it is written in place of "TS"."""
    return json.dumps(content).replace('"TS"', written)


def left_out(trace: Trace) -> dict[str, int]:
    return trace.facts["file"]["left_out"]  # type: ignore[index,no-any-return]


def notes_of(trace: Trace) -> list[str]:
    return trace.facts["file"]["notes"]  # type: ignore[index,no-any-return]


def not_strict(trace: Trace) -> dict[str, int]:
    return trace.facts["file"]["not_strict"]  # type: ignore[index,no-any-return]


def names_of(trace: Trace) -> list[str]:
    return [trace.name_of(event) for event in range(len(trace))]
