"""Where the sockets are: a private folder, one socket per process, named so that a reused process id finds no old one."""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from devprof.errors import UsageError

__all__ = ["Address", "address_of", "addresses", "check_private", "runtime_dir", "start_ticks", "sweep"]

_NAME = re.compile(r"(\d+)-(\d+)\.sock", re.ASCII)
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


def address_of(pid: int) -> Address | None:
    """Return where a process listens, if it does; None where there is no such process.

    Raises:
        UsageError: the folder's path is too long for a socket.
    """
    started = start_ticks(pid)
    if started is None:
        return None
    path = runtime_dir() / f"{pid}-{started}.sock"
    if len(os.fsencode(path)) > _LONGEST_ADDRESS:
        raise UsageError(
            f"{path} is longer than the {_LONGEST_ADDRESS} bytes that a socket's path may have; set DEVPROF_RUNTIME_DIR to a "
            "shorter folder, here and for `devprof attach`"
        )
    return Address(path, pid, started)


def check_private(folder: Path) -> None:
    """Refuse a folder that anybody else could look or write into.

    Raises:
        UsageError: it is a link, another user owns it, or others have access.
        OSError: it is not there.
    """
    facts = folder.lstat()
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
    found = [Address(folder / name, int(match[1]), int(match[2])) for name in names if (match := _NAME.fullmatch(name))]
    return [one for one in found if start_ticks(one.pid) == one.start_ticks]


def sweep() -> None:
    """Remove the sockets of processes that are gone. The folder must have been checked."""
    folder = runtime_dir()
    with suppress(OSError):
        for entry in folder.iterdir():
            match = _NAME.fullmatch(entry.name)
            if match and start_ticks(int(match[1])) != int(match[2]):
                with suppress(OSError):
                    entry.unlink()
