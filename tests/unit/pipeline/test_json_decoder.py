"""Which decoder a JSON file gets."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from devprof.native import build, find, missing
from devprof.pipeline import json_decoder as module
from devprof.pipeline.files import load
from devprof.pipeline.json_decoder import json_decoder
from devprof.store.readers import JSON, python_decoder

_TEXT = b'[{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 1}]'


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a trace file; nothing is built yet, and the file counts as large."""
    monkeypatch.setenv("DEVPROF_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("DEVPROF_BUILD", raising=False)
    monkeypatch.setattr(module, "BUILD_FROM_BYTES", len(_TEXT))
    module._built.cache_clear()
    path = tmp_path / "t.json"
    path.write_bytes(_TEXT)
    yield path
    module._built.cache_clear()


def _is_python(path: Path) -> bool:
    return type(json_decoder(path)) is type(python_decoder())


def test_a_large_file_has_the_native_decoder_built_and_a_small_one_uses_it_then(path: Path) -> None:
    if reason := missing(JSON):
        pytest.skip(reason)
    small = path.with_name("small.json")
    small.write_bytes(b"[]")
    assert _is_python(small)
    assert find(JSON) is None
    assert not _is_python(path)
    assert find(JSON) is not None
    assert not _is_python(small)
    assert load(path).name_of(0) == "a"


def test_a_packed_file_is_as_large_as_what_it_likely_holds(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = path.with_name("t.json.gz")
    packed.write_bytes(gzip.compress(_TEXT))
    monkeypatch.setattr(module, "BUILD_FROM_BYTES", 10 * packed.stat().st_size)
    monkeypatch.setenv("CXX", "/no/such/compiler")
    asked: list[object] = []
    monkeypatch.setattr(module, "build", lambda spec: asked.append(spec) or build(spec))
    assert _is_python(path)
    assert asked == []
    assert _is_python(packed)
    assert asked == [JSON]


def test_nothing_is_built_where_that_is_forbidden(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEVPROF_BUILD", "never")
    assert _is_python(path)
    assert find(JSON) is None


def test_without_a_compiler_a_decoder_in_python_reads_the_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "/no/such/compiler")
    assert _is_python(path)
    assert load(path).name_of(0) == "a"


def test_a_file_that_is_not_there_gets_a_decoder_too(path: Path) -> None:
    assert _is_python(path.with_name("none"))


def test_progress_says_how_much_of_the_file_has_been_read(path: Path) -> None:
    packed = path.with_name("t.json.gz")
    packed.write_bytes(gzip.compress(_TEXT))
    for file in (path, packed):
        seen: list[tuple[int, int]] = []
        load(file, progress=lambda done, size, seen=seen: seen.append((done, size)))
        size = file.stat().st_size
        assert seen[-1] == (size, size)
        assert seen == sorted(seen)
