"""Files that are whole or not there, where a file system can have nameless ones and where it cannot."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from devprof.errors import CaptureError
from devprof.store import told_in_words, written_whole

KILLED = """
import os, signal, sys
from devprof.store import written_whole
if sys.argv[2] == "named":
    import devprof.store.written as module
    module._without_name = lambda folder: None
with written_whole(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(params=["nameless", "named"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """Both kinds of file systems."""
    if request.param == "nameless" and not _has_nameless(tmp_path):
        pytest.skip("this file system has no files without a name")
    if request.param == "named":
        monkeypatch.setattr(os, "open", _refusing(os.open))
    return str(request.param)


def _has_nameless(folder: Path) -> bool:
    try:
        os.close(os.open(folder, os.O_RDWR | os.O_TMPFILE))
    except OSError:
        return False
    return True


def _refusing(real: Callable[..., int]) -> Callable[..., int]:
    def open_(path: str, flags: int, *more: int, **words: int) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, "not supported")
        return real(path, flags, *more, **words)

    return open_


def _in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.usefixtures("kind")
def test_a_file_takes_its_name_when_it_is_whole_with_the_rights_of_any_file(tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_bytes(b"earlier")
    path.chmod(0o640)
    with written_whole(path) as file, written_whole(tmp_path / "new") as other:
        file.write(b"later")
        other.write(b"x")
        assert path.read_bytes() == b"earlier"
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"later", 0o640)
    umask = os.umask(0o077)
    os.umask(umask)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o666 & ~umask
    assert _in(tmp_path) == ["new", "t"]


@pytest.mark.usefixtures("kind")
def test_what_raises_leaves_nothing(tmp_path: Path) -> None:
    with suppress(KeyboardInterrupt), written_whole(tmp_path / "t") as file:
        file.write(b"x")
        raise KeyboardInterrupt
    assert _in(tmp_path) == []


@pytest.mark.usefixtures("kind")
def test_a_name_as_long_as_names_can_be_is_written(tmp_path: Path) -> None:
    path = tmp_path / ("\N{GRINNING FACE}" * 63)
    with written_whole(path) as file:
        file.write(b"x")
    assert path.read_bytes() == b"x"


def test_a_process_that_is_killed_leaves_nothing_or_a_hidden_part(tmp_path: Path, kind: str) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED, tmp_path / "t", kind], check=False)
    assert killed.returncode == -signal.SIGKILL
    left = _in(tmp_path)
    assert len(left) == (1 if kind == "named" else 0)
    assert all(name.startswith(".t.") and name.endswith(".part") for name in left)


def test_the_umask_is_not_touched_while_other_threads_make_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("a file of another thread would be open to all"))
    with written_whole(tmp_path / "t") as file:
        file.write(b"x")


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A file system of 64 KiB, in a name space of its own where this user may have one."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small file system")
    with tempfile.TemporaryDirectory() as folder:
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], capture_output=True, text=True, check=False
        )
        if mounted.returncode:
            pytest.skip(f"no small file system can be mounted here: {mounted.stderr.strip()}")
        try:
            yield Path(folder)
        finally:
            subprocess.run(["umount", folder], check=True)


def _write(path: Path, size_bytes: int) -> None:
    with told_in_words(path), written_whole(path) as file:
        for _ in range(size_bytes // 4096):
            file.write(b"x" * 4096)


@pytest.mark.usefixtures("kind")
def test_a_disk_that_is_really_full_is_told_in_words_and_is_as_free_as_before(small_disk: Path) -> None:
    path = small_disk / "t"
    _write(path, 8192)
    with pytest.raises(CaptureError, match=rf"cannot write {path}: No space left on device"):
        _write(path, 1 << 20)
    assert (_in(small_disk), path.stat().st_size) == (["t"], 8192)
    _write(path, 40960)
    assert path.stat().st_size == 40960


def test_a_device_that_is_always_full_is_told_in_words_and_stays_a_device() -> None:
    with pytest.raises(CaptureError, match="cannot write /dev/full: No space left on device"):
        _write(Path("/dev/full"), 1 << 20)
    assert stat.S_ISCHR(Path("/dev/full").stat().st_mode)


def test_two_threads_that_write_one_name_leave_one_whole_file(tmp_path: Path) -> None:
    path, together = tmp_path / "t", threading.Barrier(2)

    def write(letter: bytes) -> None:
        with written_whole(path) as file:
            together.wait(60)
            file.write(letter * 10_000)

    threads = [threading.Thread(target=write, args=(letter,)) for letter in (b"a", b"b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_bytes() in (b"a" * 10_000, b"b" * 10_000)
    assert _in(tmp_path) == ["t"]
