"""A recording as one file, and back; ``docs/recordings.md`` describes the format."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path
from typing import IO

import numpy as np

from devprof.errors import TraceFileError
from devprof.replay.columns import Texts, batches_in, put_batches
from devprof.replay.recording import HostRanges, Recording
from devprof.replay.schema import check_manifest, manifest_of, places_in, recording_in
from devprof.store.archive import DAMAGE, TEXT, Members, put, put_array, put_texts, texts_of
from devprof.store.written import written_whole

__all__ = ["MOST_BYTES", "load", "save"]

MOST_BYTES = 1 << 30
"""A file larger than this is refused: it would be read into memory."""

_MOST_MANIFEST_BYTES = 1 << 28
_RANGES = {"id": np.int64, "thread_id": np.int64, "start_ns": np.int64, "end_ns": np.int64, "is_user": np.uint8}


def save(recording: Recording, path: str | os.PathLike[str]) -> None:
    """Write a recording as one file, whole or not at all. The same recording gives the same bytes.

    Args:
        recording: the recording.
        path: name of the file, by custom ``NAME.devrec``.

    Raises:
        UsageError: the directory does not exist.
        OSError: it cannot be written.
    """
    texts = Texts()
    sessions = recording.sessions
    with written_whole(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        items = put_batches(archive, [batch for session in sessions for batch in session.batches], texts)
        names = [name for session in sessions for name in session.host.names]
        put_array(archive, "host/name.npy", texts.numbers_of(names))
        for key, dtype in _RANGES.items():
            parts = [getattr(session.host, key) for session in sessions]
            put_array(archive, f"host/{key}.npy", np.concatenate([np.zeros(0, dtype), *parts]).astype(dtype))
        put_texts(archive, texts.numbers)
        manifest = manifest_of(recording, items, len(texts.numbers))
        put(archive, "manifest.json", json.dumps(manifest, allow_nan=False).encode(*TEXT))


def load(path: str | os.PathLike[str]) -> Recording:
    """Read a file that `save` wrote.

    Raises:
        TraceFileError: it is no such file, is damaged or too large, or was written by a later devprof.
        OSError: it cannot be opened.
    """
    with Path(path).open("rb") as file:
        try:
            return _load(file)
        except (*DAMAGE, TypeError, AttributeError, StopIteration) as error:
            raise TraceFileError(f"cannot read {os.fspath(path)} as a devprof recording: {error}") from error


def _load(file: IO[bytes]) -> Recording:
    if (size := os.fstat(file.fileno()).st_size) > MOST_BYTES:
        raise TraceFileError(f"it has {size:,} bytes; more than {MOST_BYTES:,} are not read")
    with zipfile.ZipFile(file) as archive:
        members = Members(file, archive)
        manifest = check_manifest(json.loads(members.bytes("manifest.json", _MOST_MANIFEST_BYTES)))
        strings = texts_of(members, manifest["strings"])
        batches = batches_in(members, places_in(manifest), manifest["items"], strings)
        return recording_in(manifest, batches, _host(members, strings))


def _host(members: Members, strings: tuple[str, ...]) -> HostRanges:
    name = members.array("host/name.npy", np.int32)
    columns = {key: members.array(f"host/{key}.npy", dtype) for key, dtype in _RANGES.items()}
    if any(column.shape != name.shape for column in columns.values()) or name.ndim != 1:
        raise TraceFileError("its columns of host ranges have several lengths")
    if len(name) and not 0 <= name.min() <= name.max() < len(strings):
        raise TraceFileError("a range of the host names a text that is not there")
    columns["is_user"] = columns["is_user"].astype(np.bool_)
    return HostRanges(tuple(strings[number] for number in name.tolist()), **columns)
