"""Where device time goes: by name, and what overlaps what."""

from __future__ import annotations

import numpy as np

from devprof.analysis.answer import Answer, Column
from devprof.analysis.grouping import totals_by
from devprof.analysis.intervals import Intervals, Longs, common, length_ns, union
from devprof.analysis.segments import order_within
from devprof.analysis.work import communication, device_collectives, places_of, roles_of, work
from devprof.model import Role
from devprof.store import ROLES, Trace

__all__ = ["device_breakdown", "overlap"]

_OVERLAP = (
    *("device", "compute_ns", "copy_ns", "communication_ns"),
    *("copy_hidden_share", "communication_hidden_share", "busy_ns"),
)


def device_breakdown(trace: Trace) -> Answer:
    """Return the device time of each name on each device, the longest first.

    Columns: ``name``, ``kind`` (kernel, copy, set), ``device`` (its name), ``count``, ``total_ns``, ``total_share`` of the
    device's sum, ``mean_ns``, ``min_ns``, ``max_ns``. Sums are exact.
    """
    events = work(trace)
    duration_ns = trace.end_ns[events] - trace.start_ns[events]
    np.maximum(duration_ns, 0, out=duration_ns)
    n_names, n_places = max(len(trace.strings), 1), max(len(trace.places), 1)
    place, role = places_of(trace, events), roles_of(trace, events).astype(np.int64)
    found = totals_by((role * n_places + place) * n_names + trace.name[events], duration_ns)
    of_place = np.bincount(place, duration_ns, minlength=n_places)
    places = found.group // n_names % n_places
    columns: dict[str, Column] = {
        "name": [trace.strings[number] for number in (found.group % n_names).tolist()],
        "kind": [ROLES[number].value for number in (found.group // n_names // n_places).tolist()],
        "device": [trace.places[number].title for number in places.tolist()],
        "count": found.count,
        "total_ns": found.total,
        "total_share": found.total / np.maximum(of_place[places], 1),
        "mean_ns": found.total / np.maximum(found.count, 1),
        "min_ns": found.least,
        "max_ns": found.most,
    }
    return Answer("device time by name", columns).sorted_by("total_ns")


def overlap(trace: Trace) -> Answer:
    """Return how far each device's copies and communication run under its computation.

    Columns: ``device``, ``compute_ns``, ``copy_ns``, ``communication_ns`` (time in which at least one such piece of work runs),
    ``copy_hidden_share`` and ``communication_hidden_share`` (the part of it during which something is computed), ``busy_ns``.
    """
    events = work(trace)
    events = events[order_within(places_of(trace, events), trace.start_ns[events], len(trace.places))]
    kernels = roles_of(trace, events) == ROLES.index(Role.KERNEL)
    told = communication(trace)
    collective = np.zeros_like(kernels)
    if len(told):
        collective = kernels & np.isin(events, told)
    kinds = {
        "compute": events[kernels & ~collective],
        "copy": events[~kernels],
        "communication": np.union1d(events[collective], device_collectives(trace)),
    }
    places = np.flatnonzero(np.bincount(places_of(trace, events))).tolist()
    rows = [_overlap_of(trace, place, kinds) for place in places]
    return Answer("overlap", {name: [row[name] for row in rows] for name in _OVERLAP})


def _overlap_of(trace: Trace, place: int, kinds: dict[str, Longs]) -> dict[str, object]:
    spans: dict[str, Intervals] = {}
    for kind, events in kinds.items():
        here = places_of(trace, events) == place
        mine = events if here.all() else events[here]
        spans[kind] = union(trace.start_ns[mine], trace.end_ns[mine])
    spent = {f"{kind}_ns": length_ns(span) for kind, span in spans.items()}
    hidden = {
        f"{kind}_hidden_share": length_ns(common(spans[kind], spans["compute"])) / max(spent[f"{kind}_ns"], 1)
        for kind in ("copy", "communication")
    }
    some = [span for span in spans.values() if len(span[0])]
    busy = union(*(np.concatenate([span[side] for span in some]) for side in (0, 1))) if len(some) > 1 else None
    busy_ns = length_ns(busy) if busy else sum(spent.values())
    return {"device": trace.places[place].title, **spent, **hidden, "busy_ns": busy_ns}
