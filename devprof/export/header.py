"""What stands around the events of a Chrome trace: facts before them, the window after them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from devprof.export.base_time import has_window, timestamp
from devprof.export.strict_json import json_text
from devprof.export.tracks import pids_of
from devprof.store import PlaceKind, Trace

__all__ = ["head", "tail", "window_events"]

_FLAGS = ("profile_memory", "with_stack", "record_shapes", "with_modules", "with_flops")
_TEXTS = ("trace_id", "host_name")
_OWN = ("metadata", "devprof_version", "report")
_SPANS_SORT_INDEX = 0x20000000  # libkineto/src/output_json.cpp
_SPAN = "PyTorch Profiler"  # what Kineto calls the window of the host's own records


def head(trace: Trace, base_ns: int) -> str:
    """Return the file's text up to the first event.

    The trace's facts stand under Kineto's keys where it has one, else under ``devprof``, together with the account of each
    plugin as in a file that Kineto wrote; the user's metadata at the top. A key of the user's that is taken moves into
    ``devprof``'s ``metadata``.

    Args:
        trace: the trace.
        base_ns: base of the file's times, Unix ns.
    """
    properties = [place.properties for place in trace.places if place.kind is PlaceKind.DEVICE and place.properties]
    top: dict[str, object] = {"schemaVersion": 1, "deviceProperties": properties}
    top |= {key: 1 for key in _FLAGS if trace.facts.get(key)}
    top |= {key: trace.facts[key] for key in _TEXTS if trace.facts.get(key)}
    reserved = {*top, "devprof", "displayTimeUnit", "baseTimeNanoseconds", "traceEvents", "traceName"}
    given = trace.facts.get("metadata")
    metadata = {str(key): value for key, value in given.items()} if isinstance(given, Mapping) else {}
    top |= {key: value for key, value in metadata.items() if key not in reserved}
    top["devprof"] = _own_facts(trace, {key: value for key, value in metadata.items() if key in reserved})
    top |= {"displayTimeUnit": "ms", "baseTimeNanoseconds": base_ns}
    lines = json_lines(top)
    return "{\n" + ",\n".join(lines) + ',\n"traceEvents": [\n'


def json_lines(top: Mapping[str, object]) -> Iterator[str]:
    """Yield each key with its value; of keys that read the same once cleaned the first one holds."""
    written: set[str] = set()
    for key, value in top.items():
        text = json_text(key)
        if text not in written:
            written.add(text)
            yield f"{text}: {json_text(value)}"


def tail(name: str) -> str:
    """Return the file's text after the last event.

    Args:
        name: the file's name, as the user gave it.
    """
    return f'\n],\n"traceName": {json_text(name)}\n}}\n'


def window_events(trace: Trace, base_ns: int) -> Iterator[str]:
    """Yield the events that show the capture window, as Kineto names them; none where the trace has no window."""
    if not has_window(trace):
        return
    start, end = (timestamp(ns - base_ns) for ns in (trace.window_start_ns, trace.window_end_ns))
    duration = timestamp(trace.window_end_ns - trace.window_start_ns)
    yield (
        f'{{"ph":"X","cat":"Trace","name":"{_SPAN} (0)","pid":"Spans","tid":"{_SPAN}","ts":{start},"dur":{duration},'
        f'"args":{{"Op count":{len(trace)}}}}}'
    )
    yield (
        f'{{"ph":"M","name":"process_sort_index","ts":{start},"pid":"Spans","tid":0,'
        f'"args":{{"sort_index":{_SPANS_SORT_INDEX}}}}}'
    )
    yield (f'{{"ph":"i","s":"g","name":"Iteration Start: {_SPAN}","pid":"Traces","tid":"Trace {_SPAN}","ts":{start}}}')
    yield f'{{"ph":"i","s":"g","name":"Record Window End","pid":"","tid":"","ts":{end}}}'


def _own_facts(trace: Trace, displaced: Mapping[str, object]) -> dict[str, object]:
    report = trace.facts.get("report")
    facts: dict[str, object] = {"version": trace.facts.get("devprof_version", "")}
    facts |= {str(key): value for key, value in report.items()} if isinstance(report, Mapping) else {}
    facts |= {key: value for key, value in trace.facts.items() if key not in (*_FLAGS, *_TEXTS, *_OWN)}
    if backends := _backends(trace):
        facts["backends"] = backends
    return facts | ({"metadata": displaced} if displaced else {})


def _backends(trace: Trace) -> dict[str, str]:
    """Return the backend of each device by its process number in the file: Kineto's format has no place for it."""
    pids = zip(trace.places, pids_of(trace.places), strict=True)
    return {str(pid): place.backend for place, pid in pids if place.kind is PlaceKind.DEVICE}
