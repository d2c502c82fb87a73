"""Two traces compared: what is new, gone, slower, faster."""

from __future__ import annotations

from typing import Any

import numpy as np

from devprof.analysis.answer import Answer
from devprof.analysis.columns import Longs
from devprof.analysis.grouping import counts_and_sums
from devprof.analysis.work import ROLE_OF_TYPE
from devprof.errors import UsageError
from devprof.model import ActivityType, Role
from devprof.store import ROLES, Trace

__all__ = ["VERDICTS", "diff"]

VERDICTS = ("new", "gone", "more", "fewer", "slower", "faster")
"""What may have become of a name."""

_LEFT_OUT = len(ROLES)
_PART_OF_TYPE = ROLE_OF_TYPE.astype(np.int64)
"""Of each kind of activity the number of its role, or that of what is left out."""
for _kind in (ActivityType.GPU_USER_ANNOTATION, ActivityType.PYTHON_FUNCTION, ActivityType.CPU_INSTANT_EVENT):
    _PART_OF_TYPE[_kind] = _LEFT_OUT
_ON_DEVICE = {role.value for role in (Role.KERNEL, Role.COPY, Role.SET)}
Key = tuple[str, str, str]
_COLUMNS = (
    *("name", "kind", "backend", "verdict", "count_before", "count_after", "total_before_ns", "total_after_ns"),
    *("change_ns", "mean_before_ns", "mean_after_ns"),
)


def diff(before: Trace, after: Trace, *, device_only: bool = False, least_share: float = 0.0) -> Answer:
    """Return the names whose count or total duration differ, the greatest change first.

    Spans of user ranges on devices are left out, since they are sums of the rest; so are Python functions and instants. Names
    of steps are taken as one.

    Columns: ``name``, ``kind`` (a `Role`), ``backend``, ``verdict`` (one of `VERDICTS`), ``count_before``, ``count_after``,
    ``total_before_ns``, ``total_after_ns``, ``change_ns``, ``mean_before_ns``, ``mean_after_ns``.

    Args:
        before, after: the traces.
        device_only: kernels, copies and sets alone.
        least_share: names with as many events as before are left out where their time changed by less than this part of what it
            was: 0.05 is 5 %. How many were left out is a note.

    Raises:
        UsageError: `least_share` is no number from 0 on.
    """
    if not least_share >= 0:
        raise UsageError(f"least_share is {least_share!r}; expected a number from 0 on, such as 0.05 for 5 %")
    old, new = _totals(before), _totals(after)
    keys = [key for key in sorted(old.keys() | new.keys()) if not device_only or key[1] in _ON_DEVICE]
    changed = [row for key in keys if (row := _row(key, old.get(key, (0, 0)), new.get(key, (0, 0))))]
    rows = [row for row in changed if not _is_small(row, least_share)]
    rows.sort(key=lambda row: -abs(row["change_ns"]))
    left_out = len(changed) - len(rows)
    notes = (f"left out: {left_out} with a change of less than {100 * least_share:g} %",) if left_out else ()
    return Answer("difference", {name: [row[name] for row in rows] for name in _COLUMNS}, notes)


def _row(key: Key, old: tuple[int, int], new: tuple[int, int]) -> dict[str, Any] | None:
    """Return what became of a name; None: nothing."""
    if old == new:
        return None
    (n_old, ns_old), (n_new, ns_new) = old, new
    mean = {"mean_before_ns": ns_old / max(n_old, 1), "mean_after_ns": ns_new / max(n_new, 1)}
    counts = {"count_before": n_old, "count_after": n_new, "total_before_ns": ns_old, "total_after_ns": ns_new}
    change = {"verdict": _verdict(n_old, n_new, ns_old, ns_new), **counts, "change_ns": ns_new - ns_old}
    return {**dict(zip(("name", "kind", "backend"), key, strict=True)), **change, **mean}


def _is_small(row: dict[str, Any], least_share: float) -> bool:
    same_count = row["count_before"] == row["count_after"]
    return same_count and bool(abs(row["change_ns"]) < least_share * row["total_before_ns"])


def _totals(trace: Trace) -> dict[Key, tuple[int, int]]:
    backends = sorted({place.backend for place in trace.places})
    n_names = max(len(trace.strings), 1)
    backend = np.array([backends.index(trace.places[row.place].backend) for row in trace.rows] or [0], dtype=np.int64)
    first_of_row, first_of_type = backend * (_LEFT_OUT + 1) * n_names, _PART_OF_TYPE * n_names

    def groups_and_values(part: slice) -> tuple[Longs, Longs]:
        group = first_of_row[trace.row[part]]
        group += first_of_type[trace.activity_type[part]]
        group += trace.name[part]
        return group, np.maximum(trace.end_ns[part] - trace.start_ns[part], 0)

    found = counts_and_sums(groups_and_values, len(trace), len(backends) * (_LEFT_OUT + 1) * n_names)
    totals: dict[Key, tuple[int, int]] = {}
    for number, n, ns in zip(found.group.tolist(), found.count.tolist(), found.total.tolist(), strict=True):
        rest, name = divmod(number, n_names)
        of_backend, role = divmod(rest, _LEFT_OUT + 1)
        if role == _LEFT_OUT:
            continue
        text = trace.strings[name]
        text = "ProfilerStep" if text.startswith("ProfilerStep#") else text
        key = (text, ROLES[role].value, backends[of_backend])
        seen = totals.get(key, (0, 0))
        totals[key] = (seen[0] + n, seen[1] + ns)
    return totals


def _verdict(n_old: int, n_new: int, ns_old: int, ns_new: int) -> str:
    if not n_old or not n_new:
        return "gone" if n_old else "new"
    if n_old != n_new:
        return "more" if n_new > n_old else "fewer"
    return "slower" if ns_new > ns_old else "faster"
