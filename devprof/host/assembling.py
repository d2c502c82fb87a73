"""`assembled`: what the queues of a session hold, as a `HostRecording`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from devprof.host.columns import close, range_columns
from devprof.host.memory_batch import memory_batch
from devprof.host.queues import Queue
from devprof.host.range_batch import range_batch
from devprof.host.recording import HOST_TICKS, HostRecording
from devprof.model import ActivityBatch

__all__ = ["Gathered", "assembled"]


@dataclass(frozen=True, slots=True)
class Gathered:
    """A session that is over.

    Attributes:
        queues: of all threads that took part.
        first_id: less than every id of the session, greater than those before.
        started_ticks, stopped_ticks: when recording began and ended.
    """

    queues: tuple[Queue, ...]
    first_id: int
    started_ticks: int
    stopped_ticks: int


def assembled(
    gathered: Gathered,
    functions: ActivityBatch | None,
    threads: Mapping[int, str],
    counts: Mapping[str, int],
    notes: tuple[str, ...],
) -> HostRecording:
    """Make the recording of a session, and close its queues: exits that come from now on are late.

    Args:
        gathered: the session.
        functions: what the function tracer recorded, None: nothing.
        threads: names of threads that others than the queues know.
        counts: what was left out already.
        notes: sentences for the reader.
    """
    columns = range_columns([close(queue) for queue in gathered.queues])
    discarded = dict(counts)
    if columns.half_entered:
        discarded["ranges that were being entered at the stop"] = columns.half_entered
    return HostRecording(
        ranges=range_batch(columns, gathered.queues, gathered.first_id, gathered.stopped_ticks),
        memory=memory_batch(gathered.queues, gathered.first_id, gathered.stopped_ticks),
        functions=_nothing() if functions is None else _until(functions, gathered.stopped_ticks),
        threads=_names(gathered.queues, threads),
        discarded=discarded,
        notes=notes,
        started_ticks=gathered.started_ticks,
        stopped_ticks=gathered.stopped_ticks,
    )


def _nothing() -> ActivityBatch:
    none = np.zeros(0, dtype=np.int64)
    return ActivityBatch.from_columns((), activity_type=none, name=none, start=none, end=none, clock=HOST_TICKS)


def _until(functions: ActivityBatch, stopped_ticks: int) -> ActivityBatch:
    """Return the calls before the stop; the tracer stops a little later."""
    before = functions.start <= stopped_ticks
    kept = functions if before.all() else functions.take(before)
    return replace(kept, end=np.minimum(kept.end, stopped_ticks))


def _names(queues: tuple[Queue, ...], others: Mapping[int, str]) -> dict[int, str]:
    names = dict(others)
    for queue in queues:
        # a native id may serve a second thread once the first has ended: the last one that has a name gives it
        if queue.thread_name or queue.native_id not in names:
            names[queue.native_id] = queue.thread_name
    return names
