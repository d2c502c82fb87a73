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
_COMMANDS = _DEVPROF + "cli"
"""A module of this folder is one command, and its function the outermost one of devprof's that runs."""


def tell(message: str, category: type[DevprofWarning]) -> None:
    """Issue a warning that points at the user's own line.

    Where warnings are errors it is logged instead: an exception out of a profiler's entry points would break the program that
    is profiled, and leave the profiler between two states.
    """
    frame, command = _users_frame()
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    file, line = (f"devprof {command}", 0) if command else (frame.f_code.co_filename, frame.f_lineno)
    try:
        warnings.warn_explicit(message, category, file, line, registry=registry)
    except category:
        log.warning(message)


def users_place() -> str:
    """Return what of the user's led here: ``"at file:line"``, or which command of devprof's."""
    frame, command = _users_frame()
    if command:
        return f"by `devprof {command}` (it profiles the whole program)"
    return f"at {frame.f_code.co_filename}:{frame.f_lineno}"


def _users_frame() -> tuple[FrameType, str]:
    """Return the user's frame, and the command where it is devprof's own: what called that is no line of the user's."""
    not_the_users = (_DEVPROF, *_torchs())
    frame = inner = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(not_the_users):
        inner, frame = frame, frame.f_back
    command = Path(inner.f_code.co_filename)
    return (inner, command.stem) if str(command.parent) == _COMMANDS else (frame, "")


def _torchs() -> tuple[str, ...]:
    """Return torch's folder where torch is there; nothing is imported for it."""
    where = getattr(sys.modules.get("torch"), "__file__", None)
    return () if where is None else (str(Path(where).parent) + os.sep,)
