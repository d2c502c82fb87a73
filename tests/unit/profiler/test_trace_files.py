"""Traces in a folder: whole, named after their worker, and never one over the other."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from devprof.errors import UsageError
from devprof.profiler import tensorboard_trace_handler

HERE = f"{socket.gethostname()}_{os.getpid()}"


class Trace:
    """Stands for a profile whose trace is ready."""

    def __init__(self, text: str = "{}") -> None:
        self.text = text
        self.paths: list[str] = []

    def export_chrome_trace(self, path: str) -> None:
        self.paths.append(path)
        Path(path).write_text(self.text, encoding="utf-8")


@pytest.fixture(autouse=True)
def _no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setitem(sys.modules, "torch.distributed", None)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_trace_is_named_after_host_process_and_time(tmp_path: Path) -> None:
    tensorboard_trace_handler(tmp_path / "a" / "b", now_ns=lambda: 17)(Trace())
    assert names(tmp_path / "a" / "b") == [f"{HERE}.17.pt.trace.json"]


def test_a_rank_is_in_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "3")
    tensorboard_trace_handler(tmp_path, now_ns=lambda: 17)(Trace())
    assert names(tmp_path) == [f"{HERE}_rank3.17.pt.trace.json"]


def test_compressed_traces_say_so_in_both_names(tmp_path: Path) -> None:
    trace = Trace()
    tensorboard_trace_handler(tmp_path, "w", use_gzip=True, now_ns=lambda: 17)(trace)
    assert names(tmp_path) == ["w.17.pt.trace.json.gz"]
    assert trace.paths[0].endswith(".json.gz")


def test_nothing_is_ever_overwritten_not_even_at_the_same_time_by_the_same_name(tmp_path: Path) -> None:
    for text in ("first", "second", "third"):
        tensorboard_trace_handler(tmp_path, "w", now_ns=lambda: 17)(Trace(text))
    found = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    assert found == {
        "w.17.pt.trace.json": "first",
        "w.18.pt.trace.json": "second",
        "w.19.pt.trace.json": "third",
    }


def test_a_file_that_another_worker_is_writing_is_left_alone(tmp_path: Path) -> None:
    class Slow(Trace):
        def export_chrome_trace(self, path: str) -> None:
            tensorboard_trace_handler(tmp_path, "w", now_ns=lambda: 17)(Trace("the other's"))
            super().export_chrome_trace(path)

    tensorboard_trace_handler(tmp_path, "w", now_ns=lambda: 17)(Slow("ours"))
    found = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    assert found == {"w.17.pt.trace.json": "ours", "w.18.pt.trace.json": "the other's"}


def test_viewers_see_a_trace_only_when_it_is_whole(tmp_path: Path) -> None:
    seen: list[list[str]] = []

    class Watched(Trace):
        def export_chrome_trace(self, path: str) -> None:
            super().export_chrome_trace(path)
            seen.append([name for name in names(tmp_path) if ".pt.trace.json" in name])

    tensorboard_trace_handler(tmp_path, "w")(Watched())
    assert seen == [[]]


def test_an_export_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    class Broken(Trace):
        def export_chrome_trace(self, path: str) -> None:
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        tensorboard_trace_handler(tmp_path, "w")(Broken())
    assert names(tmp_path) == []


def test_a_folder_that_cannot_be_made_is_the_users_to_mend(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(UsageError, match="the folder for traces cannot be made"):
        tensorboard_trace_handler(tmp_path / "file" / "folder")(Trace())


def test_a_worker_is_no_path(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="worker_name is 'a/b'"):
        tensorboard_trace_handler(tmp_path, "a/b")


def test_a_forked_child_writes_under_its_own_name(tmp_path: Path) -> None:
    code = f"""
import os
from devprof.profiler import tensorboard_trace_handler
class Trace:
    def export_chrome_trace(self, path):
        open(path, "w").close()
handler = tensorboard_trace_handler({str(tmp_path)!r})
handler(Trace())
child = os.fork()
handler(Trace()) if child == 0 else os.waitpid(child, 0)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    assert len({name.partition(".")[0] for name in names(tmp_path)}) == 2
