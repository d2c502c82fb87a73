"""Batches of waits for a device, and of events.

Source: libkineto/src/CuptiActivity.h for names and keys. A wait is the host's, and would overlap its stream's own work, so it
stands on a row beside the stream, as in Kineto; ``stream`` says which one it was, -1 for none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from cuda_cupti.decode import Records
from cuda_cupti.items import Items
from cuda_cupti.joins import Joins
from cuda_cupti.layouts import ActivityKind
from cuda_cupti.rows import Rows
from cuda_cupti.times import NO_TIMES, timed
from devprof.model import ActivityBatch, ActivityType

__all__ = ["SYNC_KINDS", "SYNC_ROW", "events", "waits"]

SYNC_ROW = 1_000_000
"""Added to a stream's number for the row of waits, as Kineto does; a wait for no one stream is on the row below."""

SYNC_KINDS = ("Unknown Sync", "Event Sync", "Stream Wait Event", "Stream Sync", "Context Sync")
"""``CUpti_ActivitySynchronizationType`` from 0."""

_EVENT_SYNC, _STREAM_WAIT_EVENT = 1, 2
_NONE = 0xFFFFFFFF
_WRAPS_AT = 1 << 32
_LATEST_NS = np.uint64(1 << 63)


def waits(records: Records, joins: Joins, lost: Counter[str]) -> list[ActivityBatch]:
    """Return the waits for streams, events and contexts, those for events joined with the recording of the event."""
    rows = records.of.get(ActivityKind.SYNCHRONIZATION)
    if rows is None:
        return []
    rows = rows.take(timed(rows, lost))
    kind = np.where(rows["type"] < len(SYNC_KINDS), rows["type"], 0).astype(np.int32)
    stream = _signed(rows["streamId"])
    items = Items()
    items.texts("cuda_sync_kind", kind)
    on_event = np.isin(kind, (_EVENT_SYNC, _STREAM_WAIT_EVENT))
    if on_event.any():
        recorded = _recordings(rows, joins.recordings)
        of_event = {name: _taken(joins.recordings, name, recorded) for name in ("streamId", "correlationId")}
        items.ints("wait_on_stream", of_event["streamId"], on_event)
        items.ints("wait_on_cuda_event_record_corr_id", of_event["correlationId"], on_event)
        items.ints("wait_on_cuda_event_id", _signed(rows["cudaEventId"]), on_event)
    items.ints("stream", stream)
    items.ints("context", rows["contextId"])
    correlation = rows["correlationId"]
    batch = ActivityBatch.from_columns(
        SYNC_KINDS,
        activity_type=ActivityType.CUDA_SYNC,
        name=kind,
        start=rows["start"].astype(np.int64),
        end=rows["end"].astype(np.int64),
        id=correlation,
        device=joins.device_of(rows["contextId"]),
        resource=stream + SYNC_ROW,
        thread_id=joins.thread.of(correlation),
        linked=joins.op.of(correlation),
        linked_user=joins.user.of(correlation),
        metadata=items.columns,
    )
    return [batch]


def events(records: Records, joins: Joins, lost: Counter[str]) -> list[ActivityBatch]:
    """Return the recordings of events, where the device passed them; 1 ns long, as in Kineto."""
    rows = records.of.get(ActivityKind.CUDA_EVENT)
    if rows is None:
        return []
    kept = (rows["deviceTimestamp"] > 0) & (rows["deviceTimestamp"] < _LATEST_NS)
    if not kept.all():
        lost[NO_TIMES] += int((~kept).sum())
    rows = rows.take(kept)
    correlation = rows["correlationId"]
    items = Items()
    items.ints("event_id", rows["eventId"])
    items.ints("stream", rows["streamId"])
    items.ints("correlation", correlation)
    items.ints("device", rows["deviceId"])
    items.ints("context", rows["contextId"])
    at = rows["deviceTimestamp"].astype(np.int64)
    batch = ActivityBatch.from_columns(
        ["cudaEvent"],
        activity_type=ActivityType.CUDA_EVENT,
        name=0,
        start=at,
        end=at + 1,
        id=correlation,
        device=rows["deviceId"].astype(np.int32),
        resource=rows["streamId"],
        thread_id=joins.thread.of(correlation),
        linked=joins.op.of(correlation),
        linked_user=joins.user.of(correlation),
        metadata=items.columns,
    )
    return [batch]


def _recordings(waits: Rows, recorded: Rows | None) -> npt.NDArray[np.int64]:
    """Return which recording each wait is for, (n,), -1 for none that is known.

    An event and its wait carry one number of CUPTI's, where it gives them one; else it is the last recording of that event, in
    that context, before the wait.
    """
    found = np.full(len(waits), -1, dtype=np.int64)
    if recorded is None:
        return found
    by_number = {number: at for at, number in enumerate(recorded["cudaEventSyncId"].tolist()) if 0 < number != _NONE}
    by_event: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for at, (context, event, correlation) in enumerate(_tuples(recorded, "contextId", "eventId", "correlationId")):
        by_event.setdefault((context, event), []).append((correlation, at))
    for row, (context, event, correlation, number) in enumerate(
        _tuples(waits, "contextId", "cudaEventId", "correlationId", "cudaEventSyncId")
    ):
        if event == _NONE:
            continue
        found[row] = by_number.get(number, -1)
        if found[row] < 0:
            found[row] = _last_before(by_event.get((context, event), []), correlation)
    return found


def _last_before(recordings: list[tuple[int, int]], correlation: int) -> int:
    """Return the recording whose correlation id is the nearest below, on a counter of 32 bits that wraps; -1 for none."""
    distances = [((correlation - own) % _WRAPS_AT, at) for own, at in recordings]
    distance, at = min(distances, default=(_WRAPS_AT, -1))
    return at if distance < _WRAPS_AT // 2 else -1


def _tuples(rows: Rows, *fields: str) -> Iterator[tuple[int, ...]]:
    return zip(*(rows[field].tolist() for field in fields), strict=True)


def _taken(recorded: Rows | None, name: str, at: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return a field of each wait's recording, (n,), -1 where none is known."""
    if recorded is None:
        return np.full(len(at), -1, dtype=np.int64)
    return np.where(at >= 0, recorded[name].astype(np.int64)[np.maximum(at, 0)], -1)


def _signed(numbers: npt.NDArray[np.uint32]) -> npt.NDArray[np.int64]:
    """Return numbers with -1 for CUPTI's "none", as Kineto prints it."""
    return np.where(numbers == _NONE, -1, numbers.astype(np.int64))
