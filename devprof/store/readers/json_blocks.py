"""Blocks of a file's text, unpacked where the file is gzip, and no more of them than is allowed."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from devprof.errors import TraceFileError

__all__ = ["Blocks", "Progress"]

_GZIP = b"\x1f\x8b"
_BLOCK = 1 << 20
_FREE_BYTES = 1 << 28
_MOST_RATIO = 250
"""Text per packed byte: traces have 10 to 40; gzip can have 1000, which only a file has that is made to fill memory."""

Progress = Callable[[int, int], object]
"""Called with how many bytes of the file have been read, packed where it is packed, and how many it has."""


class Blocks:
    """Reads one file from start to end.

    Args:
        path: the file.
        max_bytes: most bytes of text, unpacked.
        progress: called after each of the file's blocks.

    Attributes:
        note: what cut the text short, if something did.
    """

    def __init__(self, path: Path, max_bytes: int, progress: Progress | None = None) -> None:
        self._path = path
        self._progress = progress
        self._max_bytes = max_bytes
        self._total = 0
        self._source = self._read()
        self.note = ""

    def take(self, size: int) -> list[bytes]:
        """Return blocks of `size` bytes or some more together, or of less where the text ends.

        Raises:
            TraceFileError: the file cannot be read, or holds more than is allowed.
        """
        taken: list[bytes] = []
        length = 0
        while length < size and (block := next(self._source, b"")):
            taken.append(block)
            length += len(block)
        self._total += length
        if self._total > self._max_bytes:
            raise TraceFileError(
                f"{self._path} holds more than {self._max_bytes} bytes of text, unpacked; if that is meant, raise max_bytes"
            )
        return taken

    def _read(self) -> Iterator[bytes]:
        try:
            with self._path.open("rb") as file:
                is_packed = file.read(len(_GZIP)) == _GZIP
                file.seek(0)
                size = os.fstat(file.fileno()).st_size
                blocks = self._unpacked(file) if is_packed else iter(lambda: file.read(_BLOCK), b"")
                for block in blocks:
                    if self._progress is not None:
                        self._progress(file.tell(), size)
                    if block:
                        yield block
        except OSError as error:
            raise TraceFileError(f"{self._path} cannot be read: {error.strerror or error}") from error

    def _refuse_bomb(self, packed_bytes: int) -> None:
        if self._total > _FREE_BYTES and self._total > _MOST_RATIO * max(packed_bytes, _BLOCK):
            raise TraceFileError(
                f"{self._path} unpacks to more than {_MOST_RATIO} times its size, as no trace does; if it is one, unpack it "
                "before (gunzip)"
            )

    def _unpacked(self, file: IO[bytes]) -> Iterator[bytes]:
        unpacker = zlib.decompressobj(wbits=31)
        try:
            while packed := unpacker.unconsumed_tail or file.read(_BLOCK):
                self._refuse_bomb(file.tell() - len(packed))
                yield unpacker.decompress(packed, _BLOCK)
                if unpacker.eof:
                    following = unpacker.unused_data + file.read(len(_GZIP))
                    if not following.startswith(_GZIP):  # zeros to fill up a block, or nothing
                        return
                    unpacker = zlib.decompressobj(wbits=31)  # gzip files may stand one behind the other
                    yield unpacker.decompress(following, _BLOCK)
        except zlib.error as error:
            self.note = f"the gzip stream is damaged: {error}"
            return
        self.note = "the gzip stream ends too early"
