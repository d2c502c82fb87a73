"""Files that torch writes: whole or not there, though Kineto only logs what it could not write."""

from __future__ import annotations

import gzip
import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from devprof.errors import CaptureError, UsageError
from devprof.store import told_in_words, written_whole

__all__ = ["write_whole"]

_LONGEST_NAME = 60  # characters of a file's name in that of its folder, of four bytes each at most


def write_whole(write: Callable[[str], object], path: str) -> None:
    """Let torch write a Chrome trace beside its name, and give it that name when it is whole.

    A link is followed; a pipe or a device gets the bytes and stays what it is.

    Args:
        write: writes to a path that ends in ``.json``.
        path: the file's name; it is packed where that ends in ``.gz``.

    Raises:
        UsageError: the directory does not exist, or may not be written to.
        CaptureError: the file is not whole, such as where the disk is full; an earlier one is untouched then.
    """
    target = Path(os.path.realpath(path))
    is_file = target.is_file() or not target.exists()
    if not target.parent.is_dir():
        raise UsageError(f"cannot write {path}: there is no directory {target.parent}; make it first")
    # Kineto would rename a file of its own to a pipe's name, and torch looks at how the name ends
    folder = target.parent if is_file else None
    with (
        told_in_words(path),
        tempfile.TemporaryDirectory(prefix=f".{target.name[:_LONGEST_NAME]}.", dir=folder) as private,
    ):
        part = Path(private) / "trace.json"
        part.touch()
        write(str(part))
        if not _is_whole(part):
            raise CaptureError(f"cannot write {path}: torch could not write all of it; is the disk full?")
        if is_file and target.suffix != ".gz":
            part.replace(target)
        else:
            _copy(part, target)


def _is_whole(part: Path) -> bool:
    """Say whether a file ends as Kineto ends one."""
    with part.open("rb") as file:
        file.seek(max(part.stat().st_size - 64, 0))
        return file.read().rstrip().endswith(b"}")


def _copy(part: Path, target: Path) -> None:
    with written_whole(target) as file, part.open("rb") as source, ExitStack() as stack:
        packed = stack.enter_context(gzip.GzipFile("", "wb", fileobj=file)) if target.suffix == ".gz" else file
        shutil.copyfileobj(source, packed)
