"""`in_background`: an exporter on a thread of its own, so that whoever asks for the file goes on meanwhile."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

from devprof.capture import started
from devprof.store import Trace

__all__ = ["BackgroundExport", "in_background"]

_log = logging.getLogger("devprof.export")


class BackgroundExport:
    """A file that is being written.

    Attributes:
        path: the file, absolute; not there before it is whole.
    """

    def __init__(self, write: Callable[[], object], path: Path) -> None:
        self.path = path
        self._write = write
        self._error: BaseException | None = None
        # not a daemon: a program that ends meanwhile waits for its file
        self._thread = Thread(target=self._run, name=f"devprof-export {path.name}")
        if not started(self._thread):  # at the program's end there is nothing to go on with meanwhile
            self._run()

    @property
    def done(self) -> bool:
        """True once the file is whole, or there will be none; `wait` says which."""
        return not self._thread.is_alive()

    def wait(self, timeout_s: float | None = None) -> Path:
        """Wait until the file is whole, and return its path.

        Args:
            timeout_s: longest time to wait; None: as long as it takes.

        Raises:
            TimeoutError: it is not done yet; it goes on.
            BaseException: what the exporter raised, such as `UsageError` or `CaptureError`; every call raises it.
        """
        if not self.done:
            self._thread.join(timeout_s)
        if not self.done:
            raise TimeoutError(f"{self.path} is not written after {timeout_s} s; it is still being written")
        if self._error is not None:
            raise self._error
        return self.path

    def _run(self) -> None:
        try:
            self._write()
        except BaseException as error:  # noqa: BLE001  # raised by `wait`, in the thread that asks
            self._error = error
            _log.error("%s was not written: %s", self.path, error)  # nobody may ever wait


def in_background(
    write: Callable[..., object], trace: Trace, path: str | os.PathLike[str], **options: Any
) -> BackgroundExport:
    """Start to write a file on a thread of its own, and return at once.

    A trace does not change, so that the thread needs nothing of the caller. ::

        export = in_background(chrome_trace, trace, "trace.json.gz")
        ...
        export.wait()

    Args:
        write: an exporter of this room, such as `chrome_trace`.
        trace: the trace.
        path: the file's name; a relative one means the directory of now.
        options: further arguments of the exporter.
    """
    target = Path(os.fspath(path)).absolute()
    return BackgroundExport(lambda: write(trace, target, **options), target)
