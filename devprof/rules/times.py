"""Rules on times: durations, the window, cause before effect, and what stands on one row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from devprof.link import crossings
from devprof.model import ActivityType, Role
from devprof.rules.finding import Rule, Severity, Violation, accounts, where
from devprof.store import ROLES, ItemKind, Trace

__all__ = ["RULES"]

_FAR_NS = 60 * 10**9
_WORK = [ROLES.index(role) for role in (Role.KERNEL, Role.COPY, Role.SET)]


def work_of(trace: Trace) -> npt.NDArray[np.bool_]:
    """Return which events are work that occupies a device: (n,) bool."""
    return np.isin(trace.role, _WORK)


def _durations(trace: Trace) -> Iterator[Violation]:
    duration_ns = trace.duration_ns
    yield from where(
        duration_ns < 0,
        lambda n, at: f"{n} events end before they start; the first, {trace.name_of(at)!r}, by {-duration_ns[at]} ns",
    )


def _near_the_window(trace: Trace) -> Iterator[Violation]:
    if trace.window_end_ns <= trace.window_start_ns:
        return
    # by its end: of a long session's last seconds the ranges around them may have begun hours ago
    early, late = trace.window_start_ns - trace.end_ns, trace.start_ns - trace.window_end_ns
    away_ns = np.maximum(early, late)
    yield from where(
        away_ns > _FAR_NS,
        lambda n, at: (
            f"{n} events are more than a minute outside the capture window; the first, {trace.name_of(at)!r}, is "
            f"{away_ns[at] / 1e9:.0f} s away: another unit, another clock, or no time at all"
        ),
    )


def _cause_before_effect(trace: Trace) -> Iterator[Violation]:
    work = np.flatnonzero(work_of(trace) & (trace.parent >= 0))
    launch = trace.parent[work]
    early_ns = trace.start_ns[launch] - trace.start_ns[work]
    tolerated_ns = _uncertainty_ns(trace)
    mask = np.zeros(len(trace), dtype=np.bool_)
    mask[work[early_ns > tolerated_ns]] = True
    yield from where(
        mask,
        lambda n, at: (
            f"{n} device records start before what launched them, by more than the {tolerated_ns} ns that the "
            f"clocks may be off; the first is {trace.name_of(at)!r}"
        ),
    )


def _uncertainty_ns(trace: Trace) -> int:
    """Return how far the times of any plugin may be off, as the account of its clock says; 0 where nothing is said."""
    clocks = [account.get("clock") for account in accounts(trace).values()]
    said = [clock.get("uncertainty_ns") for clock in clocks if isinstance(clock, Mapping)]
    return max([0, *(int(value) for value in said if isinstance(value, int | float))])


def _no_crossings(trace: Trace) -> Iterator[Violation]:
    """Look at device work; ranges of asyncio tasks cross on their thread, and are right."""
    mask = np.zeros(len(trace), dtype=np.bool_)
    work = np.flatnonzero(work_of(trace))
    end_ns = np.maximum(trace.start_ns, trace.end_ns)
    order = work[np.lexsort((-end_ns[work], trace.start_ns[work], trace.row[work]))]
    for rows in np.split(order, np.flatnonzero(np.diff(trace.row[order])) + 1):
        mask[rows] = crossings(trace.start_ns[rows], end_ns[rows])
    yield from where(
        mask,
        lambda n, at: (
            f"{n} device records cross another on their row: start inside it and end after it; the first is "
            f"{trace.name_of(at)!r} on {trace.rows[trace.row[at]].name!r}. A viewer drops or misplaces those"
        ),
    )


def _no_overrun(trace: Trace) -> Iterator[Violation]:
    """A stream works in order, so nothing may start on it while an earlier piece of work runs."""
    mask = np.zeros(len(trace), dtype=np.bool_)
    work = np.flatnonzero(work_of(trace) & (trace.duration_ns > 0))
    order = work[np.lexsort((trace.end_ns[work], trace.start_ns[work], trace.row[work]))]
    same_row = trace.row[order[1:]] == trace.row[order[:-1]]
    mask[order[:-1][same_row & (trace.end_ns[order[:-1]] > trace.start_ns[order[1:]])]] = True
    yield from where(
        mask,
        lambda n, at: (
            f"{n} device records still run when the next one on their stream starts; the first is "
            f"{trace.name_of(at)!r} on {trace.rows[trace.row[at]].name!r}. Sums over that stream exceed its busy time"
        ),
    )


def _children_inside(trace: Trace) -> Iterator[Violation]:
    child = np.flatnonzero((trace.parent >= 0) & ~trace.on_device)
    parent = trace.parent[child]
    child, parent = child[trace.row[child] == trace.row[parent]], parent[trace.row[child] == trace.row[parent]]
    # a memory event may stand at the very end of its range
    outside = (trace.start_ns[child] < trace.start_ns[parent]) | (trace.start_ns[child] > trace.end_ns[parent])
    mask = np.zeros(len(trace), dtype=np.bool_)
    mask[child[outside]] = True
    yield from where(
        mask,
        lambda n, at: (
            f"{n} host events start outside the event that they are part of; the first is {trace.name_of(at)!r}"
        ),
    )


def _steps_in_order(trace: Trace) -> Iterator[Violation]:
    annotations = trace.of_type(ActivityType.USER_ANNOTATION)
    numbers = {
        i: int(text.partition("#")[2])
        for i, text in enumerate(trace.strings)
        if text.startswith("ProfilerStep#") and text[13:].isascii() and text[13:].isdigit()
    }
    steps = annotations[np.isin(trace.name[annotations], list(numbers))]
    order = steps[np.lexsort((trace.start_ns[steps], trace.row[steps]))]  # each rank of a merged trace counts its own
    counted = np.array([numbers[int(name)] for name in trace.name[order]], dtype=np.int64)
    mask = np.zeros(len(trace), dtype=np.bool_)
    mask[order[1:][(np.diff(counted) != 1) & (np.diff(trace.row[order]) == 0)]] = True
    yield from where(mask, lambda n, at: f"{n} steps do not follow the one before; the first is {trace.name_of(at)}")


def _syncs_wait(trace: Trace) -> Iterator[Violation]:
    """Look at the waits that say for what they waited, in Kineto's words."""
    kinds = trace.items.get("cuda_sync_kind")
    if kinds is None:
        return
    words = [trace.strings[int(value)] if kinds.kind is ItemKind.STRING else "" for value in kinds.values]
    of_stream, of_device = (
        np.array([text.startswith(w) for text in words]) for w in ("Stream Sync", ("Context", "Device"))
    )
    mask = np.zeros(len(trace), dtype=np.bool_)
    work = np.flatnonzero(work_of(trace))
    for syncs, where_from in ((kinds.events[of_stream], trace.row), (kinds.events[of_device], trace.place)):
        for number in np.unique(where_from[syncs]).tolist():
            here, waited = syncs[where_from[syncs] == number], work[where_from[work] == number]
            mask[here[_over_ns(trace, here, waited) > trace.end_ns[here] + _uncertainty_ns(trace)]] = True
    yield from where(
        mask,
        lambda n, at: (
            f"{n} waits end before the work that they waited for; the first is {trace.name_of(at)!r} on "
            f"{trace.rows[trace.row[at]].name!r}"
        ),
    )


