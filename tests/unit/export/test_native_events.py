"""The native writer of events writes what the one in Python writes, byte by byte, and refuses what is no chunk."""

from __future__ import annotations

import ctypes
import logging
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings

from devprof.errors import BuildError, UsageError
from devprof.export import choice, chrome, chrome_trace, events, native_events, native_library, text_table
from devprof.export.build_spec import EXPORT
from devprof.export.native_chunk import Chunk, Column, Field, Texts
from devprof.native import find, library_path
from devprof.pipeline.files import load
from devprof.store import ItemColumn, ItemKind, Trace
from tests.unit.export.public_traces import each_public_trace
from tests.unit.export.test_chrome import small_trace
from tests.unit.export.test_hostile_traces import traces
from tests.unit.export.traces import op, trace_of


def written(trace: Trace, folder: Path, writer: str) -> bytes:
    with mock.patch.dict("os.environ", DEVPROF_JSON_WRITER=writer):
        chrome_trace(trace, folder / "t.json")
    return (folder / "t.json").read_bytes()


@contextmanager
def small_pieces(buffer_bytes: int = 1, at_once: int = 3, table_bytes: int = 10) -> Iterator[None]:
    """So little room that every event, chunk and text comes to its edge."""
    with (
        mock.patch.object(native_events, "_BUFFER_BYTES", buffer_bytes),
        mock.patch.object(native_events, "EVENTS_AT_ONCE", at_once),
        mock.patch.object(text_table, "_MOST_BYTES", table_bytes),
    ):
        yield


@pytest.mark.usefixtures("native_writers")
@settings(deadline=None, max_examples=300)
@given(traces())
def test_both_writers_make_the_same_file_of_any_trace(tmp_path_factory: pytest.TempPathFactory, trace: Trace) -> None:
    folder = tmp_path_factory.getbasetemp()
    expected = written(trace, folder, "python")
    assert written(trace, folder, "native") == expected
    with small_pieces():
        assert written(trace, folder, "native") == expected


@pytest.mark.usefixtures("native_writers")
@each_public_trace
def test_both_writers_make_the_same_file_of_a_public_trace(public_trace: Path, tmp_path: Path) -> None:
    trace = load(public_trace)
    assert written(trace, tmp_path, "native") == written(trace, tmp_path, "python")


def many(floats: np.ndarray[Any, Any], key: str = "f") -> Trace:
    n = len(floats)
    trace = trace_of([op("o", 0, 1)])
    columns = {name: np.repeat(getattr(trace, name), n) for name in ("activity_type", "name", "row", "parent", "id")}
    start = trace.start_ns[0] + 1000 * np.arange(n)
    items = {key: ItemColumn(ItemKind.FLOAT, np.arange(n), floats)}
    more = {name: np.repeat(getattr(trace, name), n) for name in ("linked", "linked_user", "flow_id", "flow_type")}
    return Trace(
        strings=trace.strings,
        start_ns=start,
        end_ns=start + 999,
        flow_start=np.repeat(trace.flow_start, n),
        places=trace.places,
        rows=trace.rows,
        items=items,
        **columns,
        **more,
    )


@pytest.mark.usefixtures("native_writers")
@pytest.mark.parametrize(
    "make",
    [
        lambda random: random.integers(0, 2**64, 200_000, dtype=np.uint64).view(np.float64),
        lambda random: random.integers(-(2**53), 2**53, 50_000) / 10.0 ** random.integers(0, 25, 50_000),
        lambda random: np.round(random.random(50_000) * 1e6, 3),
        lambda random: np.float64(10) ** np.arange(-323, 309),
        lambda random: np.nextafter(np.float64(10) ** np.arange(-323, 308), np.inf),
        lambda random: np.float64(2) ** np.arange(-1074, 1024),
        lambda random: np.float32(random.random(50_000)).astype(np.float64),
        lambda random: np.array([0.0, -0.0, 1e16, 9999999999999998.0, 1e-4, 9.999e-5, 5e-324, 1.7976931348623157e308]),
        lambda random: np.array([2.0**53 - 1, 2.0**53, 2.0**53 + 2, -(2.0**53), 1e15, 123456.0, 2e23, 1e22, 1e23]),
    ],
    ids=["bits", "decimals", "rounded", "tens", "after-tens", "twos", "singles", "edges", "whole"],
)
def test_numbers_have_the_text_that_python_gives_them(make: Callable[[Any], Any], tmp_path: Path) -> None:
    trace = many(make(np.random.default_rng(0)))
    assert written(trace, tmp_path, "native") == written(trace, tmp_path, "python")


