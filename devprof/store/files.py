"""A trace as one ``.devprof`` file, and back; `devprof.store.schema` describes the format."""

from __future__ import annotations

import json
import math
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from devprof.errors import TraceFileError
from devprof.store.archive import DAMAGE, TEXT, Members, put, put_array, put_texts, texts_of
from devprof.store.items import ItemColumn, ItemKind
from devprof.store.schema import check_manifest, manifest_of, places_of, rows_of, tables_of
from devprof.store.trace import COLUMNS, Trace
from devprof.store.written import told_in_words, written_whole

__all__ = ["load", "save"]

_ARCHIVE = b"PK\x03\x04"
_MOST_MANIFEST_BYTES = 1 << 28
_MOST_BITS = 8192
"""Of a whole number in the facts: Python neither writes nor reads very long ones."""


def save(trace: Trace, path: str | os.PathLike[str]) -> None:
    """Write a trace as one file, whole or not at all.

    Args:
        trace: the trace.
        path: name of the file, by custom ``NAME.devprof``.

    Raises:
        UsageError: the directory does not exist, or it may not be written there.
        CaptureError: the system could not write it, such as a full disk.
    """
    with told_in_words(path), written_whole(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        put(archive, "manifest.json", _json(manifest_of(trace)).encode(*TEXT))
        put_texts(archive, trace.strings)
        for key in COLUMNS:
            put_array(archive, f"columns/{key}.npy", getattr(trace, key))
        for which, columns in (("items", trace.items), ("counters", trace.counters)):
            for number, column in enumerate(columns.values()):
                put_array(archive, f"{which}/{number}.npy", column.values)
                put_array(archive, f"{which}/{number}.events.npy", column.events)


def _json(manifest: dict[str, Any]) -> str:
    try:
        return json.dumps(manifest, allow_nan=False)
    except ValueError:  # a fact that JSON has no number for
        return json.dumps(_plain(manifest), allow_nan=False)


def _plain(value: Any) -> Any:
    """Return a value with texts for numbers that are not finite, or that Python does not write for their length."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        return hex(value)
    return value


def load(path: str | os.PathLike[str]) -> Trace:
    """Read a file that `save` wrote. Columns are mapped into memory, not read.

    Raises:
        TraceFileError: it is no such file, is damaged, or was written by a later devprof.
        OSError: it cannot be opened.
    """
    with Path(path).open("rb") as file:
        try:
            return _load(file)
        except zipfile.BadZipFile as error:
            raise TraceFileError(f"cannot read {os.fspath(path)} as a devprof trace: {_not_whole(file)}") from error
        except DAMAGE as error:
            raise TraceFileError(f"cannot read {os.fspath(path)} as a devprof trace: {error}") from error


def _not_whole(file: IO[bytes]) -> str:
    """Return what is the matter with a file that has no table of contents at its end."""
    size_bytes = file.seek(0, os.SEEK_END)
    file.seek(0)
    if size_bytes == 0:
        return "it is empty; save the trace again"
    if file.read(len(_ARCHIVE)) == _ARCHIVE:
        return (
            f"it is damaged: it begins as one, and among its {size_bytes} bytes there is no table of contents, which stands at "
            "the end, or a wrong one. Most likely it was copied in part: copy it again, or save the trace again"
        )
    return (
        "it is none: a .devprof file is an archive that begins with 'PK'. Was it renamed, or written by something else?"
    )


def _load(file: IO[bytes]) -> Trace:
    with zipfile.ZipFile(file) as archive:
        members = Members(file, archive)
        manifest = check_manifest(json.loads(members.bytes("manifest.json", _MOST_MANIFEST_BYTES)))
        columns: dict[str, Any] = {key: members.array(f"columns/{key}.npy", dtype) for key, dtype in COLUMNS.items()}
        if (found := len(columns["start_ns"])) != manifest["events"]:
            raise TraceFileError(f"its manifest says {manifest['events']} events, and it holds {found}")
        return Trace(
            strings=texts_of(members, manifest["strings"]),
            **columns,
            places=places_of(manifest),
            rows=rows_of(manifest),
            items=_items(members, manifest, "items"),
            counters=_items(members, manifest, "counters"),
            window_start_ns=manifest["window_start_ns"],
            window_end_ns=manifest["window_end_ns"],
            facts=manifest["facts"],
        )


def _items(members: Members, manifest: Mapping[str, Any], which: str) -> dict[str, ItemColumn]:
    items: dict[str, ItemColumn] = {}
    for number, (key, kind) in enumerate(tables_of(manifest, which)):
        events, values = members.array(f"{which}/{number}.events.npy", np.int64), members.array(f"{which}/{number}.npy")
        if which == "counters" and kind is not ItemKind.FLOAT:
            raise TraceFileError(f"its counter {key!r} holds {kind.name}")
        items[key] = ItemColumn(kind, events, values)
    return items
