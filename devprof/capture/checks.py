"""What a record must be to enter any trace; what is not goes to the ledger with a reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Set
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from devprof.model import ActivityBatch, ActivityType, MetadataKind, Role

__all__ = ["MEMORY_REPORT", "check_batch"]

MEMORY_REPORT = ActivityType.CPU_INSTANT_EVENT
"""The host's kind that a plugin may hand over too where it was asked for: a report of memory that its library gives late."""
_MEMORY_NAMES = ("[memory]", "[OutOfMemory]")
_MEMORY_KEYS = ("Bytes", "Device Type", "Device Id")

_HOST_OWNED = (
    ActivityType.CPU_OP,
    ActivityType.USER_ANNOTATION,
    ActivityType.CPU_INSTANT_EVENT,
    ActivityType.PYTHON_FUNCTION,
)
_NEVER_LINKED = tuple(t for t in ActivityType if t.role in (Role.ANNOTATION, Role.COUNTER))


def _table(types: Set[ActivityType] | tuple[ActivityType, ...]) -> npt.NDArray[np.bool_]:
    table = np.zeros(256, dtype=np.bool_)
    table[[int(t) for t in types]] = True
    return table


_KNOWN = _table(tuple(ActivityType))
_HOST = _table(_HOST_OWNED)
_UNLINKED = _table(_NEVER_LINKED)


def check_batch(batch: ActivityBatch, requested: Set[ActivityType]) -> tuple[ActivityBatch, Counter[str]]:
    """Return the records that a trace can hold, and the number of others by reason.

    Derived spans and counters lose their link: it would add their time to an op's device time a second time.

    Args:
        batch: as delivered; times on any clock.
        requested: kinds of activity that the session asked the plugin for; with `MEMORY_REPORT` where it profiles memory.
    """
    kind = batch.activity_type
    verdicts = (
        ("unknown activity type", ~_KNOWN[kind]),
        ("activity type reserved for the host", _HOST[kind] & ~_memory_reports(batch, requested)),
        ("activity type not requested", ~_table(requested)[kind]),
        ("no timestamp", (batch.start <= 0) & (batch.end <= 0)),
        ("negative duration", batch.end < batch.start),
        ("negative device index", batch.device < 0),
    )
    keep = np.ones(len(batch), dtype=np.bool_)
    rejected: Counter[str] = Counter()
    for reason, bad in verdicts:
        hit = bad & keep
        if count := int(np.count_nonzero(hit)):
            rejected[reason] = count
            keep &= ~hit
    kept = batch if not rejected else batch.take(keep)
    return _unlink(kept), rejected


def _memory_reports(batch: ActivityBatch, requested: Set[ActivityType]) -> npt.NDArray[np.bool_]:
    """Say which records are reports of memory that the session takes, (n,): with torch's names, and whole numbers for keys."""
    found: npt.NDArray[np.bool_] = batch.activity_type == MEMORY_REPORT
    if MEMORY_REPORT not in requested or not found.any():
        return np.zeros(len(batch), dtype=np.bool_)
    found &= np.array([text in _MEMORY_NAMES for text in batch.strings], dtype=np.bool_)[batch.name]
    for key in _MEMORY_KEYS:
        column = batch.metadata.get(key)
        if column is None or column.kind is not MetadataKind.INT:
            return np.zeros(len(batch), dtype=np.bool_)
        if column.present is not None:
            found &= column.present
    return found


def _unlink(batch: ActivityBatch) -> ActivityBatch:
    derived = _UNLINKED[batch.activity_type]
    if not derived.any():
        return batch
    return replace(
        batch, linked=np.where(derived, 0, batch.linked), linked_user=np.where(derived, 0, batch.linked_user)
    )
