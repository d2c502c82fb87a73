"""Steps of a training loop: the user ranges that a profiler's `step()` opens."""

from __future__ import annotations

import re

import numpy as np

from devprof.analysis.answer import Answer, Column
from devprof.analysis.intervals import covered_at, union
from devprof.analysis.work import work
from devprof.model import ActivityType
from devprof.store import Trace

__all__ = ["steps"]

_STEP = re.compile(r"ProfilerStep#(\d+)")


def steps(trace: Trace) -> Answer:
    """Return the steps in their order.

    Columns: ``step`` (its number), ``start_ns`` (Unix ns), ``duration_ns``, and for each device ``busy NAME_ns``: the part of
    the step in which it did anything. What a step launched may run in a later one; it counts where it runs.
    """
    numbers = {i: int(m[1]) for i, text in enumerate(trace.strings) if (m := _STEP.fullmatch(text))}
    ranges = trace.of_type(ActivityType.USER_ANNOTATION)
    found = ranges[np.isin(trace.name[ranges], list(numbers))]
    found = found[np.argsort(trace.start_ns[found], kind="stable")]
    start_ns, end_ns = trace.start_ns[found], trace.end_ns[found]
    columns: dict[str, Column] = {
        "step": [numbers[number] for number in trace.name[found].tolist()],
        "start_ns": start_ns,
        "duration_ns": end_ns - start_ns,
    }
    events = work(trace)
    places = trace.place[events]
    for place in np.unique(places).tolist():
        here = events[places == place]
        busy = covered_at(union(trace.start_ns[here], trace.end_ns[here]), start_ns, end_ns)
        columns[f"busy {trace.places[place].title}_ns"] = busy
    return Answer("steps", columns)
