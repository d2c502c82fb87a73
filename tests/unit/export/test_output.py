"""A file that an exporter writes is whole or not there."""

from __future__ import annotations

import errno
import gzip
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from devprof.errors import CaptureError, UsageError
from devprof.export import chrome_trace
from devprof.export import output as output_module
from devprof.export.output import output
from tests.unit.export.traces import op, trace_of


@pytest.mark.parametrize("name", ["t.json", "t.json.gz"])
@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt()])
def test_a_file_that_fails_leaves_the_earlier_one_and_nothing_else(
    name: str, error: BaseException, tmp_path: Path
) -> None:
    (tmp_path / name).write_text("earlier")
    with pytest.raises(type(error)), output(tmp_path / name) as write:
        _fail(write, error)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "earlier"


def test_the_earlier_file_stays_until_the_new_one_is_whole(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text("earlier")
    with output(str(tmp_path / "t.json")) as write:
        write("new")
        assert (tmp_path / "t.json").read_text() == "earlier"
    assert (tmp_path / "t.json").read_text() == "new"


def test_a_name_that_ends_in_gz_is_packed(tmp_path: Path) -> None:
    with output(tmp_path / "t.json.gz") as write:
        write("é")
    data = (tmp_path / "t.json.gz").read_bytes()
    assert gzip.decompress(data) == "é".encode()
    assert data[3:9] == bytes(5) + b"\x00"  # no name, no time


def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no directory .*missing"):
        chrome_trace(trace_of([op("o", 0, 1)]), tmp_path / "missing" / "t.json")
    assert list(tmp_path.iterdir()) == []


def test_the_name_of_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="it is a directory"):
        chrome_trace(trace_of([op("o", 0, 1)]), tmp_path)


@pytest.mark.parametrize(
    ("code", "error", "says"),
    [(errno.EACCES, UsageError, "no permission"), (errno.ENOSPC, CaptureError, "No space left on device")],
)
def test_what_the_system_refuses_is_said_in_words(
    code: int, error: type[Exception], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(output_module, "written_whole", refuse)
    with pytest.raises(error, match=says), output(tmp_path / "t.json"):
        pass


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real.json").write_text("earlier")
    (tmp_path / "link.json").symlink_to("real.json")
    with output(tmp_path / "link.json") as write:
        write("new")
    assert (tmp_path / "link.json").is_symlink()
    assert (tmp_path / "real.json").read_text() == "new"


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    heard: list[str] = []
    reader = threading.Thread(target=lambda: heard.append(pipe.read_text()))
    reader.start()
    with output(pipe) as write:
        write("news")
    reader.join(10)
    assert heard == ["news"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def _fail(write: Callable[[str], object], error: BaseException) -> None:
    write("half")
    raise error


def test_a_pipe_behind_a_link_gets_the_text_as_it_comes() -> None:
    """As ``/dev/stdout`` is where a program's output goes into another program."""
    script = "from devprof.export.output import output\nwith output('/dev/stdout') as write: write('text')"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "text"
