"""`load` finds a file's format by its content."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from devprof.errors import TraceFileError
from devprof.pipeline.files import load
from devprof.store import save

_EVENTS = [{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 1}]


def test_a_file_is_known_by_its_content_and_not_by_its_name(
    tmp_path: Path, nvprof: Callable[..., Path], nsys: Callable[..., Path]
) -> None:
    plain, packed, saved = (tmp_path / name for name in ("a.sqlite", "b.txt", "c.json"))
    plain.write_text(json.dumps(_EVENTS))
    packed.write_bytes(gzip.compress(json.dumps(_EVENTS).encode()))
    save(load(plain), saved)
    formats = [load(path).facts["file"]["format"] for path in (plain, packed, saved, nvprof(), nsys(StringIds=[]))]  # type: ignore[index]
    assert formats == ["kineto", "kineto", "kineto", "nvprof", "nsys"]


def test_what_is_no_trace_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x"
    for content in (b"", b"hello", b"PK\x03\x04", b"SQLite format 3\0", b"SQLite format 3\0" * 100):
        path.write_bytes(content)
        with pytest.raises(TraceFileError):
            load(path)
    with pytest.raises(TraceFileError, match="cannot be opened"):
        load(tmp_path / "none")


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(TraceFileError, match=r"is a pipe or a device; .* save it to a file first"):
        load(tmp_path / "pipe.json")
