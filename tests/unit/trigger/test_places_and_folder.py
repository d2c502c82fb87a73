"""Where sockets and traces are: private, and under names that nobody else can choose."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from devprof.errors import UsageError
from devprof.trigger.folder import Folder
from devprof.trigger.places import (
    address_of,
    addresses,
    check_private,
    make_private,
    owner_of,
    runtime_dir,
    start_ticks,
    sweep,
)

NUMBERING = Path("/proc/self/ns/pid").stat().st_ino
NOW_NS = 1_700_000_000_000_000_042


def _put(path: Path) -> None:
    path.write_bytes(b"trace")


def test_a_reused_process_id_has_another_address(sockets: Path) -> None:
    address = address_of(os.getpid())
    assert address is not None
    assert address.path == sockets / f"{os.getpid()}-{start_ticks(os.getpid())}-{NUMBERING}.sock"
    assert start_ticks(os.getpid()) != start_ticks(1)


def test_a_process_whose_name_looks_like_fields_has_its_start_read(tmp_path: Path) -> None:
    program = tmp_path / ") R 1 1"
    program.symlink_to("/bin/sleep")
    with subprocess.Popen([program, "30"]) as process:
        try:
            assert (start_ticks(process.pid) or 0) >= (start_ticks(os.getpid()) or 0) > 0
        finally:
            process.kill()


def test_sockets_of_processes_that_are_gone_are_not_listed_and_are_swept(sockets: Path) -> None:
    sockets.mkdir(mode=0o700)
    mine = f"{os.getpid()}-{start_ticks(os.getpid())}-{NUMBERING}.sock"
    for name in (mine, f"{os.getpid()}-1-{NUMBERING}.sock", f"4194305-7-{NUMBERING}.sock", "notes.txt"):
        (sockets / name).touch()
    assert [one.path.name for one in addresses()] == [mine]
    sweep()
    assert {path.name for path in sockets.iterdir()} == {mine, "notes.txt"}


def test_sockets_of_another_container_that_has_the_same_folder_are_left_alone(sockets: Path) -> None:
    sockets.mkdir(mode=0o700)
    for name in (theirs := {"4194305-7-1.sock", f"{os.getpid()}-{start_ticks(os.getpid())}-1.sock"}):
        (sockets / name).touch()
    assert addresses() == []
    sweep()
    assert {path.name for path in sockets.iterdir()} == theirs


@pytest.mark.parametrize("there", ["a link to nowhere", "a file"])
def test_what_cannot_be_a_folder_of_sockets_is_refused_in_words(sockets: Path, there: str) -> None:
    if there == "a file":
        sockets.touch()
    else:
        sockets.symlink_to("nowhere")
    with pytest.raises(UsageError, match="expected a directory of user"):
        make_private(sockets)
    assert not (sockets.parent / "nowhere").exists()


def test_a_folder_of_sockets_that_cannot_be_made_is_told_in_words() -> None:
    with pytest.raises(UsageError, match=r"the folder of sockets cannot be made: .* Set DEVPROF_RUNTIME_DIR"):
        make_private(Path("/proc/devprof"))


def test_a_process_has_the_owner_that_it_runs_as_also_where_it_cannot_be_looked_into() -> None:
    assert owner_of(os.getpid()) == os.geteuid()
    assert owner_of(2**22 + 1) is None
    hide = "import ctypes, os; ctypes.CDLL(None).prctl(4, 0); print(os.stat('/proc/self').st_uid, flush=True); input()"
    hidden = subprocess.Popen([sys.executable, "-c", hide], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with hidden:
        assert hidden.stdout is not None
        assert hidden.stdout.readline() == b"0\n"  # the kernel says root
        assert owner_of(hidden.pid) == os.geteuid()


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701, 0o704])
def test_a_folder_that_others_can_enter_is_refused(sockets: Path, mode: int) -> None:
    sockets.mkdir()
    sockets.chmod(mode)
    with pytest.raises(
        UsageError, match=r"expected a directory of user .* with mode drwx------. Remove it, or set DEVPROF_R"
    ):
        check_private(sockets)


def test_a_link_to_a_private_folder_is_refused(sockets: Path, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    sockets.symlink_to(tmp_path / "real")
    with pytest.raises(UsageError, match="expected a directory"):
        check_private(sockets)


def test_a_folder_of_another_user_is_refused(sockets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sockets.mkdir(mode=0o700)
    monkeypatch.setattr(os, "geteuid", lambda: 4242)
    with pytest.raises(UsageError, match="is owned by user"):
        check_private(sockets)


def test_a_path_too_long_for_a_socket_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DEVPROF_RUNTIME_DIR", str(tmp_path / ("x" * 100)))
    with pytest.raises(UsageError, match="set DEVPROF_RUNTIME_DIR to a shorter folder"):
        address_of(os.getpid())


def test_without_a_choice_the_folder_is_this_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DEVPROF_RUNTIME_DIR")
    assert runtime_dir() == Path(f"/tmp/devprof-{os.geteuid()}")


def test_names_hold_process_and_time_and_nothing_is_ever_replaced(tmp_path: Path) -> None:
    folder = Folder(tmp_path, lambda: NOW_NS)
    first, second = folder.write(".devprof", _put), folder.write(".devprof", _put)
    stem = f"{os.getpid()}-20231114T221320.000000042"
    assert [first.name, second.name] == [f"{stem}.devprof", f"{stem}-1.devprof"]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([first.name, second.name])


def test_a_link_that_waits_under_the_name_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    folder = Folder(tmp_path / "traces", lambda: NOW_NS)
    folder.path.mkdir()
    (folder.path / f"{os.getpid()}-20231114T221320.000000042.devprof").symlink_to(victim)
    written = folder.write(".devprof", _put)
    assert (victim.read_bytes(), written.read_bytes(), written.is_symlink()) == (b"precious", b"trace", False)


def test_a_trace_that_cannot_be_written_whole_leaves_nothing(tmp_path: Path) -> None:
    def fails(path: Path) -> None:
        path.write_bytes(b"half")
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        Folder(tmp_path).write(".devprof", fails)
    assert list(tmp_path.iterdir()) == []


def test_the_folder_stays_where_it_was_when_the_program_moves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = Folder("traces")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    assert folder.write(".json", _put).parent == tmp_path / "traces"
