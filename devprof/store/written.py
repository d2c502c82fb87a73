"""Files that are whole or not there: written beside their name, then renamed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from devprof.errors import CaptureError, UsageError

__all__ = ["told_in_words", "written_whole"]


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

    Where the block raises, or the disk is full, nothing of it is left and an earlier file is untouched. The file has the
    permissions that a plain `open` would give it. A link is followed. A pipe or a device is written to as it is: it must not
    be replaced by a file.

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
    handle, name = tempfile.mkstemp(prefix=f".{target.name[:200]}.", suffix=".part", dir=target.parent)
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        part.chmod(_mode_of(target))
        part.replace(target)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise


def _mode_of(target: Path) -> int:
    with suppress(OSError):
        return target.stat().st_mode & 0o777
    umask = os.umask(0)  # there is no way to read it but to set it
    os.umask(umask)
    return 0o666 & ~umask
