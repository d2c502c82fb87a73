"""`SpillFile`: bytes that were in memory, in a file that nobody else sees, and mapped back."""

from __future__ import annotations

import mmap
import os
import tempfile
import threading
from collections.abc import Sequence

__all__ = ["SpillFile"]

_PAGE = mmap.ALLOCATIONGRANULARITY


class SpillFile:
    """A file without a name: it is gone with the last map of it, however the process ends. Usable from any thread.

    What is put there is mapped into memory, where the system keeps of it what it has room for. It is written first and mapped
    then, so that a full disk is an `OSError` here and not a signal later.
    """

    def __init__(self, directory: str | None = None) -> None:
        """Make an empty file.

        Args:
            directory: where; None: the system's directory for temporary files. That may be in memory.

        Raises:
            OSError: it cannot be made.
        """
        self._file = tempfile.TemporaryFile(dir=directory, prefix="devprof-")  # noqa: SIM115  # lives as long as this
        self._lock = threading.Lock()
        self._size_bytes = 0

    @property
    def size_bytes(self) -> int:
        """How long the file is."""
        return self._size_bytes

    def put(self, parts: Sequence[bytes | bytearray | memoryview]) -> list[memoryview]:
        """Write parts, and return each as a writable view of bytes of the file, in the same order.

        Raises:
            OSError: the disk is full or fails; nothing of the parts is in the file then.
        """
        views = [memoryview(part).cast("B") for part in parts]
        if not any(views):
            return [memoryview(bytearray()) for _ in views]
        # each part at a multiple of eight bytes: numbers are read there
        padded = [(view, bytes(-len(view) % 8)) for view in views]
        data = b"".join(piece for pair in padded for piece in pair)
        with self._lock:
            begin = self._size_bytes
            self._write(data, begin)
            self._size_bytes = begin + len(data) + -len(data) % _PAGE
        mapped = memoryview(mmap.mmap(self._file.fileno(), len(data), offset=begin))
        found, at = [], 0
        for view, padding in padded:
            found.append(mapped[at : at + len(view)])
            at += len(view) + len(padding)
        return found

    def _write(self, data: bytes, begin: int) -> None:
        left = memoryview(data)
        while left:
            left = left[os.pwrite(self._file.fileno(), left, begin + len(data) - len(left)) :]
