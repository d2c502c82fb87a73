"""What the manifest of a ``.devprof`` file holds, and back.

The file is a zip archive without compression. Its members:

| member | content |
|---|---|
| ``manifest.json`` | this module's dict, UTF-8 |
| ``strings.bin``, ``strings.npy`` | all texts end to end, UTF-8 (lone surrogates as they are); n + 1 offsets into them, int64 |
| ``columns/NAME.npy`` | one fixed column of the trace, by its name |
| ``items/I.npy``, ``items/I.events.npy`` | values and events of the item column with number I in the manifest |
| ``counters/I.npy``, ``counters/I.events.npy`` | the same for counters |

Every array begins at a multiple of 64 bytes, so that it can be mapped into memory. Nothing in the file is code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from devprof.errors import TraceFileError
from devprof.store.items import ItemColumn, ItemKind
from devprof.store.places import Place, PlaceKind, Row
from devprof.store.trace import Trace

__all__ = ["FORMAT", "VERSION", "check_manifest", "manifest_of", "places_of", "rows_of", "tables_of"]

FORMAT = "devprof trace"
VERSION = 1
"""Version of the schema. A reader takes files of its own version and of earlier ones."""

Made = TypeVar("Made")


def manifest_of(trace: Trace) -> dict[str, Any]:
    """Return the manifest of a trace, JSON values."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "events": len(trace),
        "strings": len(trace.strings),
        "window_start_ns": trace.window_start_ns,
        "window_end_ns": trace.window_end_ns,
        "places": [_place(place) for place in trace.places],
        "rows": [[row.place, row.id, row.name, row.sort_index] for row in trace.rows],
        "items": [_table(key, column) for key, column in trace.items.items()],
        "counters": [_table(key, column) for key, column in trace.counters.items()],
        "facts": dict(trace.facts),
    }


def check_manifest(manifest: object) -> dict[str, Any]:
    """Return a manifest that this version can read.

    Raises:
        TraceFileError: it is of another format or a later version, or lacks something.
    """
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise TraceFileError("its manifest is not that of a devprof trace")
    version = manifest.get("version")
    if not isinstance(version, int) or not 1 <= version <= VERSION:
        raise TraceFileError(
            f"it has version {version!r} of the format, and this devprof reads versions 1 to {VERSION}"
        )
    wanted = {"events": int, "strings": int, "window_start_ns": int, "window_end_ns": int, "facts": dict}
    for key, kind in {**wanted, "places": list, "rows": list, "items": list, "counters": list}.items():
        if not isinstance(manifest.get(key), kind):
            raise TraceFileError(f"its manifest has no {kind.__name__} under {key!r}")
    return manifest


def places_of(manifest: Mapping[str, Any]) -> tuple[Place, ...]:
    """Return the places of a manifest."""
    return tuple(_read("place", entry, _place_from) for entry in manifest["places"])


def rows_of(manifest: Mapping[str, Any]) -> tuple[Row, ...]:
    """Return the rows of a manifest."""
    return tuple(
        _read("row", entry, lambda e: Row(int(e[0]), int(e[1]), str(e[2]), _number(e[3]))) for entry in manifest["rows"]
    )


def tables_of(manifest: Mapping[str, Any], which: str) -> list[tuple[str, ItemKind]]:
    """Return key and kind of each item column (`which` is ``"items"``) or counter column (``"counters"``)."""
    return [_read("column", entry, lambda e: (str(e["key"]), ItemKind[e["kind"]])) for entry in manifest[which]]


def _table(key: str, column: ItemColumn) -> dict[str, Any]:
    return {"key": key, "kind": column.kind.name}


def _place(place: Place) -> dict[str, Any]:
    facts = {"id": place.id, "kind": place.kind.value, "name": place.name, "label": place.label}
    return {**facts, "sort_index": place.sort_index, "backend": place.backend, "properties": dict(place.properties)}


def _place_from(entry: Any) -> Place:
    return Place(
        id=int(entry["id"]),
        kind=PlaceKind(entry["kind"]),
        name=str(entry["name"]),
        label=str(entry["label"]),
        sort_index=_number(entry["sort_index"]),
        backend=str(entry["backend"]),
        properties=dict(entry["properties"]),
    )


def _number(value: object) -> int | None:
    if value is None or isinstance(value, int):
        return value
    raise TypeError(f"expected a number, found {type(value).__name__}")


def _read(what: str, entry: object, make: Callable[[Any], Made]) -> Made:
    try:
        return make(entry)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise TraceFileError(f"its manifest holds no {what} where one should be ({error!r})") from error
