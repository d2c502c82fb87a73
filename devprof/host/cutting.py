"""A part of a recording: since a time, or until one."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from devprof.host.recording import HostRecording
from devprof.model import ActivityBatch
from devprof.model.reasons import BEFORE_WINDOW

__all__ = ["since", "until"]

Flags = npt.NDArray[np.bool_]


def since(recording: HostRecording, ticks: int, reason: str = BEFORE_WINDOW) -> HostRecording:
    """Leave out ranges that ended before a time, and memory reports from before it.

    A range that was open at that time is kept with its true start: the later ones are in it. What was in one that is gone is in
    none.

    Args:
        recording: the whole.
        ticks: the time.
        reason: what the ranges and reports are counted under that are left out.
    """
    return _of(recording, recording.ranges.end >= ticks, recording.memory.start >= ticks, reason)


def until(recording: HostRecording, ticks: int, reason: str) -> HostRecording:
    """Leave out ranges and memory reports that began at a time or later; as `since`."""
    return _of(recording, recording.ranges.start < ticks, recording.memory.start < ticks, reason)


def _of(recording: HostRecording, ranges: Flags, memory: Flags, reason: str) -> HostRecording:
    kept = recording.ranges.take(ranges)
    ids = np.sort(kept.id)
    discarded = Counter(recording.discarded)
    if gone := int(np.count_nonzero(~ranges)) + int(np.count_nonzero(~memory)):
        discarded[reason] += gone
    return replace(
        recording,
        ranges=_linked(kept, ids),
        memory=_linked(recording.memory.take(memory), ids),
        discarded=discarded,
    )


def _linked(batch: ActivityBatch, ids: npt.NDArray[np.int64]) -> ActivityBatch:
    return replace(batch, linked=_known(batch.linked, ids), linked_user=_known(batch.linked_user, ids))


def _known(wanted: npt.NDArray[np.int64], ids: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    if not len(ids):
        return np.zeros_like(wanted)
    at = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
    return np.where(ids[at] == wanted, wanted, 0)
