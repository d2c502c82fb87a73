"""`process`: one plugin's delivery, through every stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from devprof.capture import UNKNOWN_OP, LaneResult, PluginLedger
from devprof.clock import Fit
from devprof.errors import DevprofError
from devprof.link import (
    AnnotationSpans,
    LaunchJoin,
    LinkCounts,
    LinkedColumns,
    LinkResult,
    RowOverlaps,
    SeparatedWork,
    WindowResult,
    annotation_spans,
    apply_window,
    duplicates,
    join_launches,
    link,
    may_hold_duplicates,
    overlapping_rows,
    separate_work,
    with_launch_items,
)
from devprof.link.linking import KnownOps
from devprof.model import ActivityBatch, DeviceInfo, ResourceInfo
from devprof.model.reasons import DELIVERED_TWICE
from devprof.pipeline.doubts import doubt_kinds, doubt_launches, doubt_numbers, doubt_owners

__all__ = ["KnownOps", "LinkedLane", "complete_since_ns", "process"]

_FAR_NS = 60 * 10**9
"""Work left over from before the window is seconds old; times of another unit or clock are off by hours to decades."""

_NOTES = {
    "unlinked": "unlinked",
    "unknown_ops": UNKNOWN_OP,
    "inherited": "id taken over from the launch or its work",
    "work_without_launch": "device work without a launch",
    "shared_numbers": "host record that shares a launch's number",
    "duplicate_starts": "second start of an arrow left out",
    "loose_ends": "arrow end without the other left out",
    "skewed": "device work before its launch",
}


@dataclass(frozen=True, slots=True)
class LinkedLane:
    """One plugin's records, ready for a trace.

    Attributes:
        name: name of the plugin.
        ledger: its account, with what linking found.
        batches: records in Unix ns, inside the window.
        columns: link columns, one entry per batch.
        spans: user ranges on devices.
        extra_rows: rows that linking added, with the offset.
        device_infos, resource_infos: what the plugin said of its rows, without the offset.
        device_properties: facts about its devices.
        metadata: facts about its capture.
        next_launch: first launch number that is free for the next plugin.
        device_offset: what was added to its device indices.
    """

    name: str
    ledger: PluginLedger
    batches: Sequence[ActivityBatch]
    columns: Sequence[LinkedColumns]
    spans: AnnotationSpans
    extra_rows: Sequence[ResourceInfo]
    device_infos: Sequence[DeviceInfo]
    resource_infos: Sequence[ResourceInfo]
    device_properties: Sequence[Mapping[str, object]]
    metadata: Mapping[str, object]
    next_launch: int
    device_offset: int = 0


def process(
    result: LaneResult,
    *,
    start_ns: int,
    end_ns: int,
    known_ops: KnownOps | None = None,
    user_parents: Mapping[int, int] | None = None,
    launch_base: int = 2**30,
    device_offset: int = 0,
    widened_by_ns: int = 1,
) -> LinkedLane:
    """Convert, window and link what one plugin delivered.

    Args:
        result: the delivery; its ledger is brought up to date.
        start_ns, end_ns: the capture window, Unix ns.
        known_ops: says of distinct op ids which ones the host recorded; None: the host records no ops, all are kept.
        user_parents: enclosing user range of each user id.
        launch_base: first launch number to give out.
        device_offset: added to device indices, so that two plugins' devices do not share a row.
        widened_by_ns: what the writer adds to both ends of an annotation span (1 for Kineto).
    """
    batches, uncertainty_ns = _on_host_clock(result, start_ns)
    join = join_launches(batches)
    doubt_kinds(result.ledger, batches, join)
    doubt_numbers(result.ledger, batches, join)
    if result.clock_domain is None or not result.clock_domain.virtual:
        window = apply_window(batches, join, start_ns, end_ns)
        _doubt_far_times(result.ledger, batches, join, window, (start_ns, end_ns))
        batches, join = window.apply(batches, join)
        result.ledger.dropped.update(window.dropped)
    batches, join, overlaps = _without_duplicates(result.ledger, batches, join)
    numbers_are_doubtful = doubt_launches(result.ledger, batches, join, known_ops)
    linked = link(
        batches,
        join,
        known_ops=known_ops,
        launch_base=launch_base,
        user_parents=user_parents,
        device_offset=device_offset,
        uncertainty_ns=uncertainty_ns,
    )
    batches = with_launch_items(batches, join, linked)
    if not numbers_are_doubtful:  # else this is what comes of it
        doubt_owners(result.ledger, linked.counts)
    separated = separate_work(batches, linked) if overlaps.n_crossing else SeparatedWork(batches)
    # after the separation, so that no two added rows get one number; a span covers its work on added rows too
    spans = annotation_spans(batches, linked, taken=separated.extra_rows, widened_by_ns=widened_by_ns)
    _account(result.ledger, batches, linked.counts)
    _note_overlaps(result.ledger, overlaps, spans)
    return _linked_lane(result, separated, linked, spans, device_offset)


def complete_since_ns(result: LaneResult, start_ns: int) -> int | None:
    """Return from when on a delivery has no gaps, Unix ns; None: nothing was let go, or its clock is virtual.

    Args:
        result: the delivery.
        start_ns: start of the capture window, Unix ns.
    """
    domain, found = result.clock_domain, []
    for clock, ticks in result.let_go_through.items():
        if domain is None or clock != domain.name:
            found.append(ticks)
        elif not domain.virtual:
            try:
                fit = Fit.from_samples(result.clock_samples, domain, session_start_ns=start_ns)
            except DevprofError:
                continue  # `process` says so, and leaves those records out
            found.append(int(fit.to_unix_ns(np.array([ticks], dtype=np.int64))[0]))
    return max(found) + 1 if found else None


def _doubt_far_times(
    ledger: PluginLedger,
    batches: Sequence[ActivityBatch],
    join: LaunchJoin,
    window: WindowResult,
    edges: tuple[int, int],
) -> None:
    """Say so where no device record is inside the window or near it: those times are in another unit, or of another clock."""
    work = join.on_device
    kept = np.concatenate([*window.masks, np.empty(0, dtype=np.bool_)])
    if not work.any() or kept[work].any():
        return
    start = np.concatenate([batch.start for batch in batches])[work]
    nearest_ns = int(np.maximum(edges[0] - start, start - edges[1]).min())
    if nearest_ns > _FAR_NS:
        ledger.doubts.append(
            f"none of its {len(start)} device records is inside the window, and the nearest is {_distance(nearest_ns)} away; "
            "most likely they are not Unix ns (microseconds, ticks, a monotonic clock?): hand over Unix ns, or return a "
            "ClockDomain from clock_domain()"
        )


def _distance(span_ns: int) -> str:
    hours = span_ns / 3.6e12
    return (
        f"{hours / 8766:.0f} years"
        if hours > 8766
        else f"{hours:.1f} hours"
        if hours >= 1
        else f"{hours * 60:.0f} minutes"
    )


def _linked_lane(
    result: LaneResult, separated: SeparatedWork, linked: LinkResult, spans: AnnotationSpans, device_offset: int
) -> LinkedLane:
    return LinkedLane(
        name=result.name,
        ledger=result.ledger,
        batches=separated.batches,
        columns=linked.columns,
        spans=spans,
        extra_rows=(*separated.extra_rows, *spans.extra_rows),
        device_infos=result.device_infos,
        resource_infos=result.resource_infos,
        device_properties=result.device_properties,
        metadata=result.metadata,
        next_launch=linked.next_id,
        device_offset=device_offset,
    )


def _on_host_clock(result: LaneResult, start_ns: int) -> tuple[list[ActivityBatch], int]:
    """Return the batches in Unix ns, and how far a converted time may be off."""
    domain = result.clock_domain
    ticking = [batch for batch in result.batches if domain is not None and batch.clock == domain.name]
    if domain is None or not ticking:
        return result.batches, 0
    try:
        fit = Fit.from_samples(result.clock_samples, domain, session_start_ns=start_ns)
    except DevprofError as error:
        return _without_ticks(result, str(error)), 0
    result.ledger.clock = fit.describe()
    converted = [
        batch.with_times(fit.to_unix_ns(batch.start), fit.to_unix_ns(batch.end))
        if batch.clock == domain.name
        else batch
        for batch in result.batches
    ]
    return converted, fit.uncertainty_ns


def _without_ticks(result: LaneResult, why: str) -> list[ActivityBatch]:
    """Leave out records whose ticks have no time, and say why."""
    kept = [batch for batch in result.batches if result.clock_domain and batch.clock != result.clock_domain.name]
    result.ledger.rejected["no clock sample to convert its ticks"] += sum(map(len, result.batches)) - sum(
        map(len, kept)
    )
    result.ledger.errors.append(why)
    return kept


def _without_duplicates(
    ledger: PluginLedger, batches: list[ActivityBatch], join: LaunchJoin
) -> tuple[list[ActivityBatch], LaunchJoin, RowOverlaps]:
    """Leave out records that were delivered twice, and count them; return what stays, its join and its overlaps."""
    overlaps = overlapping_rows(batches)
    if not may_hold_duplicates(join, overlaps):
        return batches, join, overlaps
    repeated = duplicates(batches)
    count = sum(int(mask.sum()) for mask in repeated)
    if not count:
        return batches, join, overlaps
    ledger.rejected[DELIVERED_TWICE] += count
    batches = [batch.take(~mask) for batch, mask in zip(batches, repeated, strict=True)]
    return batches, join_launches(batches), overlapping_rows(batches)


def _account(ledger: PluginLedger, batches: Sequence[ActivityBatch], counts: LinkCounts) -> None:
    ledger.emitted += sum(map(len, batches))
    ledger.device_work += counts.work
    ledger.linked += counts.linked
    for field, words in _NOTES.items():
        if count := getattr(counts, field):
            ledger.notes[words] += count


def _note_overlaps(ledger: PluginLedger, overlaps: RowOverlaps, spans: AnnotationSpans) -> None:
    found = {
        "work that runs into the next on its row": overlaps.n_overrun,
        "work that crosses another on its row": overlaps.n_crossing,
        "user range on a row of its own": spans.n_displaced,
    }
    ledger.notes.update({words: count for words, count in found.items() if count})