def test_a_column_of_zeros_keeps_their_signs(json_writer: str, tmp_path: Path) -> None:
    text = written(many(np.array([0.0, -0.0, 0.0])), tmp_path, json_writer).decode()
    assert [text.count('"f":0.0'), text.count('"f":-0.0')] == [2, 1]


def test_an_event_larger_than_the_buffer_is_written(json_writer: str, tmp_path: Path) -> None:
    trace = trace_of([op("a", 0, 1), op("x" * 5_000, 2, 3), op("b", 4, 5)])
    with small_pieces(buffer_bytes=1_000):
        assert b"x" * 5_000 in written(trace, tmp_path, json_writer)


# which writer is taken


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DEVPROF_CACHE", str(tmp_path / "cache"))
    for name in ("DEVPROF_JSON_WRITER", "DEVPROF_BUILD"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "cache"


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the writers that were taken."""
    names: list[str] = []

    def noted(name: str, write: Any) -> Any:
        return lambda *given: [names.append(name), write(*given)][1]

    monkeypatch.setattr(chrome, "event_texts", noted("python", events.event_texts))
    monkeypatch.setattr(chrome, "native_event_texts", noted("native", native_events.native_event_texts))
    return names


def test_a_small_trace_builds_nothing(empty_cache: Path, taken: list[str], tmp_path: Path) -> None:
    chrome_trace(small_trace(), tmp_path / "t.json")
    assert (taken, empty_cache.exists()) == (["python"], False)


@pytest.mark.usefixtures("native_writers")
def test_a_large_trace_builds_the_native_writer_and_then_all_take_it(
    empty_cache: Path, taken: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choice, "BUILD_FROM_EVENTS", 5)
    chrome_trace(small_trace(), tmp_path / "t.json")
    assert find(EXPORT) == library_path(EXPORT)
    assert library_path(EXPORT).parent == empty_cache
    chrome_trace(trace_of([op("o", 0, 1)]), tmp_path / "t.json")
    assert taken == ["native", "native"]


def test_nothing_is_built_where_that_is_forbidden(
    empty_cache: Path, taken: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choice, "BUILD_FROM_EVENTS", 0)
    monkeypatch.setenv("DEVPROF_BUILD", "never")
    chrome_trace(small_trace(), tmp_path / "t.json")
    assert (taken, empty_cache.exists()) == (["python"], False)


def test_without_a_compiler_python_writes_and_says_why_once_it_has_tried(
    empty_cache: Path,
    taken: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(choice, "BUILD_FROM_EVENTS", 0)
    monkeypatch.setenv("CXX", "no-such-compiler")
    with caplog.at_level(logging.INFO, "devprof.export"):
        chrome_trace(small_trace(), tmp_path / "t.json")
    assert taken == ["python"]
    assert "CXX is set to 'no-such-compiler'" in caplog.text


def test_a_build_that_failed_is_not_tried_again(
    empty_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []

    def fail(spec: Any) -> Path:
        tried.append(spec.name)
        raise BuildError("no")

    monkeypatch.setattr(choice, "BUILD_FROM_EVENTS", 0)
    monkeypatch.setattr(choice, "build", fail)
    for _ in range(2):
        chrome_trace(small_trace(), tmp_path / "t.json")
    assert tried == ["export"]


def test_the_switch_makes_a_missing_native_writer_an_error(
    empty_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEVPROF_JSON_WRITER", "native")
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(BuildError, match="CXX is set to 'no-such-compiler'"):
        chrome_trace(small_trace(), tmp_path / "t.json")
    assert not (tmp_path / "t.json").exists()


def test_another_text_in_the_switch_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEVPROF_JSON_WRITER", "rust")
    with pytest.raises(UsageError, match="expected 'native', 'python' or nothing"):
        chrome_trace(small_trace(), tmp_path / "t.json")


# what native code is given


@pytest.fixture
def native(native_writers: None) -> ctypes.CDLL:
    return native_library.library(library_path(EXPORT))


class Given:
    """A chunk of two events with one arg, its memory, and what comes back."""

    def __init__(self) -> None:
        self.held: list[Any] = []
        chunk = Chunk(events=2, fields=1)
        sizes = {"type": "BB", "name": "ii", "track": "qq", "since_ns": "QQ", "lasted_ns": "QQ", "shape": "256B"}
        for name, layout in sizes.items():
            setattr(chunk, name, self.column(bytes(struct.calcsize(f"={layout}"))))
        for name in ("heads", "arrow_heads", "arrow_tails", "tracks", "quoted", "verbatim", "keys"):
            setattr(chunk, name, Texts(self.column(b"text"), self.column(struct.pack("=2q", 0, 4))))
        self.field = Field(ItemKind.INT, 0, 1, self.column(struct.pack("=2q", 1, 2)), Column(None, 0))
        chunk.field = ctypes.pointer(self.field)
        self.chunk = chunk

    def column(self, data: bytes) -> Column:
        block = ctypes.create_string_buffer(data, max(len(data), 1))
        self.held.append(block)
        return Column(ctypes.addressof(block), len(data))

    def encode(self, native: ctypes.CDLL, *, first: int = 0, capacity: int = 4_096) -> tuple[int, bytes]:
        out, count = ctypes.create_string_buffer(capacity), ctypes.c_int64()
        result = native.devprof_json_encode(ctypes.byref(self.chunk), first, out, capacity, ctypes.byref(count))
        return int(result), out.raw[: count.value]


EVENT = b'texttext,text,"ts":0.000,"dur":0.000,"args":{text%d}}'


def test_a_chunk_that_is_whole_is_written(native: ctypes.CDLL) -> None:
    assert Given().encode(native) == (2, EVENT % 1 + b",\n" + EVENT % 2)
    assert Given().encode(native, first=1) == (1, EVENT % 2)
    assert Given().encode(native, capacity=10) == (0, b"")


def _column(name: str, data: bytes) -> Callable[[Given], None]:
    return lambda given: setattr(given.chunk, name, given.column(data))


def _table(name: str, text: bytes, *offsets: int) -> Callable[[Given], None]:
    def change(given: Given) -> None:
        where = given.column(struct.pack(f"={len(offsets)}q", *offsets))
        setattr(given.chunk, name, Texts(given.column(text), where))

    return change


def _set(where: str, name: str, value: Any) -> Callable[[Given], None]:
    return lambda given: setattr(getattr(given, where), name, value)


@pytest.mark.parametrize(
    ("change", "result"),
    [
        (_column("type", b"\0"), -1),
        (_column("name", bytes(7)), -1),
        (_column("kept", b"\1"), -1),
        (_column("arrow", b"\0\0"), -1),  # without numbers
        (_column("shape", bytes(255)), -1),
        (_set("chunk", "events", -1), -1),
        (_set("chunk", "events", 2**62), -1),
        (_set("chunk", "fields", -1), -1),
        (_set("chunk", "track", Column(None, 16)), -1),
        (_column("name", struct.pack("=2i", 0, 1)), -2),
        (_column("track", struct.pack("=2q", -1, 0)), -2),
        (_column("type", b"\0\1"), -2),
        (_table("quoted", b"text"), -1),
        (_table("quoted", b"text", 0, 5), -1),
        (_table("quoted", b"text", -1, 4), -1),
        (_table("quoted", b"text", 3, 2), -1),
        (_set("field", "kind", 6), -1),
        (_set("field", "kind", -1), -1),
        (_set("field", "key", 1), -2),
        (_set("field", "kind", int(ItemKind.BOOL)), -1),  # the values are too many bytes
        (_set("field", "present", Column(None, 2)), -1),
    ],
)
def test_a_chunk_that_is_not_whole_is_refused(
    native: ctypes.CDLL, change: Callable[[Given], None], result: int
) -> None:
    given = Given()
    change(given)
    assert given.encode(native)[0] == result


@pytest.mark.parametrize("width", [-1, 0, 2, 2**61, 2**62])
def test_lists_of_another_width_are_refused(native: ctypes.CDLL, width: int) -> None:
    given = Given()
    given.field.kind, given.field.width = ItemKind.INT_LIST, width
    assert given.encode(native)[0] == -1


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_number_that_is_not_finite_is_refused(native: ctypes.CDLL, value: float) -> None:
    given = Given()
    given.field.kind, given.field.values = ItemKind.FLOAT, given.column(struct.pack("=2d", 1.0, value))
    assert given.encode(native)[0] == -3


@pytest.mark.parametrize(("first", "capacity"), [(-1, 10), (3, 10), (0, -1)])
def test_a_place_outside_the_chunk_is_refused(native: ctypes.CDLL, first: int, capacity: int) -> None:
    count = ctypes.c_int64()
    out = ctypes.create_string_buffer(10)
    given = Given()
    assert native.devprof_json_encode(ctypes.byref(given.chunk), first, out, capacity, ctypes.byref(count)) == -1
