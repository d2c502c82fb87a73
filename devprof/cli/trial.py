"""A short profile with each plugin, for ``devprof doctor --try``: who gives nothing, and why."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

from devprof.clock import Fit
from devprof.errors import DevprofError
from devprof.profiler import profile
from devprof.registry import RegisteredProfiler
from devprof.replay import Recorder

__all__ = ["tried"]


def tried(plugins: tuple[RegisteredProfiler, ...]) -> Iterator[tuple[str, bool, str]]:
    """Profile nothing with each plugin, under devprof's own host; yield its name, whether it is well, and a sentence."""
    for one in plugins:
        try:
            yield one.name, *_tried(one)
        except DevprofError as error:
            yield one.name, False, f"no session: {error}"


def _tried(one: RegisteredProfiler) -> tuple[bool, str]:
    with warnings.catch_warnings(), Recorder(one.profiler) as recorder:
        warnings.simplefilter("ignore")
        with profile(activities=["cpu", one.name], host="python") as prof:
            pass
    ledger = prof.report.ledgers[one.name]
    if ledger.failures:
        return False, f"set aside: {ledger.failures[0]}"
    if ledger.errors:
        return False, f"it says: {'; '.join(ledger.errors)}"
    (session,) = recorder.recording().sessions
    if session.refused:
        return False, "it sat out: configure() returned None"
    if session.domain is None:
        return True, "a session starts and stops; its times are Unix ns"
    fit = Fit.from_samples(session.samples, session.domain)
    doubts = "; ".join(fit.warnings)
    clock = f"clock {fit.domain.name!r} is known to {fit.uncertainty_ns} ns"
    return not doubts, f"a session starts and stops; its {clock}{f', but {doubts}' if doubts else ''}"
