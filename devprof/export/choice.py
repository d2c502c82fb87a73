"""Which writer of Chrome JSON's events takes a trace: the native one where there is one, else the one in Python."""

from __future__ import annotations

import ctypes
import functools
import logging
import os
from collections.abc import Iterator
from pathlib import Path

from devprof.errors import BuildError, UsageError
from devprof.export.build_spec import CHROME
from devprof.export.events import event_texts
from devprof.export.native_events import library, native_event_texts
from devprof.export.placing import Placing
from devprof.native import build, find, library_path

__all__ = ["BUILD_FROM_EVENTS", "chosen_event_texts"]

BUILD_FROM_EVENTS = 1_000_000
"""Events from which on building pays: it takes about as long as Python needs longer for so many, once per machine."""

_SWITCH = "DEVPROF_JSON_WRITER"
_log = logging.getLogger("devprof.export")


def chosen_event_texts(placing: Placing) -> Iterator[bytes | memoryview]:
    """Yield the texts of a trace's events from the writer that fits; both write the same.

    The native one takes every trace where it is built; it is built here for a trace of `BUILD_FROM_EVENTS`, unless
    ``DEVPROF_BUILD=never``. ``DEVPROF_JSON_WRITER=native`` builds it for any trace and makes it an error that it cannot be
    had, ``python`` asks for none.

    Raises:
        UsageError: the switch holds another text.
        BuildError: the native writer is asked for and cannot be had.
    """
    wanted = os.environ.get(_SWITCH, "")
    if wanted not in ("", "native", "python"):
        raise UsageError(f"{_SWITCH} is {wanted!r}; expected 'native', 'python' or nothing")
    native = _native(wanted, len(placing.trace)) if wanted != "python" else None
    return event_texts(placing) if native is None else native_event_texts(native, placing)


def _native(wanted: str, events: int) -> ctypes.CDLL | None:
    try:
        if find(CHROME) is None:
            if wanted != "native" and (events < BUILD_FROM_EVENTS or os.environ.get("DEVPROF_BUILD") == "never"):
                return None
            _build_once(library_path(CHROME), os.environ.get("CXX", ""))
        return library(library_path(CHROME))
    except BuildError as error:
        if wanted == "native":
            raise
        _log.info("Chrome JSON is written in Python, which takes longer: %s", error)
        return None


def _build_once(path: Path, compiler: str) -> None:
    if (error := _build_error(path, compiler)) is not None:
        raise error


@functools.cache
def _build_error(path: Path, compiler: str) -> BuildError | None:
    """Build, and return what went wrong; what failed once with these sources and this compiler is not tried again."""
    try:
        build(CHROME)
    except BuildError as error:
        return error
    return None
