"""Where the sockets are: a private folder, one socket per process, named so that a reused process id finds no old one."""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from devprof.errors import UsageError

__all__ = [
    "Address",
    "address_of",
    "addresses",
    "check_private",
    "make_private",
    "owner_of",
    "runtime_dir",
    "start_ticks",
    "sweep",
]

_NAME = re.compile(r"(\d+)-(\d+)-(\d+)\.sock", re.ASCII)  # process, start, where it has that number
_LONGEST_ADDRESS = 107  # bytes that a Unix socket's path may have


class Address(NamedTuple):
    """A process's socket.

    Attributes:
        path: the socket.
        pid: the process.
        start_ticks: when it started, in the kernel's ticks since boot: pid and start are never given out twice.
    """

    path: Path
    pid: int
    start_ticks: int


def runtime_dir() -> Path:
    """Return the folder of sockets: ``$DEVPROF_RUNTIME_DIR``, else one of this user's in ``/tmp``.

    Both sides must find it from a login shell, a service and a job alike, so nothing else of the environment has a say.
    """
    chosen = os.environ.get("DEVPROF_RUNTIME_DIR")
    return (
        Path(chosen).absolute() if chosen else Path("/tmp") / f"devprof-{os.geteuid()}"
    )  # `check_private` is asked before it is used


def start_ticks(pid: int) -> int | None:
    """Return when a process started, or None where there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    # the name in brackets may hold anything, brackets as well; start time is the 22nd field
    return int(text.rpartition(b")")[2].split()[19])


def _numbering() -> int:
    """Return which name space this process has its number in: containers may share the folder, and not their processes."""
    try:
        return Path("/proc/self/ns/pid").stat().st_ino
    except OSError:  # a kernel without name spaces
        return 0


def owner_of(pid: int) -> int | None:
    """Return which user a process runs as, or None where there is no such process.

    The owner of ``/proc/PID`` would not do: that is root where the process cannot be looked into.
    """
    try:
        text = Path(f"/proc/{pid}/status").read_bytes()
    except OSError:
        return None
    found = re.search(rb"^Uid:\s+\d+\s+(\d+)", text, re.MULTILINE)  # real, effective
    return None if found is None else int(found[1])


def address_of(pid: int) -> Address | None:
    """Return where a process listens, if it does; None where there is no such process.

    Raises:
        UsageError: the folder's path is too long for a socket.
    """
    started = start_ticks(pid)
    if started is None:
        return None
    path = runtime_dir() / f"{pid}-{started}-{_numbering()}.sock"
    if len(os.fsencode(path)) > _LONGEST_ADDRESS:
        raise UsageError(
            f"{path} is longer than the {_LONGEST_ADDRESS} bytes that a socket's path may have; set DEVPROF_RUNTIME_DIR to a "
            "shorter folder, here and for `devprof attach`"
        )
    return Address(path, pid, started)


def make_private(folder: Path) -> None:
    """Make a folder for this user only; one that is there must be that.

    Raises:
        UsageError: it cannot be made, or anybody else could look or write into it.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except FileExistsError:
        pass  # a file, or a link to nowhere: refused below
    except OSError as error:
        raise UsageError(
            f"the folder of sockets cannot be made: {error}. Set DEVPROF_RUNTIME_DIR to a folder of your own"
        ) from error
    check_private(folder)


def check_private(folder: Path) -> None:
    """Refuse a folder that anybody else could look or write into.

    Raises:
        UsageError: it is a link, another user owns it, others have access, or this user may not even look.
        OSError: it is not there.
    """
    try:
        facts = folder.lstat()
    except PermissionError as error:
        raise UsageError(f"the folder of sockets, {folder}, is not this user's: {error}") from error
    if stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.geteuid() and not facts.st_mode & 0o077:
        return
    raise UsageError(
        f"{folder} is owned by user {facts.st_uid} with mode {stat.filemode(facts.st_mode)}; expected a directory of user "
        f"{os.geteuid()} with mode drwx------. Remove it, or set DEVPROF_RUNTIME_DIR to a folder of your own"
    )


def addresses() -> list[Address]:
    """Return the sockets of living processes.

    Raises:
        UsageError: the folder is not private.
    """
    folder = runtime_dir()
    try:
        check_private(folder)
        names = sorted(entry.name for entry in folder.iterdir())
    except FileNotFoundError:
        return []
    found = (_ours(folder / name) for name in names)
    return [one for one in found if one is not None and start_ticks(one.pid) == one.start_ticks]


def sweep() -> None:
    """Remove the sockets of processes that are gone. The folder must have been checked."""
    with suppress(OSError):
        for path in runtime_dir().iterdir():
            one = _ours(path)
            if one is not None and start_ticks(one.pid) != one.start_ticks:
                with suppress(OSError):
                    path.unlink()


def _ours(path: Path) -> Address | None:
    """Return what a socket's name says; None for other files, and for another container's sockets."""
    match = _NAME.fullmatch(path.name)
    if match is None or int(match[3]) != _numbering():
        return None
    return Address(path, int(match[1]), int(match[2]))
