"""`SpillFile`: bytes that were in memory, in a file that nobody else sees, and mapped back."""

from __future__ import annotations

import mmap
import os
import tempfile
import threading
import weakref
from collections.abc import Sequence

__all__ = ["SpillFile"]

_FIRST_BYTES, _MOST_BYTES = 4 << 20, 256 << 20
"""Sizes of the first stretch of the file and of later ones: each takes a file descriptor, so they grow."""
_PAGE = mmap.ALLOCATIONGRANULARITY


class SpillFile:
    """A file without a name: it is gone with the last map of it, however the process ends. Usable from any thread.

    What is put there is mapped into memory, where the system keeps of it what it has room for. The room on the disk is taken
    before it is written to, so that a full disk is an `OSError` here and not a signal later.
    """

    def __init__(self, directory: str | None = None) -> None:
        """Make an empty file.

        Args:
            directory: where; None: the system's directory for temporary files. That may be in memory.

        Raises:
            OSError: it cannot be made.
        """
        with tempfile.TemporaryFile(dir=directory, prefix="devprof-") as file:
            self._fd = os.dup(file.fileno())
        weakref.finalize(self, os.close, self._fd)
        self._lock = threading.Lock()
        self._size_bytes = 0
        self._stretch = memoryview(b"")
        self._next = _FIRST_BYTES

    @property
    def size_bytes(self) -> int:
        """How long the file is."""
        return self._size_bytes

    def put(self, parts: Sequence[bytes | bytearray | memoryview]) -> list[memoryview]:
        """Write parts, and return each as a writable view of bytes of the file, in the same order.

        Raises:
            OSError: the disk is full or fails; nothing of the parts is in the file then.
        """
        given = [memoryview(part) for part in parts]
        views = [view.cast("B") if view.nbytes else memoryview(b"") for view in given]
        sizes = [len(view) + -len(view) % 8 for view in views]  # numbers are read there, at multiples of eight bytes
        with self._lock:
            room = self._room(sum(sizes))
        found, at = [], 0
        for view, size in zip(views, sizes, strict=True):
            place = room[at : at + len(view)]
            place[:] = view
            found.append(place)
            at += size
        return found

    def _room(self, size_bytes: int) -> memoryview:
        if size_bytes > len(self._stretch):
            length = max(self._next, size_bytes + -size_bytes % _PAGE)
            _take_room(self._fd, self._size_bytes, length)
            self._stretch = memoryview(mmap.mmap(self._fd, length, offset=self._size_bytes))
            self._size_bytes += length
            self._next = min(2 * self._next, _MOST_BYTES)
        room, self._stretch = self._stretch[:size_bytes], self._stretch[size_bytes:]
        return room


def _take_room(fd: int, begin: int, length: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(fd, begin, length)
        return
    zeros = bytes(1 << 20)
    for at in range(begin, begin + length, len(zeros)):
        os.pwrite(fd, zeros[: begin + length - at], at)
