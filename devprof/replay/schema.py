"""What the manifest of a recording holds, and back. The format is described in ``docs/recordings.md``."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from devprof.contract import Capabilities, ClockDomain, ClockSample, CorrelationAccess
from devprof.errors import TraceFileError
from devprof.model import ActivityBatch, ActivityType, DeviceInfo, ResourceInfo
from devprof.replay.columns import BatchRows
from devprof.replay.recording import HookCall, HostRanges, MemoryReport, Push, RecordedSession, Recording, WorkCall
from devprof.replay.values import decoded, encoded

__all__ = ["FORMAT", "VERSION", "check_manifest", "manifest_of", "places_in", "recording_in"]

FORMAT = "devprof recording"
VERSION = 1
"""Version of the schema. A reader takes files of its own version and of earlier ones."""

Made = TypeVar("Made")
_KINDS = {"int": int, "str": str, "bool": bool, "int | float | str | None": int | float | str | None}
_LISTS = {"hooks": HookCall, "pushes": Push, "reports": MemoryReport}


def manifest_of(recording: Recording, items: list[dict[str, Any]], n_strings: int) -> dict[str, Any]:
    """Return the manifest, JSON values."""
    said = recording.capabilities
    return {
        "format": FORMAT,
        "version": VERSION,
        "strings": n_strings,
        "items": items,
        "plugin": recording.plugin,
        "capabilities": {
            "contract_version": list(said.contract_version),
            "torch_device": said.torch_device,
            "correlation": said.correlation.name,
            "description": said.description,
        },
        "available": _names(recording.available),
        "calls": _rows(recording.calls),
        "workload": encoded(recording.workload),
        "settings": encoded(recording.settings),
        "sessions": _sessions(recording.sessions),
    }


def _sessions(sessions: Iterable[RecordedSession]) -> list[dict[str, Any]]:
    row = ranges = 0
    entries = []
    for session in sessions:
        batches = []
        for batch in session.batches:
            batches.append([row, row + len(batch), batch.clock])
            row += len(batch)
        entries.append(_session(session, batches) | {"host": [ranges, ranges + len(session.host)]})
        ranges += len(session.host)
    return entries


def _session(session: RecordedSession, batches: list[list[Any]]) -> dict[str, Any]:
    domain = session.domain
    return {
        "scope": session.scope,
        "kinds": _names(session.kinds),
        "facts": encoded(session.facts),
        "refused": session.refused,
        "methods": sorted(session.methods),
        "hooks": _rows(session.hooks),
        "said": session.said,
        "domain": None if domain is None else [domain.name, float(domain.ticks_per_second), domain.virtual],
        "samples": [[one.host_before_ns, one.device_ticks, one.host_after_ns] for one in session.samples],
        "batches": batches,
        "device_infos": encoded(session.device_infos),
        "resource_infos": encoded(session.resource_infos),
        "dropped": [list(one) for one in session.dropped],
        "pushes": _rows(session.pushes),
        "reports": _rows(session.reports),
        "window": [session.window_start_ns, session.window_end_ns],
    }


def check_manifest(manifest: object) -> dict[str, Any]:
    """Return a manifest that this version can read.

    Raises:
        TraceFileError: it is of another format or a later version, or lacks something.
    """
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise TraceFileError("its manifest is not that of a devprof recording")
    version = manifest.get("version")
    if type(version) is not int or not 1 <= version <= VERSION:
        raise TraceFileError(f"it has version {version!r} of the format; this devprof reads 1 to {VERSION}")
    wanted = {"strings": int, "plugin": str, "capabilities": dict, "items": list, "available": list, "calls": list}
    for key, kind in {**wanted, "sessions": list}.items():
        if type(manifest.get(key)) is not kind:
            raise TraceFileError(f"its manifest has no {kind.__name__} under {key!r}")
    return manifest


def places_in(manifest: dict[str, Any]) -> list[BatchRows]:
    """Return where the batches are, session by session."""
    return [
        _read("batch", entry, lambda e: BatchRows(_int(e[0]), _int(e[1]), _str(e[2])))
        for session in manifest["sessions"]
        for entry in _list(session, "batches")
    ]


def recording_in(manifest: dict[str, Any], batches: Sequence[ActivityBatch], host: HostRanges) -> Recording:
    """Return the recording that a manifest and its columns describe.

    Raises:
        TraceFileError: something in it is not what `manifest_of` writes.
    """
    queue = iter(batches)
    edges = [edge for entry in manifest["sessions"] for edge in _read("range", entry, _edges)]
    if edges != sorted(edges) or (edges and not 0 <= edges[0] <= edges[-1] <= len(host)):
        raise TraceFileError(f"its sessions' ranges do not follow each other within {len(host)}")
    return Recording(
        plugin=manifest["plugin"],
        capabilities=_read("capabilities", manifest["capabilities"], _capabilities),
        available=_types(manifest["available"]),
        sessions=[_read("session", entry, lambda e: _session_in(e, queue, host)) for entry in manifest["sessions"]],
        calls=_of_rows(WorkCall, manifest["calls"]),
        workload=_dict(decoded(manifest.get("workload"))),
        settings=_dict(decoded(manifest.get("settings"))),
    )


def _edges(entry: Any) -> list[int]:
    begin, end = entry["host"]
    return [_int(begin), _int(end)]


def _session_in(entry: Any, batches: Any, host: HostRanges) -> RecordedSession:
    part = slice(*entry["host"])
    columns = [getattr(host, field.name)[part] for field in dataclasses.fields(host)]
    session = RecordedSession(
        scope=_str(entry["scope"]),
        kinds=_types(entry["kinds"]),
        facts=_dict(decoded(entry["facts"])),
        refused=entry["refused"] is True,
        methods=frozenset(map(_str, entry["methods"])),
        said={_str(hook): value for hook, value in entry["said"].items()},
        domain=_domain(entry["domain"]),
        samples=[ClockSample(*map(_int, sample)) for sample in entry["samples"]],
        batches=[next(batches) for _ in entry["batches"]],
        device_infos=[one for one in decoded(entry["device_infos"]) if isinstance(one, DeviceInfo)],
        resource_infos=[one for one in decoded(entry["resource_infos"]) if isinstance(one, ResourceInfo)],
        dropped=[(None if n is None else _int(n), _str(why)) for n, why in entry["dropped"]],
        window_start_ns=_int(entry["window"][0]),
        window_end_ns=_int(entry["window"][1]),
        host=HostRanges(*columns),
    )
    for key, kind in _LISTS.items():
        setattr(session, key, _of_rows(kind, entry[key]))
    session.reports.sort(key=lambda report: report.at_ns)
    for value in session.said.values():
        decoded(value)  # what cannot be answered is found now, and not in the middle of a replay
    return session


def _capabilities(entry: Any) -> Capabilities:
    major, minor = entry["contract_version"]
    device = entry["torch_device"]
    return Capabilities(
        (_int(major), _int(minor)),
        None if device is None else _str(device),
        CorrelationAccess[entry["correlation"]],
        _str(entry["description"]),
    )


def _domain(entry: Any) -> ClockDomain | None:
    if entry is None:
        return None
    name, rate, virtual = entry
    if not isinstance(rate, int | float) or isinstance(rate, bool):
        raise TypeError(f"a clock's rate is {rate!r}")
    return ClockDomain(_str(name), float(rate), virtual is True)


def _names(kinds: Iterable[ActivityType]) -> list[str]:
    return sorted(kind.name for kind in kinds)


def _types(names: Iterable[Any]) -> frozenset[ActivityType]:
    return frozenset(_read("activity type", name, lambda n: ActivityType[n]) for name in names)


def _rows(values: Iterable[Any]) -> list[list[Any]]:
    return [[encoded(getattr(one, field.name)) for field in dataclasses.fields(one)] for one in values]


def _of_rows(kind: type[Made], rows: Any) -> list[Made]:
    fields = [_KINDS[str(field.type)] for field in dataclasses.fields(kind)]  # type: ignore[arg-type]  # all are dataclasses

    def make(row: Any) -> Made:
        values = [decoded(value) for value in row]
        if len(values) != len(fields) or not all(map(_fits, values, fields)):
            raise TypeError(f"{row!r:.80}")
        return kind(*values)

    return [_read(kind.__name__, row, make) for row in rows]


def _fits(value: object, kind: Any) -> bool:
    return isinstance(value, kind) and (kind is not int or type(value) is int)


def _read(what: str, entry: object, make: Callable[[Any], Made]) -> Made:
    try:
        return make(entry)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, StopIteration) as error:
        raise TraceFileError(f"its manifest holds no {what} where one should be ({error!r})") from error


def _int(value: object) -> int:
    if type(value) is not int or not -(2**63) <= value < 2**63:
        raise TypeError(f"expected a whole number, found {value!r:.80}")
    return value


def _str(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected a text, found {value!r:.80}")
    return value


def _dict(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TraceFileError(f"its manifest holds {value!r:.80} in place of an object")
    return value


def _list(entry: Any, key: str) -> list[Any]:
    found = entry.get(key) if isinstance(entry, dict) else None
    if not isinstance(found, list):
        raise TraceFileError(f"its manifest has no list under {key!r}")
    return found
