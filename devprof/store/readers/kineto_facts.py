"""What a trace file says beside its events: facts at its top, spans, the window.

Source: libkineto/src/output_json.cpp; under ``devprof`` what devprof's own exporter writes there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from devprof.store.readers.json_times import whole_number

__all__ = ["START_MARK", "STOP_MARK", "backends_of", "base_ns_of", "facts_of", "span_of"]

START_MARK = "Iteration Start: "
STOP_MARK = "Record Window End"

_FLAGS = ("profile_memory", "record_shapes", "with_flops", "with_modules", "with_stack")
_TEXTS = ("trace_id", "host_name")
_OF_THE_FORMAT = frozenset(
    {"schemaVersion", "deviceProperties", "displayTimeUnit", "baseTimeNanoseconds", "traceName", "devprof"}
)
_REPORT = ("host", "start_ns", "end_ns", "complete", "notes", "host_events", "plugins")
"""What the account of a session consists of, `SessionReport.as_dict`; the file has it beside devprof's other facts."""
_FARTHEST_NS = 2**62
_SPAN = re.compile(r"(?:(.*) )?(.*) \((-?\d{1,9})\)", re.DOTALL)


def base_ns_of(top: Mapping[str, Any], notes: list[str]) -> int:
    """Return what the file's times count from, Unix ns; 0 where it does not say.

    Args:
        top: the file's facts.
        notes: where a base that cannot be is noted.
    """
    given = top.get("baseTimeNanoseconds", 0)
    base = whole_number(given)
    if base is None or abs(base) >= _FARTHEST_NS:
        notes.append(f"baseTimeNanoseconds is {str(given)[:40]}, which is no time: taken as 0")
        return 0
    return base


def backends_of(top: Mapping[str, Any]) -> dict[str, str]:
    """Return the names of backends by their devices' process numbers, as texts; devprof writes them under ``backends``.

    Args:
        top: the file's facts.
    """
    own = top.get("devprof")
    given = own.get("backends") if isinstance(own, dict) else None
    return {pid: name for pid, name in given.items() if isinstance(name, str)} if isinstance(given, dict) else {}


def facts_of(top: Mapping[str, Any], others: Sequence[Mapping[str, Any]]) -> dict[str, object]:
    """Return the trace's facts: Kineto's flags and texts, what devprof wrote about itself, and all else as metadata.

    Args:
        top: the file's facts.
        others: metadata events that are about no place.
    """
    own = top.get("devprof")
    own = {key: value for key, value in own.items() if key != "backends"} if isinstance(own, dict) else {}
    metadata = {key: value for key, value in top.items() if key not in (*_OF_THE_FORMAT, *_FLAGS, *_TEXTS)}
    metadata |= moved if isinstance(moved := own.pop("metadata", None), dict) else {}
    version = own.pop("version", None)
    facts: dict[str, object] = {"host": own.get("host", "file")}
    if isinstance(own.get("plugins"), dict):
        facts["report"] = {key: own.pop(key) for key in _REPORT if key in own}
    facts |= own
    facts |= {"devprof_version": version} if version else {}
    facts |= {key: bool(top[key]) for key in _FLAGS if key in top}
    facts |= {key: top[key] for key in _TEXTS if key in top}
    return {**facts, "metadata": metadata, **({"metadata_events": list(others)} if others else {})}


def span_of(name: str, row: object, start_ns: int, duration_ns: int, args: Mapping[str, Any]) -> dict[str, Any]:
    """Return the window of one buffer, which Kineto writes as a slice named ``PREFIX NAME (ITERATION)``.

    Args:
        name: the slice's name.
        row: its row, which has the span's name.
        start_ns, duration_ns: its times.
        args: its args.
    """
    found = _SPAN.fullmatch(name)
    label, iteration = (name, -1) if found is None else (name[: name.rindex(" (")], int(found[3]))
    own = str(row) if isinstance(row, str) and label.endswith(row) else label
    return {
        "start_ns": start_ns,
        "end_ns": start_ns + duration_ns,
        "op_count": whole_number(args.get("Op count")) or 0,
        "iteration": iteration,
        "name": own,
        "prefix": label[: len(label) - len(own)].strip(),
    }
