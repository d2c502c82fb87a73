"""Where the reports of torch sessions are kept, and how a user finds one."""

from __future__ import annotations

import logging
import os
import sys
import warnings
import weakref
from pathlib import Path
from typing import Any

import torch

import devprof
from devprof.capture import SessionReport
from devprof.errors import DevprofWarning, LossWarning, UsageError

__all__ = ["attach", "last_report", "report_of", "tell", "warn_if_lossy"]

log = logging.getLogger("devprof.torch")

_NOT_THE_USERS = tuple(str(Path(str(package.__file__)).parent) + os.sep for package in (torch, devprof))

_REPORTS: weakref.WeakKeyDictionary[Any, SessionReport] = weakref.WeakKeyDictionary()
_LAST: list[SessionReport] = []


def attach(profile: Any, report: SessionReport) -> None:
    """Keep the report of an autograd profile for as long as that object lives."""
    _REPORTS[profile] = report
    _LAST[:] = [report]


def report_of(prof: Any) -> SessionReport:
    """Return what devprof did during a profile.

    Args:
        prof: a `torch.profiler.profile` (its latest cycle is meant) or a `torch.autograd.profiler.profile`.

    Raises:
        UsageError: it is not a profile, has not recorded yet, or no devprof plugin took part in it.
    """
    profile = getattr(prof, "profiler", prof)
    try:
        return _REPORTS[profile]
    except (KeyError, TypeError):
        raise UsageError(
            f"no devprof report belongs to this {type(prof).__name__}: it has not finished, or no devprof plugin took part "
            "(activities must hold ProfilerActivity.PrivateUse1; `devprof doctor` says which plugins there are)"
        ) from None


def last_report() -> SessionReport | None:
    """Return the report of the latest session in this process, or None."""
    return _LAST[0] if _LAST else None


def warn_if_lossy(report: SessionReport) -> None:
    """Issue one warning where the report has something to say."""
    complaints = report.complaints(warned=False)
    if complaints:
        tell("devprof: " + "; ".join(complaints), LossWarning)


def tell(message: str, category: type[DevprofWarning]) -> None:
    """Issue a warning that points at the user's own line.

    Where warnings are errors it is logged instead: an exception out of a profiler's entry points would break the program that
    is profiled, and leave torch's profiler between two states.
    """
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_NOT_THE_USERS):
        frame = frame.f_back
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    try:
        warnings.warn_explicit(message, category, frame.f_code.co_filename, frame.f_lineno, registry=registry)
    except category:
        log.warning(message)
