"""A bar for reads that take long: in a terminal only, and only once a read has taken a while."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

__all__ = ["reading"]

_PATIENCE_S = 1.0
_BETWEEN_S = 0.1


@contextmanager
def reading(
    path: Path, *, console: Console | None = None, seconds: Callable[[], float] = time.monotonic
) -> Iterator[Callable[[int, int], object] | None]:
    """Give what a reader shall call with the bytes read and the bytes that there are; None where nobody watches.

    Args:
        path: what is read.
        console: where to draw; by default stderr, where that is a terminal.
        seconds: the clock.
    """
    if console is None and not sys.stderr.isatty():
        yield None
        return
    bar = _Bar(path, Console(stderr=True) if console is None else console, seconds)
    try:
        yield bar.show
    finally:
        bar.close()


class _Bar:
    def __init__(self, path: Path, console: Console, seconds: Callable[[], float]) -> None:
        self._seconds = seconds
        self._next = seconds() + _PATIENCE_S
        columns = (TextColumn("reading {task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
        self._progress = Progress(*columns, console=console, transient=True, auto_refresh=False, get_time=seconds)
        self._task = self._progress.add_task(path.name.replace("[", "\\["), total=None)

    def show(self, done: int, size: int) -> None:
        """Draw how far it is, where it is time to."""
        now = self._seconds()
        if now < self._next:
            return
        self._next = now + _BETWEEN_S
        self._progress.start()
        self._progress.update(self._task, completed=done, total=size, refresh=True)

    def close(self) -> None:
        """Take the bar away."""
        self._progress.stop()
