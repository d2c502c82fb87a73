"""`load`: any trace file that devprof reads, recognised by its content."""

from __future__ import annotations

import gzip
import os
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path

from devprof import store
from devprof.errors import TraceFileError
from devprof.pipeline.files import load_kineto, load_nsys, load_nvprof
from devprof.store import Trace

__all__ = ["load"]

_HEAD_BYTES = 64
_GZIP = b"\x1f\x8b"
_SQLITE = b"SQLite format 3\x00"
_ZIP = b"PK\x03\x04"


def load(path: str | os.PathLike[str]) -> Trace:
    """Read a trace: a ``.devprof`` file, Chrome JSON of Kineto or of anybody (``.json``, ``.json.gz``), or an SQLite export of
    Nsight Systems or nvprof. What it is, is found by its content, not by its name.

    Raises:
        TraceFileError: it is none of these, or is damaged.
        OSError: it cannot be opened.
    """  # noqa: D205 - one sentence
    path = Path(path)
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    if head.startswith(_ZIP):
        return store.load(path)
    if head.startswith(_SQLITE):
        return _load_sqlite(path)
    text = (_unpacked(path) if head.startswith(_GZIP) else head).lstrip(b"\xef\xbb\xbf \t\r\n")
    if text[:1] in (b"{", b"["):
        return load_kineto(path)
    raise TraceFileError(
        f"cannot read {path} as a trace: it begins with {head[:8]!r}; expected a .devprof file, Chrome JSON (.json, .json.gz), "
        "or an SQLite export of Nsight Systems or nvprof"
    )


def _unpacked(path: Path) -> bytes:
    try:
        with gzip.open(path) as file:
            return file.read(_HEAD_BYTES)
    except (OSError, EOFError, zlib.error) as error:
        raise TraceFileError(f"cannot read {path} as a trace: it is a damaged gzip file ({error})") from error


def _load_sqlite(path: Path) -> Trace:
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
            tables = {str(name) for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.Error as error:
        raise TraceFileError(f"cannot read {path} as a trace: its SQLite database is damaged ({error})") from error
    return load_nsys(path) if "StringIds" in tables else load_nvprof(path)
