"""Mistakes of a plugin that make a trace which looks right: found in any session, and told at its end."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from devprof.capture import PluginLedger
from devprof.link import LaunchJoin
from devprof.link.columns import LAUNCH, longs
from devprof.model import ActivityBatch, ActivityType

__all__ = ["doubt_kinds", "doubt_numbers"]

_CALLS = (ActivityType.PRIVATEUSE1_DRIVER, ActivityType.PRIVATEUSE1_RUNTIME)


def doubt_kinds(ledger: PluginLedger, batches: Sequence[ActivityBatch], join: LaunchJoin) -> None:
    """Say so where device work came under a kind that means a call of the host's: it then has no device time.

    A call has a thread and no device or resource, and does not begin when another one of its number is over.
    """
    if join.on_device.any() or not len(join):
        return
    kinds = np.concatenate([batch.activity_type for batch in batches])
    calls = np.isin(kinds, [int(kind) for kind in _CALLS])
    like_work = calls & ((longs(batches, "device") != 0) | (longs(batches, "resource") != 0) | _follows(batches))
    if not like_work.any():
        return
    number = int(kinds[np.flatnonzero(like_work)[0]])
    ledger.doubts.append(
        f"it delivered no device work, and {int(like_work.sum())} records of kind {ActivityType(number).name} that are on a "
        "device or begin when the call of their number is over; work on a device is CONCURRENT_KERNEL, GPU_MEMCPY or GPU_MEMSET"
    )


def _follows(batches: Sequence[ActivityBatch]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return which records begin when an earlier one with their number is over."""
    ids, start, end = (longs(batches, column) for column in ("id", "start", "end"))
    order = np.lexsort((start, ids))
    same = np.zeros(len(ids), np.bool_)
    before, after = order[:-1], order[1:]
    same[after] = (ids[after] == ids[before]) & (ids[after] != 0) & (start[after] >= end[before])
    return same


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
