"""The one folder that captures are written into, under names that are devprof's own."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from devprof.errors import UsageError

__all__ = ["Folder"]


class Folder:
    """Writes files into a folder: whole or not at all, over nothing that is there, never anywhere else.

    Args:
        path: the folder; it is made for the first capture, for this user only.
        now_ns: gives the time in the names, Unix ns.
    """

    def __init__(self, path: str | os.PathLike[str], now_ns: Callable[[], int] = time.time_ns) -> None:
        self.path = Path(path).absolute()  # the program may change its working directory
        self._now_ns = now_ns

    def write(self, ending: str, write: Callable[[Path], object]) -> Path:
        """Have a file written, and return where it is.

        Args:
            ending: end of its name.
            write: writes to the path it is given.

        Raises:
            UsageError: the folder cannot be made or written to.
            OSError: the disk is full, or the like; nothing is left behind.
        """
        with self._scratch() as inside:  # mode 0700 and a name that nobody can guess: no link can wait there
            partial = Path(inside) / f"trace{ending}"
            write(partial)
            return self._named(partial, ending)

    def check(self) -> None:
        """Say now what `write` would find out at the end: that nothing can be written here.

        Raises:
            UsageError: the folder cannot be made or written to.
        """
        self._scratch().cleanup()

    def _scratch(self) -> tempfile.TemporaryDirectory[str]:
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            return tempfile.TemporaryDirectory(prefix=".partial-", dir=self.path)
        except OSError as error:
            raise UsageError(f"the folder for captures cannot be written to: {error}") from error

    def _named(self, partial: Path, ending: str) -> Path:
        """Give a whole file its name; one that is taken is never replaced."""
        time_ns = self._now_ns()
        stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime(time_ns // 10**9))
        stem = f"{os.getpid()}-{stamp}.{time_ns % 10**9:09d}"
        for number in range(1000):
            final = self.path / (f"{stem}{ending}" if not number else f"{stem}-{number}{ending}")
            try:
                os.link(partial, final, follow_symlinks=False)
            except FileExistsError:
                continue
            except OSError:  # a file system without links
                if os.path.lexists(final):
                    continue
                partial.rename(final)
            return final
        raise UsageError(f"{self.path} holds a thousand captures of this very instant")
