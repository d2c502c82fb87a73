"""Steps of a training loop: the user ranges that a profiler's `step()` opens."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from devprof.analysis.answer import Answer, Column
from devprof.analysis.columns import Longs, distinct
from devprof.analysis.intervals import covered_at, union
from devprof.analysis.processes import Processes, processes_of
from devprof.analysis.work import places_of, work
from devprof.model import ActivityType
from devprof.store import Trace

__all__ = ["steps"]

_STEP = re.compile(r"ProfilerStep#(\d+)")


def steps(trace: Trace) -> Answer:
    """Return the steps in their order; those of several ranks or processes one after the other.

    Columns: ``rank`` in a merged trace, ``process`` where several have steps; ``step`` (its number), ``start_ns`` (Unix ns),
    ``duration_ns``, and for each device ``busy NAME_ns``: the part of the step in which it did anything; None for a device of
    another process. What a step launched may run in a later one; it counts where it runs.
    """
    ranges = trace.of_type(ActivityType.USER_ANNOTATION)
    names, code = distinct(trace.name[ranges], len(trace.strings))
    matches = [_STEP.fullmatch(trace.strings[name]) for name in names.tolist()]
    numbers = {name: int(match[1]) for name, match in zip(names.tolist(), matches, strict=True) if match}
    found = ranges[np.array([match is not None for match in matches], dtype=np.bool_)[code]]
    processes = processes_of(trace)
    process = processes.of_place[places_of(trace, found)]
    order = np.lexsort((trace.start_ns[found], process))
    found, process = found[order], process[order]
    start_ns, end_ns = trace.start_ns[found], trace.end_ns[found]
    columns: dict[str, Column] = {
        **_whose(processes, process),
        "step": [numbers[number] for number in trace.name[found].tolist()],
        "start_ns": start_ns,
        "duration_ns": end_ns - start_ns,
    }
    events = work(trace)
    places = places_of(trace, events)
    used = np.flatnonzero(np.bincount(places))
    for place in used.tolist():
        theirs = _may_use(processes, process, place, used)
        if not theirs.any() and len(found):
            continue  # no step is of its process
        mine = places == place
        here = events if mine.all() else events[mine]
        busy = covered_at(union(trace.start_ns[here], trace.end_ns[here]), start_ns, end_ns)
        shown = busy if theirs.all() else [ns if own else None for ns, own in zip(busy.tolist(), theirs, strict=True)]
        columns[f"busy {trace.places[place].title}_ns"] = shown
    return Answer("steps", columns)


def _may_use(processes: Processes, process: Longs, place: int, used: Longs) -> npt.NDArray[np.bool_]:
    """Return which steps may have used a device: (s,) bool.

    Those of its process do. Nobody knows it of those of a process that launched nothing itself, as where steps are marked from
    outside.
    """
    owner = processes.of_place[place]
    if owner < 0:
        return np.ones(len(process), dtype=np.bool_)
    theirs: npt.NDArray[np.bool_] = np.equal(process, owner)
    return theirs if processes.word == "rank" else theirs | ~np.isin(process, processes.of_place[used])


def _whose(processes: Processes, process: Longs) -> dict[str, Column]:
    """Return the column that says whose steps they are, if they could be of several."""
    if len(processes.names) < 2 or (processes.word == "process" and len(np.unique(process)) < 2):
        return {}
    return {processes.word: [processes.names[number] for number in process.tolist()]}
