"""`tensorboard_trace_handler`: write every trace that becomes ready into a folder.

Source: torch/profiler/profiler.py (`tensorboard_trace_handler`): same folder, same names, so the same viewers read them.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from devprof.errors import UsageError
from devprof.profiler.ranks import rank_here
from devprof.store import told_in_words

__all__ = ["Exporter", "tensorboard_trace_handler"]


class Exporter(Protocol):
    """What a handler gets: a `devprof.profile` or a `torch.profiler.profile`."""

    def export_chrome_trace(self, path: str) -> object:
        """Write the trace to `path`."""


def tensorboard_trace_handler(
    dir_name: str | os.PathLike[str],
    worker_name: str | None = None,
    use_gzip: bool = False,
    *,
    now_ns: Callable[[], int] = time.time_ns,
) -> Callable[[Exporter], None]:
    """Return a callback for `on_trace_ready` that writes ``WORKER.TIME.pt.trace.json`` into a folder.

    A file appears under its name only when it is whole, and no file is ever overwritten: not that of another rank, nor that of
    an earlier cycle.

    Args:
        dir_name: the folder; it is made when the first trace is ready.
        worker_name: what the worker is called; by default host name and process id, and the rank where there is one.
        use_gzip: compress; the name then ends in ``.gz``.
        now_ns: gives the time in the name, Unix ns.

    Raises:
        UsageError: the worker's name cannot be part of a file name; from the callback: the folder cannot be made, or
            may not be written to.
    """
    if worker_name and (not isinstance(worker_name, str) or Path(worker_name).name != worker_name):
        raise UsageError(f"worker_name is {worker_name!r}; it becomes part of a file name, so it cannot hold a '/'")
    if worker_name and "\0" in worker_name:
        raise UsageError(f"worker_name is {worker_name!r}; no file name can hold a NUL")

    def handler(prof: Exporter) -> None:
        folder = _made(Path(dir_name))
        with told_in_words(folder / "*.pt.trace.json"):
            partial, final = _reserve(
                folder, worker_name or _worker_here(), "json.gz" if use_gzip else "json", now_ns()
            )
        try:
            prof.export_chrome_trace(str(partial))
            partial.replace(final)
        except BaseException:
            with suppress(OSError):
                partial.unlink()
            raise

    return handler


def _worker_here() -> str:
    """Name this process; asked at every trace, because a fork has another id than its parent."""
    rank = rank_here()
    name = f"{socket.gethostname()}_{os.getpid()}"
    return name if rank is None else f"{name}_rank{rank.rank}"


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"the folder for traces cannot be made: {error}") from error
    return folder


def _reserve(folder: Path, worker: str, ending: str, time_ns: int) -> tuple[Path, Path]:
    """Return a name to write to and the final name, which nobody else has: the first file is what reserves the second."""
    while True:
        partial, final = (
            folder / f".{worker}.{time_ns}.partial.{ending}",
            folder / f"{worker}.{time_ns}.pt.trace.{ending}",
        )
        try:
            partial.touch(exist_ok=False)
        except FileExistsError:
            time_ns += 1
            continue
        if not final.exists():
            return partial, final
        partial.unlink()
        time_ns += 1
