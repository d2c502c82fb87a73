"""Whether native code writes a trace's events: where it is built, or worth building; else Python does."""

from __future__ import annotations

import ctypes
import functools
import logging
import os
from pathlib import Path

from devprof.errors import BuildError, UsageError
from devprof.export.build_spec import EXPORT
from devprof.export.native_library import library
from devprof.native import build, find, library_path

__all__ = ["BUILD_FROM_EVENTS", "native_writer"]

BUILD_FROM_EVENTS = 1_000_000
"""Events from which on building pays: it takes about as long as Python needs longer for so many, once per machine."""

_log = logging.getLogger("devprof.export")


def native_writer(switch: str, events: int) -> ctypes.CDLL | None:
    """Return the library of the native writers, None: Python is to write.

    It takes every trace where it is built; it is built here for a trace of `BUILD_FROM_EVENTS`, unless
    ``DEVPROF_BUILD=never``. A switch of ``native`` builds it for any trace and makes it an error that it cannot be had,
    ``python`` asks for none.

    Args:
        switch: name of the environment variable that decides.
        events: of the trace.

    Raises:
        UsageError: the switch holds another text.
        BuildError: the native writer is asked for and cannot be had.
    """
    wanted = os.environ.get(switch, "")
    if wanted not in ("", "native", "python"):
        raise UsageError(f"{switch} is {wanted!r}; expected 'native', 'python' or nothing")
    return None if wanted == "python" else _native(wanted, events)


def _native(wanted: str, events: int) -> ctypes.CDLL | None:
    try:
        if find(EXPORT) is None:
            if wanted != "native" and (events < BUILD_FROM_EVENTS or os.environ.get("DEVPROF_BUILD") == "never"):
                return None
            _build_once(library_path(EXPORT), os.environ.get("CXX", ""))
        return library(library_path(EXPORT))
    except BuildError as error:
        if wanted == "native":
            raise
        _log.info("the trace is written in Python, which takes longer: %s", error)
        return None


def _build_once(path: Path, compiler: str) -> None:
    if (error := _build_error(path, compiler)) is not None:
        raise error


@functools.cache
def _build_error(path: Path, compiler: str) -> BuildError | None:
    """Build, and return what went wrong; what failed once with these sources and this compiler is not tried again."""
    try:
        build(EXPORT)
    except BuildError as error:
        return error
    return None
