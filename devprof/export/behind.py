"""Pieces of a file written by a thread of their own, while the next ones are made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import Queue
from threading import Thread

__all__ = ["behind"]

_PIECES_WAITING = 4  # enough to even out pieces that take longer, few enough to bound the memory


@contextmanager
def behind(write: Callable[[bytes | memoryview], object]) -> Iterator[Callable[[bytes | memoryview], object]]:
    """Give a function that takes pieces, in their order, for a thread that passes them to `write`.

    It waits where the thread is some pieces behind. When the block ends all are written. A piece is copied unless it is bytes.

    Args:
        write: called on the thread; what it raises is raised by the next call, or when the block ends.
    """
    writer = _Writer(write)
    try:
        writer.start()
    except RuntimeError:  # the program is ending, or has no more threads
        yield write
        return
    try:
        yield writer.put
    finally:
        writer.finish()
    writer.check()


class _Writer(Thread):
    """The thread."""

    def __init__(self, write: Callable[[bytes | memoryview], object]) -> None:
        super().__init__(name="devprof-writer", daemon=True)  # whoever waits for it keeps the program alive
        self._write = write
        self._pieces: Queue[bytes | None] = Queue(_PIECES_WAITING)
        self._error: BaseException | None = None

    def put(self, piece: bytes | memoryview) -> None:
        self.check()
        self._pieces.put(bytes(piece))  # bytes of bytes are themselves

    def finish(self) -> None:
        self._pieces.put(None)
        self.join()

    def check(self) -> None:
        if (error := self._error) is not None:
            raise error

    def run(self) -> None:
        while (piece := self._pieces.get()) is not None:
            if self._error is None:  # else what still comes is thrown away, so that nobody waits for room
                try:
                    self._write(piece)
                except BaseException as error:  # noqa: BLE001  # raised where the file is made
                    self._error = error
