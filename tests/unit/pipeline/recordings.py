"""A host recording by hand, a clock with a known distance, and a trace as plain values."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from devprof.clock import HostClock
from devprof.host import HOST_TICKS, HostRecording
from devprof.model import ActivityBatch, ActivityType, GenericTraceActivity
from devprof.store import Trace

T = ActivityType
AT_ZERO_NS = 1_000_000
MAIN, WORKER = 11, 22


def clock() -> HostClock:
    """Tick 0 is `AT_ZERO_NS`."""
    return HostClock.started(lambda: 0, lambda: AT_ZERO_NS, name=HOST_TICKS)


def op(
    name: str, start: int, end: int, id: int, linked: int = 0, *, thread: int = MAIN, **items: object
) -> GenericTraceActivity:
    return _host(T.CPU_OP, name, start, end, id, linked, thread, items)


def user(
    name: str, start: int, end: int, id: int, linked: int = 0, *, around: int = 0, thread: int = MAIN, **items: object
) -> GenericTraceActivity:
    one = _host(T.USER_ANNOTATION, name, start, end, id, linked, thread, items)
    one.linked_user = around
    return one


def frame(name: str, start: int, end: int, *, thread: int = MAIN, **items: object) -> GenericTraceActivity:
    return _host(T.PYTHON_FUNCTION, name, start, end, 0, 0, thread, items)


def memory(at: int, linked: int = 0, *, thread: int = MAIN, **items: object) -> GenericTraceActivity:
    return _host(T.CPU_INSTANT_EVENT, "[memory]", at, at, 0, linked, thread, items)


def _host(
    kind: T, name: str, start: int, end: int, id: int, linked: int, thread: int, items: Mapping[str, object]
) -> GenericTraceActivity:
    named = {key.replace("_", " "): value for key, value in items.items()}
    return GenericTraceActivity(
        kind,
        name,
        start,
        end,
        id=id,
        linked=linked,
        thread_id=thread,
        metadata=named,  # type: ignore[arg-type]
    )


def recording(*events: GenericTraceActivity, threads: Mapping[int, str] | None = None) -> HostRecording:
    """A recording of events given in the order of entering."""

    def batch(*kinds: T) -> ActivityBatch:
        chosen = [event for event in events if event.activity_type in kinds]
        return ActivityBatch.from_activities(chosen, clock=HOST_TICKS)

    return HostRecording(
        batch(T.CPU_OP, T.USER_ANNOTATION),
        batch(T.CPU_INSTANT_EVENT),
        batch(T.PYTHON_FUNCTION),
        threads={MAIN: "main"} if threads is None else threads,
    )


def tree(trace: Trace) -> dict[str, str | None]:
    """Name of each event's parent; the events' names must differ."""
    names = [trace.name_of(event) for event in range(len(trace))]
    assert len(set(names)) == len(names)
    return {
        name: names[above] if above >= 0 else None for name, above in zip(names, trace.parent.tolist(), strict=True)
    }


def spans_ns(trace: Trace) -> list[tuple[str, int, int]]:
    """(name, start, end) of each event, as distance from `AT_ZERO_NS`."""
    edges = np.stack([trace.start_ns, trace.end_ns]).T - AT_ZERO_NS
    return [(trace.name_of(event), *edge) for event, edge in enumerate(edges.tolist())]


def place_of(trace: Trace, event: int) -> tuple[str, int, int, str]:
    """(kind of place, place's id, row's id, row's name) of an event."""
    row = trace.rows[trace.row[event]]
    place = trace.places[row.place]
    return place.kind.value, place.id, row.id, row.name
