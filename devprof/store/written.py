"""Files that are whole or not there: written beside their name, then renamed."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from devprof.errors import CaptureError, UsageError

__all__ = ["told_in_words", "written_whole"]

_LONGEST_NAME = 60
"""Characters of a file's name in the names of its parts: of four bytes each, they leave room for the rest of 255."""


@contextmanager
def told_in_words(path: str | os.PathLike[str]) -> Iterator[None]:
    """Say in devprof's words what the system refuses while a file is written.

    Args:
        path: the file's name.

    Raises:
        UsageError: it may not be written there.
        CaptureError: the system could not write it, such as a full disk.
    """
    try:
        yield
    except PermissionError as error:
        folder = Path(path).parent
        raise UsageError(f"cannot write {os.fspath(path)}: no permission to make a file in {folder}") from error
    except OSError as error:
        raise CaptureError(f"cannot write {os.fspath(path)}: {error.strerror or error}") from error


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Give a file to write; it takes its name when the block ends, and an earlier file of that name stays until then.

    Where the block raises, or the disk is full, nothing of it is left and an earlier file is untouched; of a process that is
    killed at most a hidden ``.NAME.*.part`` is left, and only where the file system has no files without a name. The file has
    the permissions that a plain `open` would give it. A link is followed. A pipe or a device is written to as it is: it must
    not be replaced by a file.

    Args:
        path: the file's name.

    Raises:
        UsageError: the directory does not exist, or the name is that of a directory.
        OSError: it cannot be written.
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise UsageError(f"cannot write {target}: there is no directory {target.parent}; make it first")
    if target.is_dir():
        raise UsageError(f"cannot write {target}: it is a directory; name a file in it")
    if target.exists() and not target.is_file():
        with target.open("wb") as file:
            yield file
        return
    target = Path(os.path.realpath(target))
    part = target.with_name(f".{target.name[:_LONGEST_NAME]}.{secrets.token_hex(4)}.part")
    try:
        with _new(part) as file:
            yield file
        part.chmod(_mode_of(target))
        part.replace(target)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise


@contextmanager
def _new(path: Path) -> Iterator[IO[bytes]]:
    """Give a new file, for this user only; when the block ends it is closed and has its name.

    Where the file system can, it has none until then: of a process that is killed nothing is left.
    """
    handle = _without_name(path.parent)
    if handle is None:
        with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            yield file
        return
    with os.fdopen(handle, "wb") as file:
        yield file
        file.flush()
        # a folder's number, which is not looked at here, makes Python follow the link
        os.link(f"/proc/self/fd/{handle}", path, src_dir_fd=handle, follow_symlinks=True)


def _without_name(folder: Path) -> int | None:
    """Open a file that has no name yet; None where the system or the file system has no such files."""
    flag = getattr(os, "O_TMPFILE", None)
    if flag is None or not Path("/proc/self/fd").exists():
        return None
    try:
        return os.open(folder, os.O_RDWR | flag, 0o600)
    except OSError as error:
        if error.errno in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT):
            return None
        raise


def _mode_of(target: Path) -> int:
    with suppress(OSError):
        return target.stat().st_mode & 0o777
    return 0o666 & ~_umask()


def _umask() -> int:
    """Return the process's umask, without setting it for an instant in which other threads make files."""
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("Umask:"):
                return int(line.split()[1], 8)
    umask = os.umask(0o077)
    os.umask(umask)
    return umask
