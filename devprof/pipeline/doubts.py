"""Mistakes of a plugin that make a trace which looks right: found in any session, and told at its end."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from devprof.capture import PluginLedger
from devprof.link import LaunchJoin
from devprof.link.columns import LAUNCH, longs
from devprof.model import ActivityBatch, ActivityType

__all__ = ["doubt_kinds", "doubt_numbers"]

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


def _later_than_its_call(
    batches: Sequence[ActivityBatch], calls: np.ndarray[tuple[int], np.dtype[np.bool_]], *, outlasts: bool
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
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
