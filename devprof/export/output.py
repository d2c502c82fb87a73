"""The file that an exporter writes: whole or not there, packed where its name says so."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from devprof.store import told_in_words, written_whole

__all__ = ["GZIP_LEVEL", "output", "output_bytes"]

GZIP_LEVEL = 6
"""Level of gzip; torch's own files have level 9, which takes five times as long to be 14 % smaller."""


@contextmanager
def output(path: str | os.PathLike[str]) -> Iterator[Callable[[str], object]]:
    """Give a function that takes the file's text, piece by piece; see `output_bytes`."""
    with output_bytes(path) as write:
        yield lambda text: write(text.encode())


@contextmanager
def output_bytes(path: str | os.PathLike[str]) -> Iterator[Callable[[bytes | memoryview], object]]:
    """Give a function that takes the file's bytes, piece by piece.

    They are written beside the name and take it when the block ends; where the block raises, nothing is left and an earlier
    file is untouched. A name that ends with ``.gz`` is packed. A link is followed; a pipe or a device is written to as it is.

    Args:
        path: the file's name.

    Raises:
        UsageError: the directory does not exist, the name is a directory's, or it may not be written.
        CaptureError: the system could not write it, such as a full disk.
    """
    target = Path(os.fspath(path))
    with told_in_words(target), written_whole(target) as file, _packed(file, target) as packed:
        yield packed.write


@contextmanager
def _packed(file: IO[bytes], target: Path) -> Iterator[IO[bytes]]:
    if target.suffix != ".gz":
        yield file
        return
    # without a name and a time in it, equal traces make equal files
    with gzip.GzipFile(filename="", mode="wb", compresslevel=GZIP_LEVEL, fileobj=file, mtime=0) as packed:
        yield packed  # type: ignore[misc]  # a binary file in all that is used of it
