"""Every way to write a file, on a full disk, in a folder of somebody else's, interrupted, killed: whole or not there."""

from __future__ import annotations

import gzip
import importlib.util
import json
import os
import resource
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import devprof
from devprof.errors import CaptureError, UsageError
from tests.faults.matrix import CONDITIONS, EXCEPTIONS, FILES

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).with_name("file_program.py")

Seen = dict[str, dict[str, dict[str, Any]]]


@pytest.fixture(scope="module")
def seen() -> Iterator[Seen]:
    """What the program saw; in a folder that another user can get to."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        done = subprocess.run(
            [sys.executable, str(PROGRAM), folder],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            env={**os.environ, "PYTHONPATH": path},
        )
        assert done.returncode == 0, done.stderr
        yield json.loads(done.stdout)


def test_every_way_to_write_a_file_is_tried(seen: Seen) -> None:
    assert set(seen) == set(FILES)
    assert all(set(conditions) == set(CONDITIONS) for conditions in seen.values())


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("name", FILES)
def test_a_file_is_whole_or_not_there_and_the_error_says_why(seen: Seen, name: str, condition: str) -> None:
    if name == ".parquet" and importlib.util.find_spec("polars") is None:
        pytest.skip("needs the extra polars")
    found, expected = seen[name][condition], EXCEPTIONS.get((name, condition), CONDITIONS[condition])
    assert found["earlier"], "the file that was there before is gone"
    assert (found["error"], found["status"]) == (expected.error, -9 if expected.error is None else 0)
    assert [(part[:1], size) for part, size in found["left"].items()] == ([(".", 0)] if expected.left else [])
    if name != "handler":
        folder = str(Path(found["target"]).parent)
        assert found["says"].replace(found["target"], "TARGET").replace(folder, "FOLDER") == expected.says
    elif expected.says:
        assert found["says"].startswith(f"cannot write {found['target']}")


# -- torch's own writer, which only logs what it cannot write ----------------------------------------------------------


@contextmanager
def no_file_over(size_bytes: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture(scope="module")
def torchs() -> devprof.profile:
    torch = pytest.importorskip("torch", reason="torch writes the file")
    with devprof.profile(host="torch", activities=["cpu"]) as prof:
        torch.ones(2).neg()
    return prof


@pytest.mark.parametrize("name", ["t.json", "t.json.gz"])
def test_a_file_that_torch_writes_is_whole_or_not_there_too(torchs: devprof.profile, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("earlier")
    with (
        no_file_over(512),
        pytest.raises(CaptureError, match=f"cannot write .*{name}: torch could not write all of it"),
    ):
        torchs.export_chrome_trace(str(path))
    assert (path.read_text(), [one.name for one in tmp_path.iterdir()]) == ("earlier", [name])
    torchs.export_chrome_trace(str(path))
    open_: Callable[[Path], Any] = gzip.open if name.endswith(".gz") else open  # type: ignore[assignment]
    with open_(path) as file:
        assert json.load(file)["traceEvents"]
    assert [one.name for one in tmp_path.iterdir()] == [name]


def test_torchs_file_in_a_folder_that_is_not_there_is_refused_in_words(torchs: devprof.profile, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no directory"):
        torchs.export_chrome_trace(str(tmp_path / "absent" / "t.json"))


def test_torchs_file_takes_the_place_of_a_link_s_target_and_not_of_a_pipe(
    torchs: devprof.profile, tmp_path: Path
) -> None:
    (tmp_path / "link.json").symlink_to("real.json")
    torchs.export_chrome_trace(str(tmp_path / "link.json"))
    assert (tmp_path / "link.json").is_symlink()
    assert json.loads((tmp_path / "real.json").read_text())["traceEvents"]
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    heard: list[str] = []
    reader = threading.Thread(target=lambda: heard.append(pipe.read_text()))
    reader.start()
    torchs.export_chrome_trace(str(pipe))
    reader.join(30)
    assert json.loads(heard[0])["traceEvents"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
