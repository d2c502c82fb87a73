"""Warnings of devprof that point at the user's own line."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from pathlib import Path
from types import FrameType

import devprof
from devprof.errors import DevprofWarning

__all__ = ["tell", "users_place"]

log = logging.getLogger("devprof")

_DEVPROF = str(Path(devprof.__file__).parent) + os.sep


def tell(message: str, category: type[DevprofWarning]) -> None:
    """Issue a warning that points at the user's own line.

    Where warnings are errors it is logged instead: an exception out of a profiler's entry points would break the program that
    is profiled, and leave the profiler between two states.
    """
    frame = _users_frame()
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    try:
        warnings.warn_explicit(message, category, frame.f_code.co_filename, frame.f_lineno, registry=registry)
    except category:
        log.warning(message)


def users_place() -> str:
    """Return the user's own line that led here, as ``file:line``."""
    frame = _users_frame()
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _users_frame() -> FrameType:
    not_the_users = (_DEVPROF, *_torchs())
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(not_the_users):
        frame = frame.f_back
    return frame


def _torchs() -> tuple[str, ...]:
    """Return torch's folder where torch is there; nothing is imported for it."""
    where = getattr(sys.modules.get("torch"), "__file__", None)
    return () if where is None else (str(Path(where).parent) + os.sep,)
