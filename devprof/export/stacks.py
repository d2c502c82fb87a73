"""Folded stacks, one per line with its time: what flame graph tools and speedscope read."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from devprof.analysis import EventList, events
from devprof.analysis.figures import Figure
from devprof.errors import UsageError
from devprof.export.left_out import LeftOut, said
from devprof.export.output import output
from devprof.model import Role
from devprof.store import HOST_BACKEND, ROLES, Trace

__all__ = ["METRICS", "folded", "stacks"]

Longs = npt.NDArray[np.int64]

_HOST_METRIC = "self_cpu_time_total"
METRICS = (
    _HOST_METRIC,
    "self_device_time_total",
    "self_cuda_time_total",
    "self_xpu_time_total",
    "self_privateuse1_time_total",
)
"""Times that a stack can be given. Those with a device's name are all the same: time on whatever devices there are."""

_DEVICE_WORK = [ROLES.index(role) for role in (Role.KERNEL, Role.COPY, Role.SET)]
_AS_TORCH = str.maketrans(" ;\t\n", "____")
_IN_A_LINE = str.maketrans(";\t\n\r", "____")
_NONE = np.empty(0, dtype=np.int64)
_LINES_AT_ONCE = 4096


def stacks(trace: Trace, path: str | os.PathLike[str], metric: str = _HOST_METRIC) -> LeftOut:
    """Write the Python stack of each event with its own time in whole microseconds, as torch's `export_stacks` does.

    One line per event that ran in a Python function and took a microsecond or more: the functions from the outside in, with
    ``_`` for blanks and semicolons. The event itself is not part of its stack. A tool adds up equal stacks.

    Args:
        trace: the trace; without Python functions in it the file is empty.
        path: the file's name; with ``.gz`` at its end the file is packed.
        metric: one of `METRICS`.

    Returns:
        What is not in the file and how many, such as ``{"events without a stack or a microsecond": 3}``; it is logged too.

    Raises:
        UsageError: the metric is unknown, or the file may not be written.
        CaptureError: the system could not write the file.
    """
    _check(metric)
    listed = events(trace)
    written = _write(path, _stack_lines(listed, metric))
    return said(path, {"events without a stack or a microsecond": len(listed) - written})


def folded(trace: Trace, path: str | os.PathLike[str], metric: str = _HOST_METRIC) -> LeftOut:
    """Write the whole tree of a trace as folded stacks, with times in nanoseconds: Python functions, ranges and ops.

    With a device's time, launches and the work that they caused stand at the tips. Each path stands on one line, with what all
    its events took by themselves; names keep their blanks.

    Args:
        trace: the trace.
        path: the file's name; with ``.gz`` at its end the file is packed.
        metric: one of `METRICS`.

    Returns:
        What is not in the file and how many, such as ``{"events without time of their own": 3}``; it is logged too.

    Raises:
        UsageError: the metric is unknown, or the file may not be written.
        CaptureError: the system could not write the file.
    """
    _check(metric)
    own_ns = _own_time_ns(trace, metric)
    _write(path, _path_lines(trace, own_ns))
    return said(path, {"events without time of their own": int((own_ns <= 0).sum())})


def _check(metric: str) -> None:
    if metric not in METRICS:
        raise UsageError(f"stacks have no metric {metric!r}; there are: {', '.join(METRICS)}")


def _write(path: str | os.PathLike[str], lines: Iterator[str]) -> int:
    """Write lines, and return how many."""
    count = 0
    with output(path) as write:
        some: list[str] = []
        for line in lines:
            count += 1
            some.append(line)
            if len(some) == _LINES_AT_ONCE:
                write("".join(some))
                some.clear()
        write("".join(some))
    return count


def _stack_lines(listed: EventList, metric: str) -> Iterator[str]:
    backends = (HOST_BACKEND,) if metric == _HOST_METRIC else listed.figures.backends
    own_us = np.zeros(len(listed), dtype=np.int64)
    for backend in backends:
        own_us += listed.column(Figure("time", backend, own=True))
    own_us //= 1000
    for row in np.flatnonzero(own_us > 0).tolist():
        if stack := listed.stack_of(row):
            names = ";".join(_clean(entry, _AS_TORCH) for entry in reversed(stack))
            yield f"{names} {own_us[row]}\n"


def _own_time_ns(trace: Trace, metric: str) -> Longs:
    """Return what each event took by itself, (n,) int64: on the host, or as work on a device."""
    if metric != _HOST_METRIC:
        return np.where(np.isin(trace.role, _DEVICE_WORK), np.maximum(trace.duration_ns, 0), 0)
    figures = events(trace).figures
    own = np.zeros(len(trace), dtype=np.int64)
    own[figures.events] = figures.column(Figure("time", HOST_BACKEND, own=True))
    return own


def _path_lines(trace: Trace, own_ns: Longs) -> Iterator[str]:
    path, names, above = _paths(trace)
    total = np.zeros(len(names), dtype=np.int64)
    np.add.at(total, path, own_ns)
    texts: list[str] = []
    for name, parent, time_ns in zip(names.tolist(), above.tolist(), total.tolist(), strict=True):
        own = _clean(trace.strings[name], _IN_A_LINE)
        texts.append(own if parent < 0 else f"{texts[parent]};{own}")
        if time_ns > 0:
            yield f"{texts[-1]} {time_ns}\n"


def _paths(trace: Trace) -> tuple[Longs, Longs, Longs]:
    """Number the paths of names from the roots of a trace's tree.

    Returns:
        (n,) int64, each event's path; and for each path, after the one above it, its last name and the number of the one above,
        -1: none.
    """
    path, names, above = np.full(len(trace) + 1, -1, dtype=np.int64), [_NONE], [_NONE]
    n_paths, n_names = 0, max(len(trace.strings), 1)
    for level in _levels(trace.parent):
        keys = (path[trace.parent[level]] + 1) * n_names + trace.name[level]
        distinct, number = np.unique(keys, return_inverse=True)
        path[level] = n_paths + number.reshape(-1)
        names.append(distinct % n_names)
        above.append(distinct // n_names - 1)
        n_paths += len(distinct)
    return path[:-1], np.concatenate(names), np.concatenate(above)


def _levels(parent: npt.NDArray[np.int32]) -> Iterator[Longs]:
    """Yield the events of a tree level by level, from the roots: (m,) int64 each."""
    depth, up = np.zeros(len(parent), dtype=np.int64), parent
    while (inside := up >= 0).any():
        depth += inside
        up = np.where(inside, parent[up], -1)
    order = np.argsort(depth, kind="stable")
    yield from np.split(order, np.flatnonzero(np.diff(depth[order])) + 1) if len(order) else ()


def _clean(text: str, table: dict[int, int]) -> str:
    return text.translate(table).encode("utf-8", "replace").decode()
