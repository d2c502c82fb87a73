"""Rows for work that crosses other work of its stream: a viewer drops one of two slices that overlap partly on a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from devprof.link.columns import WORK, Longs, classes_of, longs, split
from devprof.link.linking import LinkResult
from devprof.link.overlaps import places_of, rows_by_place
from devprof.link.span_rows import lanes_of, name_extra_rows
from devprof.link.user_spans import places_in_use
from devprof.model import ActivityBatch, MetadataColumn, MetadataKind, ResourceInfo

__all__ = ["SeparatedWork", "separate_work"]

OWN_STREAM = "own stream"
"""Metadata key of work that stands on an added row: the stream that it ran on."""


@dataclass(frozen=True, slots=True, eq=False)
class SeparatedWork:
    """Batches whose work is nested or apart on each row.

    Attributes:
        batches: the records, on their rows.
        extra_rows: rows that had to be added, with their names.
        n_displaced: records on those rows.
    """

    batches: Sequence[ActivityBatch]
    extra_rows: tuple[ResourceInfo, ...] = ()
    n_displaced: int = 0


def separate_work(batches: Sequence[ActivityBatch], link_result: LinkResult) -> SeparatedWork:
    """Put work that crosses other work of its stream on a row beside it; its times stay, and it says where it ran.

    Streams work in order, so this is for records that say otherwise: a device's clock that jumped, a vendor's late end. To be
    called where `overlapping_rows` found crossings.

    Args:
        batches: linked batches, in Unix ns.
        link_result: their links; device indices with the offset.
    """
    work = np.flatnonzero(classes_of(batches) == WORK)
    device = np.concatenate([columns.device for columns in link_result.columns]).astype(np.int64)
    resource, start, end = (longs(batches, column) for column in ("resource", "start", "end"))
    lanes = np.zeros(len(resource), dtype=np.int64)
    for rows in rows_by_place(places_of(device[work], resource[work])):
        at = work[rows]
        ends = np.maximum(start[at], end[at])
        order = np.lexsort((-ends, start[at]))
        lanes[at[order]] = lanes_of(start[at[order]], ends[order])
    return _moved(batches, link_result, device, resource, lanes)


def _moved(
    batches: Sequence[ActivityBatch], link_result: LinkResult, device: Longs, resource: Longs, lanes: Longs
) -> SeparatedWork:
    moved = np.flatnonzero(lanes)
    keys = [*zip(device[moved].tolist(), resource[moved].tolist(), lanes[moved].tolist(), strict=True)]
    rows = name_extra_rows(sorted(set(keys)), places_in_use(batches, link_result), what="")
    placed = resource.copy()
    placed[moved] = [rows[key].id for key in keys]
    bounds = np.cumsum([0, *map(len, batches)]).tolist()
    parts = zip(batches, split(placed, bounds), split(lanes > 0, bounds), strict=True)
    return SeparatedWork(
        [_on_rows(batch, where, there) if there.any() else batch for batch, where, there in parts],
        tuple(rows.values()),
        len(moved),
    )


def _on_rows(batch: ActivityBatch, resource: Longs, moved: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> ActivityBatch:
    own = MetadataColumn(MetadataKind.INT, batch.resource, moved)
    return replace(batch, resource=resource, metadata={**batch.metadata, OWN_STREAM: own})
