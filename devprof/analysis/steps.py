"""Steps of a training loop: the user ranges that a profiler's `step()` opens."""

from __future__ import annotations

import re

import numpy as np

from devprof.analysis.answer import Answer, Column
from devprof.analysis.columns import distinct
from devprof.analysis.intervals import covered_at, union
from devprof.analysis.work import places_of, work
from devprof.model import ActivityType
from devprof.store import Trace

__all__ = ["steps"]

_STEP = re.compile(r"ProfilerStep#(\d+)")


def steps(trace: Trace) -> Answer:
    """Return the steps in their order.

    Columns: ``step`` (its number), ``start_ns`` (Unix ns), ``duration_ns``, and for each device ``busy NAME_ns``: the part of
    the step in which it did anything. What a step launched may run in a later one; it counts where it runs.
    """
    ranges = trace.of_type(ActivityType.USER_ANNOTATION)
    names, code = distinct(trace.name[ranges], len(trace.strings))
    matches = [_STEP.fullmatch(trace.strings[name]) for name in names.tolist()]
    numbers = {name: int(match[1]) for name, match in zip(names.tolist(), matches, strict=True) if match}
    found = ranges[np.array([match is not None for match in matches], dtype=np.bool_)[code]]
    found = found[np.argsort(trace.start_ns[found], kind="stable")]
    start_ns, end_ns = trace.start_ns[found], trace.end_ns[found]
    columns: dict[str, Column] = {
        "step": [numbers[number] for number in trace.name[found].tolist()],
        "start_ns": start_ns,
        "duration_ns": end_ns - start_ns,
    }
    events = work(trace)
    places = places_of(trace, events)
    for place in np.flatnonzero(np.bincount(places)).tolist():
        mine = places == place
        here = events if mine.all() else events[mine]
        busy = covered_at(union(trace.start_ns[here], trace.end_ns[here]), start_ns, end_ns)
        columns[f"busy {trace.places[place].title}_ns"] = busy
    return Answer("steps", columns)