def _over_ns(trace: Trace, syncs: npt.NDArray[np.int64], work: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return when all of the work is over that had begun when each wait did: (m,) int64, Unix ns."""
    order = work[np.argsort(trace.start_ns[work], kind="stable")]
    over_ns = np.concatenate([[np.iinfo(np.int64).min], np.maximum.accumulate(trace.end_ns[order])])
    return over_ns[np.searchsorted(trace.start_ns[order], trace.start_ns[syncs], "left")]


RULES = (
    Rule("times.durations", Severity.ERROR, "No event ends before it starts.", _durations),
    Rule("times.window", Severity.ERROR, "No event is far outside the capture window.", _near_the_window),
    Rule("times.cause", Severity.WARNING, "Device work does not start before its launch.", _cause_before_effect),
    Rule(
        "times.children", Severity.ERROR, "A host event starts inside the event that it is part of.", _children_inside
    ),
    Rule(
        "times.syncs",
        Severity.WARNING,
        "A wait for a stream or a device ends after the work it waited for.",
        _syncs_wait,
    ),
    Rule("times.steps", Severity.WARNING, "Steps follow each other.", _steps_in_order),
    Rule("rows.crossing", Severity.WARNING, "No two records of device work cross on a row.", _no_crossings),
    Rule("rows.serial", Severity.WARNING, "A stream does one piece of work at a time.", _no_overrun),
)
