"""Batches of waits for a device, and of events.

Source: libkineto/src/CuptiActivity.h for names and keys. A wait is the host's, and would overlap its stream's own work, so it
stands on a row beside the stream, as in Kineto; ``stream`` says which one it was, -1 for none.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import numpy.typing as npt

from cuda_cupti.decode import Records
from cuda_cupti.items import Items
from cuda_cupti.joins import Joins, Longs, Numbers
from cuda_cupti.layouts import ActivityKind
from cuda_cupti.rows import Rows
from cuda_cupti.times import stamped, timed
from devprof.model import ActivityBatch, ActivityType

__all__ = ["SYNC_KINDS", "SYNC_ROW", "events", "waits"]

SYNC_ROW = 1_000_000
"""Added to a stream's number for the row of waits, as Kineto does; a wait for no one stream is on the row below."""

SYNC_KINDS = ("Unknown Sync", "Event Sync", "Stream Wait Event", "Stream Sync", "Context Sync")
"""``CUpti_ActivitySynchronizationType`` from 0."""

_EVENT_SYNC, _STREAM_WAIT_EVENT = 1, 2
_NONE = 0xFFFFFFFF
_WRAPS_AT = 1 << 32


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
    rows = rows.take(stamped(rows["deviceTimestamp"], lost))
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


def _recordings(waits: Rows, recorded: Rows | None) -> Longs:
    """Return which recording each wait is for, (n,), -1 for none that is known.

    An event and its wait carry one number of CUPTI's, where it gives them one; else it is the last recording of that event, in
    that context, before the wait.
    """
    found = np.full(len(waits), -1, dtype=np.int64)
    if recorded is None or not len(recorded):
        return found
    on_event = np.flatnonzero(waits["cudaEventId"] != _NONE)
    found[on_event] = _by_number(waits["cudaEventSyncId"][on_event], recorded["cudaEventSyncId"])
    open_ones = on_event[found[on_event] < 0]
    found[open_ones] = _last_before(waits.ordered(open_ones), recorded)
    return found


def _by_number(wanted: Numbers, numbers: Numbers) -> Longs:
    """Return where each wanted number was given last, (n,), -1 for one that is no number or was not given."""
    order = np.argsort(numbers, kind="stable")
    at = np.searchsorted(numbers[order], wanted, side="right") - 1
    found: Longs = order[np.maximum(at, 0)]
    is_one = (wanted > 0) & (wanted != _NONE) & (at >= 0) & (numbers[found] == wanted)
    return np.where(is_one, found, -1)


def _last_before(waits: Rows, recorded: Rows) -> Longs:
    """Return the recording of each wait's event whose correlation id is the nearest below, (n,), -1 for none.

    Correlation ids are counted in 32 bits and wrap: what is less than half of that below is before.
    """
    events, of_recording = np.unique(_places(recorded, "eventId"), return_inverse=True)
    wanted = _places(waits, "cudaEventId")
    of_wait = np.minimum(np.searchsorted(events, wanted), len(events) - 1)
    places = of_recording.reshape(-1) * _WRAPS_AT + recorded["correlationId"]
    order = np.argsort(places, kind="stable")
    places = places[order]
    correlation = waits["correlationId"].astype(np.int64)
    at = np.searchsorted(places, of_wait * _WRAPS_AT + correlation, side="right") - 1
    wraps = places[np.maximum(at, 0)] // _WRAPS_AT != of_wait
    # none below: the highest number of that event is the nearest, counted around
    at = np.where(wraps | (at < 0), np.searchsorted(places, (of_wait + 1) * _WRAPS_AT) - 1, at)
    at = np.searchsorted(places, places[at])  # the first of equals
    before = (correlation - places[at] % _WRAPS_AT) % _WRAPS_AT < _WRAPS_AT // 2
    return np.where(before & (events[of_wait] == wanted), order[at], -1)


def _places(rows: Rows, event: str) -> npt.NDArray[np.uint64]:
    """Return context and event of each row as one number, (n,)."""
    return rows["contextId"].astype(np.uint64) << np.uint64(32) | rows[event]


def _taken(recorded: Rows | None, name: str, at: Longs) -> Longs:
    """Return a field of each wait's recording, (n,), -1 where none is known."""
    if recorded is None:
        return np.full(len(at), -1, dtype=np.int64)
    return np.where(at >= 0, recorded[name].astype(np.int64)[np.maximum(at, 0)], -1)


def _signed(numbers: npt.NDArray[np.uint32]) -> npt.NDArray[np.int64]:
    """Return numbers with -1 for CUPTI's "none", as Kineto prints it."""
    return np.where(numbers == _NONE, -1, numbers.astype(np.int64))
