"""Where the reports of sessions are kept, and how a user finds one."""

from __future__ import annotations

import weakref
from typing import Any

from devprof.capture.ledger import SessionReport
from devprof.capture.notices import tell
from devprof.errors import LossWarning, UsageError

__all__ = ["attach", "last_report", "report_of", "warn_if_lossy"]

_REPORTS: weakref.WeakKeyDictionary[Any, SessionReport] = weakref.WeakKeyDictionary()
_LAST: list[SessionReport] = []


def attach(profile: Any, report: SessionReport) -> None:
    """Keep the report of a profile for as long as that object lives."""
    _REPORTS[profile] = report
    _LAST[:] = [report]


def report_of(prof: Any) -> SessionReport:
    """Return what devprof did during a profile.

    Args:
        prof: a `devprof.profile` or a `torch.profiler.profile` (its latest cycle is meant), or a
            `torch.autograd.profiler.profile`.

    Raises:
        UsageError: it is not a profile, has not recorded yet, or no devprof plugin took part in it.
    """
    for candidate in (prof, getattr(prof, "profiler", None)):
        try:
            return _REPORTS[candidate]
        except (KeyError, TypeError):
            continue
    raise UsageError(
        f"no devprof report belongs to this {type(prof).__name__}: it has not finished, or no devprof plugin took part "
        "(torch.profiler: activities must hold ProfilerActivity.PrivateUse1; `devprof doctor` says which plugins there are)"
    ) from None


def last_report() -> SessionReport | None:
    """Return the report of the latest session in this process, or None."""
    return _LAST[0] if _LAST else None


def warn_if_lossy(report: SessionReport) -> None:
    """Issue one warning where the report has something to say."""
    complaints = report.complaints(warned=False)
    if complaints:
        tell("devprof: " + "; ".join(complaints), LossWarning)
