"""A file written in the background is whole or not there, and its error is heard."""

from __future__ import annotations

import gzip
import logging
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from devprof.errors import UsageError
from devprof.export import chrome_trace
from devprof.export.background import in_background
from devprof.export.behind import behind
from devprof.export.output import output
from devprof.store import Trace
from tests.unit.export.test_chrome import small_trace


class Gate:
    """An exporter that waits until it may go on."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.thread: threading.Thread | None = None

    def write(self, trace: Trace, path: Path, *, error: BaseException | None = None) -> None:
        with output(path) as write:
            write("half")
            self.thread = threading.current_thread()
            self.open.wait()
            if error is not None:
                raise error
            write(" and half")


def test_the_caller_goes_on_and_the_file_comes_when_it_is_whole(tmp_path: Path) -> None:
    gate = Gate()
    export = in_background(gate.write, small_trace(), tmp_path / "t.json")
    assert (export.done, export.path.exists()) == (False, False)
    with pytest.raises(TimeoutError, match=r"t\.json is not written after 0 s"):
        export.wait(0)
    gate.open.set()
    assert export.wait() == tmp_path / "t.json"
    assert (export.done, export.path.read_text()) == (True, "half and half")
    assert gate.thread is not threading.current_thread()


def test_the_file_is_the_one_that_the_exporter_writes(json_writer: str, tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    chrome_trace(small_trace(), path)
    expected = path.read_bytes()
    path.unlink()
    in_background(chrome_trace, small_trace(), path).wait()
    assert path.read_bytes() == expected


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt()])
def test_an_export_that_fails_leaves_nothing_and_every_wait_raises_its_error(
    error: BaseException, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    gate = Gate()
    gate.open.set()
    with caplog.at_level(logging.ERROR, "devprof.export"):
        export = in_background(gate.write, small_trace(), tmp_path / "t.json", error=error)
        for _ in range(2):
            with pytest.raises(type(error)):
                export.wait()
    assert list(tmp_path.iterdir()) == []
    assert [record.getMessage() for record in caplog.records] == [f"{tmp_path / 't.json'} was not written: {error}"]


def test_a_directory_that_is_not_there_is_said_when_waiting(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no directory"):
        in_background(chrome_trace, small_trace(), tmp_path / "missing" / "t.json").wait()


def test_a_relative_name_means_the_directory_of_the_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    gate = Gate()
    export = in_background(gate.write, small_trace(), "t.json")
    (tmp_path / "other").mkdir()
    monkeypatch.chdir("other")
    gate.open.set()
    assert export.wait() == tmp_path / "t.json"


def test_a_program_that_ends_waits_for_its_file(tmp_path: Path) -> None:
    program = (
        "from devprof.export import chrome_trace\n"
        "from devprof.export.background import in_background\n"
        "from tests.unit.export.test_chrome import small_trace\n"
        f"in_background(chrome_trace, small_trace(), {str(tmp_path / 't.json.gz')!r})\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=Path(__file__).parents[3], timeout=60)
    assert gzip.decompress((tmp_path / "t.json.gz").read_bytes()).endswith(b"}\n")


# pieces written behind


def test_pieces_are_written_in_order_on_another_thread() -> None:
    written: list[tuple[bytes, bool]] = []
    here = threading.current_thread()
    buffer = bytearray(b"0")
    with behind(lambda piece: written.append((bytes(piece), threading.current_thread() is here))) as write:
        for i in range(20):
            buffer[:] = b"%d" % (i % 10)
            write(memoryview(buffer)[:])  # the next piece overwrites it
    assert written == [(b"%d" % (i % 10), False) for i in range(20)]


def _fail(after: int) -> Callable[[Any], None]:
    left = [after]

    def write(piece: Any) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError("full")

    return write


def _write_many(write: Callable[[bytes], object], error: Exception | None = None) -> None:
    for _ in range(20):
        write(b"piece")
    if error is not None:
        raise error


@pytest.mark.parametrize("after", [0, 3, 19])
def test_what_the_thread_raises_is_raised_here_and_nobody_waits_for_ever(after: int) -> None:
    with pytest.raises(OSError, match="full"), behind(_fail(after)) as write:
        _write_many(write)


def test_an_error_of_the_block_holds_and_the_thread_ends() -> None:
    before = threading.active_count()
    with pytest.raises(ValueError, match="mine"), behind(_fail(0)):
        raise ValueError("mine")
    with pytest.raises(ValueError, match="mine"), behind(lambda piece: None) as write:
        _write_many(write, ValueError("mine"))
    assert threading.active_count() == before


def test_without_another_thread_pieces_are_written_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    written: list[Any] = []
    with behind(written.append) as write:
        write(b"piece")
    assert written == [b"piece"]


def test_a_disk_that_is_full_while_packing_leaves_no_file(
    json_writer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: gzip.GzipFile, data: Any) -> int:
        raise OSError("full")

    monkeypatch.setattr(gzip.GzipFile, "write", full)
    with pytest.raises(Exception, match="full"):
        chrome_trace(small_trace(), tmp_path / "t.json.gz")
    assert list(tmp_path.iterdir()) == []


def test_where_no_thread_can_be_started_the_file_is_written_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a handler of `atexit`, since Python 3.12."""

    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", start)
        export = in_background(chrome_trace, small_trace(), tmp_path / "trace.json")
        assert export.done
    assert export.wait(0.0).stat().st_size > 0
