"""Items that name a launch by its number: the numbers that launches get here are carried into them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from devprof.link.columns import LAUNCH, Bools, Longs, bounds_of, codes_of, longs, split
from devprof.link.join import LaunchJoin
from devprof.link.linking import LinkResult
from devprof.model import ActivityBatch, MetadataColumn, MetadataKind

__all__ = ["LAUNCH_ITEMS", "NOT_RECORDED", "with_launch_items"]

LAUNCH_ITEMS = ("wait_on_cuda_event_record_corr_id", "correlation")
"""Kineto's keys whose values are launch numbers: of the call that recorded an event, and of a record's own call."""

_NO_LAUNCH = -1
"""What Kineto writes where the event was recorded before the capture."""
NOT_RECORDED = 2**32 - 1
"""What CUPTI gives in its place."""


def with_launch_items(batches: Sequence[ActivityBatch], join: LaunchJoin, linked: LinkResult) -> list[ActivityBatch]:
    """Return the batches with launch numbers of the session where items had the plugin's own.

    A number that no record has becomes -1, as for a call from before the capture: it would name another launch else.

    Args:
        batches: as given to `link`.
        join: their join.
        linked: what `link` found.
    """
    keys = [key for key in LAUNCH_ITEMS if any(_has(batch, key) for batch in batches)]
    if not keys:
        return list(batches)
    return [
        replace(batch, metadata={**batch.metadata, **renamed})
        for batch, renamed in zip(batches, _renamed(batches, keys, join, linked), strict=True)
    ]


def _renamed(
    batches: Sequence[ActivityBatch], keys: Sequence[str], join: LaunchJoin, linked: LinkResult
) -> list[dict[str, MetadataColumn]]:
    found: list[dict[str, MetadataColumn]] = [{} for _ in batches]
    before, after = longs(batches, "id"), np.concatenate([columns.id for columns in linked.columns])
    for key in keys:
        columns = [(at, batch.metadata[key]) for at, batch in enumerate(batches) if _has(batch, key)]
        values = np.concatenate([column.values for _, column in columns]).astype(np.int64)
        moved = _moved(values, before, after, join.classes == LAUNCH)
        bounds = bounds_of([batches[at] for at, _ in columns])
        for (at, column), part in zip(columns, split(moved, bounds), strict=True):
            found[at][key] = replace(column, values=part)
    return found


def _moved(values: Longs, before: Longs, after: Longs, is_call: Bools) -> Longs:
    """Return the new number of each value: that of the call which had it, else of any record; -1 of one that none had."""
    codes, of_value = codes_of(before, values)
    new = np.full(int(codes.max(initial=-1)) + 1, _NO_LAUNCH, dtype=np.int64)
    for rows in (np.flatnonzero(before != 0), np.flatnonzero(is_call & (before != 0))):
        new[codes[rows[::-1]]] = after[rows[::-1]]
    known = (of_value >= 0) & (of_value < len(new))
    moved = np.where(known, new[np.where(known, of_value, 0)], _NO_LAUNCH) if len(new) else np.full_like(values, -1)
    return np.where((values > 0) & (values != NOT_RECORDED), moved, values)


def _has(batch: ActivityBatch, key: str) -> bool:
    return key in batch.metadata and batch.metadata[key].kind is MetadataKind.INT
