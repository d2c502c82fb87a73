"""User ranges on devices: from the first to the last of the work that was launched under a range.

Kineto makes these spans for its own GPU profiler only (libkineto/src/GpuUserEventMap), never for a child profiler's records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from devprof.errors import UsageError
from devprof.link.columns import WORK, Bools, Longs, classes_of, distinct, longs, on_device
from devprof.link.linking import LinkResult
from devprof.link.overlaps import places_of, rows_by_place
from devprof.link.span_rows import cut_for_widening, edges_at, lanes_of, name_extra_rows
from devprof.link.spans import Spans, spans_of_work, with_enclosing
from devprof.model import ActivityBatch, ResourceInfo

__all__ = ["AnnotationSpans", "annotation_spans", "places_in_use"]


@dataclass(frozen=True, slots=True, eq=False)
class AnnotationSpans:
    """Spans of user ranges on devices. On one row two spans are nested or apart, never crossing, and outer ones come first.

    Attributes:
        user_id: (n,) int64, id of the range; its name is the host's to give.
        device: (n,) int32, device index, with the plugin's offset.
        resource: (n,) int64, the stream, or a row of its own where spans of two threads cross on the stream.
        start: (n,) int64, Unix ns.
        end: (n,) int64, Unix ns.
        extra_rows: rows that had to be added, with their names.
        n_displaced: spans on those rows.
    """

    user_id: Longs
    device: npt.NDArray[np.int32]
    resource: Longs
    start: Longs
    end: Longs
    extra_rows: tuple[ResourceInfo, ...] = ()
    n_displaced: int = 0

    def __len__(self) -> int:
        return len(self.user_id)


def annotation_spans(
    batches: Sequence[ActivityBatch],
    link_result: LinkResult,
    user_parents: Mapping[int, int] | None = None,
    *,
    taken: Sequence[ResourceInfo] = (),
    widened_by_ns: int = 1,
) -> AnnotationSpans:
    """Span each user range over the device work launched under it, on each (device, resource); so for enclosing ranges too.

    Args:
        batches: linked batches, in Unix ns.
        link_result: their links: user ids after inheritance, device indices with the offset.
        user_parents: enclosing user range of each user id, 0 or absent: none. None: those given to `link`.
        taken: rows that others have added already.
        widened_by_ns: what the writer will add to both ends of each span: 1 for Kineto, 0 for devprof's own exports. Where
            the gap to another span, or to other work, is too small for that, a span is cut by as much, so that what is written
            is the truth.

    Raises:
        UsageError: `widened_by_ns` is neither 0 nor 1.
    """
    if widened_by_ns not in (0, 1):
        raise UsageError(f"spans are widened by 0 or 1 ns, found {widened_by_ns}")
    users = _linked(link_result, "linked_user")
    is_work = classes_of(batches) == WORK
    rows = np.flatnonzero(is_work & (users != 0))
    if len(rows) == 0:
        return _nothing()
    device = _linked(link_result, "device")[rows]
    resource, start, end = (longs(batches, column)[rows] for column in ("resource", "start", "end"))
    places = places_of(device, resource)
    parents = link_result.user_parents if user_parents is None else user_parents
    work, ancestry = spans_of_work(users[rows], places, start, np.maximum(start, end), parents)
    spans = with_enclosing(work, ancestry)
    # any record of a place tells its device and resource
    record_at = np.zeros(int(places.max()) + 1, dtype=np.int64)
    record_at[places] = np.arange(len(places))
    if widened_by_ns:
        spans = _cut(spans, _held_by_work(batches, is_work, spans))
    order = np.lexsort((ancestry.depth[spans.user], -spans.end, spans.start, spans.place))
    spans = Spans(spans.user[order], spans.place[order], spans.start[order], spans.end[order])
    lanes = _lanes(spans, widened_by_ns)
    at = record_at[spans.place]
    device, resource = device[at], resource[at]
    extra: tuple[ResourceInfo, ...] = ()
    if lanes.any():
        in_use = places_in_use(batches, link_result) | {(row.device_id, row.id) for row in taken}
        resource, extra = _moved(device, resource, lanes, in_use)
    n_displaced = int(np.count_nonzero(lanes))
    users = ancestry.ids[spans.user]
    return AnnotationSpans(users, device.astype(np.int32), resource, spans.start, spans.end, extra, n_displaced)


def _held_by_work(batches: Sequence[ActivityBatch], is_work: Bools, spans: Spans) -> tuple[Bools, Bools]:
    """Say at which starts of spans other work ends, and at which ends other work starts: there is no room to widen.

    On a busy stream the work of one range follows right behind that of another, or of none. The row is not looked at: a span
    that is cut without need is still written as it was measured.
    """
    start, end = longs(batches, "start"), longs(batches, "end")
    return edges_at(spans.start, end[is_work]), edges_at(spans.end, start[is_work])


def _cut(spans: Spans, held: tuple[Bools, Bools]) -> Spans:
    """Return the spans with room for 1 ns on both sides, place by place."""
    start, end = spans.start.copy(), spans.end.copy()
    for rows in rows_by_place(spans.place):
        start[rows], end[rows] = cut_for_widening(start[rows], end[rows], (held[0][rows], held[1][rows]))
    return Spans(spans.user, spans.place, start, end)


def _lanes(spans: Spans, widened_by_ns: int) -> Longs:
    """Return the row of each span on its place, so that no two cross on a row once they are widened."""
    lanes = np.zeros(len(spans), dtype=np.int64)
    for rows in rows_by_place(spans.place):
        lanes[rows] = lanes_of(spans.start[rows] - widened_by_ns, spans.end[rows] + widened_by_ns)
    return lanes


def _moved(
    device: Longs, resource: Longs, lanes: Longs, taken: Set[tuple[int, int]]
) -> tuple[Longs, tuple[ResourceInfo, ...]]:
    """Put the spans of further lanes on rows of their own."""
    moved = np.flatnonzero(lanes)
    keys = [*zip(device[moved].tolist(), resource[moved].tolist(), lanes[moved].tolist(), strict=True)]
    rows = name_extra_rows(sorted(set(keys)), taken)
    resource = resource.copy()
    resource[moved] = [rows[key].id for key in keys]
    return resource, tuple(rows.values())


def places_in_use(batches: Sequence[ActivityBatch], result: LinkResult) -> set[tuple[int, int]]:
    """Return the (device, resource) pairs that any record uses."""
    used = np.flatnonzero(on_device(batches))
    device, resource = _linked(result, "device")[used], longs(batches, "resource")[used]
    places = places_of(device, resource)
    record_at = np.zeros(int(places.max()) + 1, dtype=np.int64)
    record_at[places] = np.arange(len(places))
    some = record_at[distinct(places)]
    return set(zip(device[some].tolist(), resource[some].tolist(), strict=True))


def _linked(result: LinkResult, column: str) -> Longs:
    arrays = [getattr(columns, column) for columns in result.columns]
    return np.concatenate(arrays or [[]]).astype(np.int64, copy=False)


def _nothing() -> AnnotationSpans:
    none = np.empty(0, dtype=np.int64)
    return AnnotationSpans(none, none.astype(np.int32), none, none, none)
