"""`traced`: what a host recorded and its plugins delivered, as a trace and its account, at the stop or in between."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from devprof.capture import UNKNOWN_OP, LaneResult, SessionReport
from devprof.capture.ledger import HostLedger
from devprof.clock import HostClock
from devprof.contract import HOST_CLOCK
from devprof.host import HostRecording
from devprof.host.cutting import since
from devprof.model.reasons import LET_GO
from devprof.pipeline import assemble, complete_since_ns, known_ops, linked_lanes, user_parents
from devprof.store import Trace
from devprof.store.totals import NameTotal

__all__ = ["Made", "totals_of", "traced"]

_NO_EVENTS = "exits of an earlier session"
"""What a recording counts under this was never among its events."""

_OP_IS_GONE = "op before the window"


@dataclass(frozen=True, slots=True, eq=False)
class Made:
    """A trace, and when linking was done (`time.perf_counter_ns`)."""

    trace: Trace
    linked_ticks: int


def traced(
    recording: HostRecording,
    results: Sequence[LaneResult],
    report: SessionReport,
    *,
    clock: HostClock,
    facts: Mapping[str, object],
    may_lack_ops: bool,
) -> Made:
    """Convert, window, link and put together; the report is brought up to date, and is in the trace's facts.

    Where records were let go, the window begins when everything is there: what is in the trace has no gaps.

    Args:
        recording: the host's part.
        results: the plugins' deliveries; their ledgers are those of the report.
        report: the account, with the window.
        clock: of the recording's ticks.
        facts: JSON values for the trace.
        may_lack_ops: the host's part is not whole, so that work may name ops that are not in it.
    """
    recording = _whole(recording, results, report, clock)
    ops = known_ops(recording) if report.host_ops else None
    parents = user_parents(recording)
    lanes = list(linked_lanes(results, report, known_ops=ops, user_parents=parents, widened_by_ns=0))
    if may_lack_ops:
        _excuse(report)
    # work outside of every range is no mistake here, as it is where a framework records all its ops; wrong ids are
    report.host_ops &= any(ledger.notes[UNKNOWN_OP] for ledger in report.ledgers.values())
    report.host_events = _account(recording)
    linked_ticks = time.perf_counter_ns()
    account: dict[str, object] = {}  # `assemble` counts what it leaves out, so this is filled afterwards
    trace = assemble(
        recording,
        lanes,
        clock=clock,
        window_start_ns=report.start_ns,
        window_end_ns=report.end_ns,
        facts={**facts, "report": account},
    )
    report.complete = True
    account |= report.as_dict()
    return Made(trace, linked_ticks)


def totals_of(recording: HostRecording, results: Sequence[LaneResult]) -> list[NameTotal]:
    """Return sums per name over everything that was recorded, also what is not kept; the greatest first."""
    rows = [] if recording.totals is None else recording.totals.rows("host")
    for result in results:
        for name, totals in result.totals.items():
            domain = result.clock_domain
            is_ticks = domain is not None and name != HOST_CLOCK
            rows += totals.rows(result.name, 1e9 / domain.ticks_per_second if is_ticks and domain else 1.0)
    return sorted(rows, key=lambda row: (-row.total_ns, row.source, row.name))


def _whole(
    recording: HostRecording, results: Sequence[LaneResult], report: SessionReport, clock: HostClock
) -> HostRecording:
    """Let the window begin where the gaps of all sources end."""
    offset_ns = int(clock.to_unix_ns(np.zeros(1, dtype=np.int64))[0])
    found = [complete_since_ns(result, report.start_ns) for result in results]
    if recording.complete_since_ticks is not None:
        found.append(recording.complete_since_ticks + offset_ns)
    first_ns = max([report.start_ns, *(ns for ns in found if ns is not None)])
    if first_ns == report.start_ns:
        return recording
    report.start_ns = min(first_ns, report.end_ns)
    return since(recording, report.start_ns - offset_ns, LET_GO)


def _excuse(report: SessionReport) -> None:
    for ledger in report.ledgers.values():
        if strangers := ledger.notes.pop(UNKNOWN_OP, 0):
            ledger.notes[_OP_IS_GONE] += strangers


def _account(recording: HostRecording) -> HostLedger:
    ledger = HostLedger(sum(map(len, (recording.ranges, recording.memory, recording.functions))))
    ledger.dropped.update({reason: n for reason, n in recording.discarded.items() if n and reason != _NO_EVENTS})
    return ledger
