"""Mistakes of a plugin that make a trace which looks right: found in any session, and told at its end."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from devprof.capture import PluginLedger
from devprof.link import LaunchJoin, LinkCounts, nest
from devprof.link.columns import LAUNCH, Bools, Longs, codes_of_rows, longs, per_distinct
from devprof.link.linking import KnownOps
from devprof.model import ActivityBatch, ActivityType

__all__ = ["doubt_kinds", "doubt_launches", "doubt_numbers", "doubt_owners"]

_WELL_AFTER_NS = 10_000
"""A call that another one makes ends before it; this much more is no question of how well a clock is known."""

_CALLS = (ActivityType.PRIVATEUSE1_DRIVER, ActivityType.PRIVATEUSE1_RUNTIME)


def doubt_kinds(ledger: PluginLedger, batches: Sequence[ActivityBatch], join: LaunchJoin) -> None:
    """Say so where device work came under a kind that means a call of the host's: it then has no device time.

    A call has a thread and no device or resource, and does not begin when another one of its number is over. Beside right work,
    such as copies, only calls count that go on well after the call of their number, and whose number no work has.
    """
    if not len(join):
        return
    kinds = np.concatenate([batch.activity_type for batch in batches])
    calls = np.isin(kinds, [int(kind) for kind in _CALLS])
    work = join.on_device
    if work.any():
        ids = longs(batches, "id")
        like_work = calls & ~np.isin(ids, ids[work]) & _later_than_its_call(batches, calls, outlasts=True)
    else:
        placed = (longs(batches, "device") != 0) | (longs(batches, "resource") != 0)
        like_work = calls & (placed | _later_than_its_call(batches, calls, outlasts=False))
    if not like_work.any():
        return
    kind = ActivityType(int(kinds[np.flatnonzero(like_work)[0]])).name
    where = (
        "go on after the call of their number"
        if work.any()
        else "are on a device or begin when the call of their number is over"
    )
    ledger.doubts.append(
        f"it delivered {int(like_work.sum())} records of kind {kind} that {where}, and no device work of these numbers; "
        "work on a device is CONCURRENT_KERNEL, GPU_MEMCPY or GPU_MEMSET"
    )


def _later_than_its_call(batches: Sequence[ActivityBatch], calls: Bools, *, outlasts: bool) -> Bools:
    """Return which calls begin when an earlier one with their number is over, or (`outlasts`) end well after it, (n,)."""
    at = np.flatnonzero(calls)
    ids, start, end = (longs(batches, column)[at] for column in ("id", "start", "end"))
    order = np.lexsort((start, ids))
    before, after = order[:-1], order[1:]
    later = end[after] >= end[before] + _WELL_AFTER_NS if outlasts else start[after] >= end[before]
    found = np.zeros(len(calls), np.bool_)
    found[at[after]] = (ids[after] == ids[before]) & (ids[after] != 0) & later
    return found


def doubt_numbers(ledger: PluginLedger, batches: Sequence[ActivityBatch], join: LaunchJoin) -> None:
    """Say so where neither calls nor work carry any number: there are no arrows, and nothing belongs to anything."""
    calls, work = join.classes == LAUNCH, join.on_device
    if not calls.any() or not work.any():
        return
    ids, linked = longs(batches, "id"), longs(batches, "linked")
    if not ids[calls | work].any() and not linked[calls | work].any():
        ledger.doubts.append(
            f"its {int(calls.sum())} calls and {int(work.sum())} device records all carry `id` 0 and `linked` 0, so there are "
            "no arrows and no op has device time: `id` is the vendor's number of the launch, `linked` the op id at the launch"
        )


def doubt_launches(
    ledger: PluginLedger, batches: Sequence[ActivityBatch], join: LaunchJoin, known_ops: KnownOps | None
) -> bool:
    """Say so where several launches have one number, or where no work has its launch; return whether it was said.

    Args:
        ledger: gets the doubt.
        batches: records in the window, each once.
        join: their join.
        known_ops: as for `devprof.link.link`.
    """
    said = len(ledger.doubts)
    ids = longs(batches, "id")
    work = np.flatnonzero(join.on_device & (ids != 0))
    calls = np.flatnonzero((join.classes == LAUNCH) & (ids != 0))
    if not len(work) or not len(calls):
        return False
    if join.n_shared:
        _doubt_shared(ledger, batches, calls, work)
    elif known_ops is not None and (join.launch[work] < 0).all():
        _doubt_orphans(ledger, ids, calls, _of_known_ops(longs(batches, "linked"), work, known_ops))
    return len(ledger.doubts) > said


def _doubt_shared(ledger: PluginLedger, batches: Sequence[ActivityBatch], calls: Longs, work: Longs) -> None:
    """Look at calls of one kind and number, none within another on its thread, where several pieces of work could be theirs."""
    ids, start = longs(batches, "id"), longs(batches, "start")
    numbers, which, pieces = np.unique(ids[work], return_inverse=True, return_counts=True)
    last_ns = np.full(len(numbers), np.iinfo(np.int64).min)
    np.maximum.at(last_ns, which, start[work])
    at = np.minimum(np.searchsorted(numbers, ids[calls]), len(numbers) - 1)
    may_launch = (numbers[at] == ids[calls]) & (pieces[at] > 1) & (start[calls] < last_ns[at])
    calls = calls[may_launch]
    # a call of another kind below it, such as one of the driver, may be on another clock, and is part of the same launch
    launch = codes_of_rows(ids[calls], longs(batches, "activity_type")[calls])
    row = codes_of_rows(launch, longs(batches, "thread_id")[calls])
    outermost = nest(start[calls], longs(batches, "end")[calls], row, entered_in_order=False) < 0
    if again := int(outermost.sum()) - len(np.unique(launch)):
        ledger.doubts.append(
            f"{again} of its calls carry the number of an earlier call, and so does the work of several launches: "
            "which call launched which is a guess. `id` is the number of one launch in the whole session: where it is counted "
            "per queue, put the queue into it; where it wraps, make it longer"
        )


def _of_known_ops(ops: Longs, work: Longs, known_ops: KnownOps) -> Longs:
    """Leave out work of no op, and of ops from before the session, whose launches are not here."""
    work = work[ops[work] != 0]
    return work[per_distinct(ops[work], known_ops)]


def _doubt_orphans(ledger: PluginLedger, ids: Longs, calls: Longs, work: Longs) -> None:
    """Look at work of this session's ops; where records are lost, so may launches be."""
    if len(work) and not (ledger.lost or ledger.lost_unknown) and len(calls) >= len(np.unique(ids[work])):
        ledger.doubts.append(
            f"none of its {len(work)} numbered device records has the number of one of its {len(calls)} numbered calls, so "
            "there are no arrows: `id` is the vendor's number of the launch, the same on the call and on its work"
        )


def doubt_owners(ledger: PluginLedger, counts: LinkCounts) -> None:
    """Say so where work and its launch name different ops."""
    if counts.other_ops:
        ledger.doubts.append(
            f"{counts.other_ops} of its {counts.work} device records name another op in `linked` than the call with their "
            "number does: `id` is a number that several launches have, or `linked` was read at another time than the launch"
        )
