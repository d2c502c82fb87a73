"""`assembled`: what the queues of a session hold, as a `HostRecording`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from devprof.host.columns import Closed, close, copied, range_columns
from devprof.host.cutting import since, until
from devprof.host.keeping import Gone, Keeper
from devprof.host.memory_batch import memory_batch
from devprof.host.queues import OPEN, Queue
from devprof.host.range_batch import range_batch
from devprof.host.recording import HOST_TICKS, HostRecording
from devprof.model import ActivityBatch
from devprof.model.reasons import BEFORE_WINDOW, LET_GO, OVER_LIMIT

__all__ = ["Gathered", "Part", "assembled", "at_end", "so_far"]


Part = tuple[Queue, list[Closed]]
"""A queue, whose texts and rows are read, and what was in its blocks."""


@dataclass(frozen=True, slots=True)
class Gathered:
    """What the queues of a session held when it ended, or hold now.

    Attributes:
        parts: what is kept; the parts of one thread in their order.
        first_id: less than every id of the session, greater than those before.
        started_ticks, stopped_ticks: when recording began, and ended or is looked at.
        left_out: ranges that ended before the time asked for, and were not copied.
        gone: what a keeper knows of events that are not here; None: there is no keeper.
    """

    parts: Sequence[Part]
    first_id: int
    started_ticks: int
    stopped_ticks: int
    left_out: int = 0
    gone: Gone | None = None


def at_end(queues: Sequence[Queue], keeper: Keeper | None) -> tuple[list[Part], Gone | None]:
    """Take everything out of the queues of a session that is over: exits that come from now on are late."""
    if keeper is None:
        return [(queue, close(queue)) for queue in queues], None
    with keeper.lock:
        parts = [*keeper.remains.open_ranges(), *((queue, close(queue)) for queue in keeper.queues())]
        gone = keeper.gone()
        keeper.close()
    return parts, gone


def so_far(queues: Sequence[Queue], keeper: Keeper | None, since_ticks: int) -> tuple[list[Part], Gone | None, int]:
    """Copy what is in the queues, which go on being filled.

    Args:
        queues: the session's, where it has no keeper.
        keeper: the keeper.
        since_ticks: full blocks may be left out whose ranges all ended before.

    Returns:
        The parts, what is gone, and how many ranges were left out.
    """
    if keeper is None:
        copies = [(*copied(queue.blocks_now(), since_ticks), queue) for queue in list(queues)]
        # the texts behind the blocks: they name whatever is in those
        return [(queue.copied(), blocks) for blocks, _, queue in copies], None, sum(n for _, n, _ in copies)
    with keeper.lock:  # nobody gets a new chunk meanwhile, so the blocks are only taken note of
        parts = [(queue.copied(), blocks) for queue, blocks in keeper.remains.open_ranges()]
        queues, left_out = keeper.queues_since(since_ticks)
        held = [(queue.blocks_now(), queue.copied()) for queue in queues]
        gone = keeper.gone()
    for blocks, queue in held:
        closed, early = copied(blocks, since_ticks)
        parts.append((queue, closed))
        left_out += early
    return parts, gone, left_out


def assembled(
    gathered: Gathered,
    functions: ActivityBatch | None,
    threads: Mapping[int, str],
    counts: Mapping[str, int],
    notes: tuple[str, ...],
) -> HostRecording:
    """Make the recording of a session, or of what there is of it so far.

    Args:
        gathered: the session.
        functions: what the function tracer recorded, None: nothing.
        threads: names of threads that others than the queues know.
        counts: what was left out already.
        notes: sentences for the reader.
    """
    queues, gone = [queue for queue, _ in gathered.parts], gathered.gone
    columns = range_columns([closed for _, closed in gathered.parts])
    discarded = Counter(counts)
    discarded.update({} if gone is None else gone.dropped)
    if columns.half_entered:
        discarded["ranges that were being entered at the stop"] = columns.half_entered
    if gathered.left_out:
        discarded[BEFORE_WINDOW] += gathered.left_out
    ranges = range_batch(columns, queues, gathered.first_id, gathered.stopped_ticks)
    recording = HostRecording(
        ranges=ranges,
        memory=memory_batch(queues, gathered.first_id, gathered.stopped_ticks),
        functions=_nothing() if functions is None else _until(functions, gathered.stopped_ticks),
        threads=_names(queues, threads),
        discarded=dict(discarded),
        notes=notes,
        started_ticks=gathered.started_ticks,
        stopped_ticks=gathered.stopped_ticks,
    )
    return recording if gone is None else _without_gaps(recording, gone)


def _without_gaps(recording: HostRecording, gone: Gone) -> HostRecording:
    """Leave out what lies in or beyond a gap, and say from when on everything is there."""
    ranges, totals = recording.ranges, gone.totals
    if totals is not None:
        totals.add(ranges.strings, ranges.name, ranges.activity_type, ranges.end - ranges.start)
    if gone.full_ticks is not None:
        recording = until(recording, gone.full_ticks, OVER_LIMIT)
    first = None
    if gone.through_ticks != OPEN:
        first = gone.through_ticks + 1
        recording = since(recording, first, LET_GO)
    return replace(recording, totals=totals, complete_since_ticks=first)


def _nothing() -> ActivityBatch:
    none = np.zeros(0, dtype=np.int64)
    return ActivityBatch.from_columns((), activity_type=none, name=none, start=none, end=none, clock=HOST_TICKS)


def _until(functions: ActivityBatch, stopped_ticks: int) -> ActivityBatch:
    """Return the calls before the stop; the tracer stops a little later."""
    before = functions.start <= stopped_ticks
    kept = functions if before.all() else functions.take(before)
    return replace(kept, end=np.minimum(kept.end, stopped_ticks))


def _names(queues: Sequence[Queue], others: Mapping[int, str]) -> dict[int, str]:
    names = dict(others)
    for queue in queues:
        # a native id may serve a second thread once the first has ended: the last one that has a name gives it
        if queue.thread_name or queue.native_id not in names:
            names[queue.native_id] = queue.thread_name
    return names
