"""Python stacks: the functions that were running when an event began.

As `KinetoEvent::stack` (torch/csrc/autograd/profiler_kineto.cpp), and for backward ops `EventList._set_backward_stacktraces`
(torch/autograd/profiler_util.py).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from devprof.analysis.columns import Bools, Longs, combined
from devprof.analysis.figures import Figures
from devprof.link import nest
from devprof.model import ActivityType
from devprof.store import PlaceKind, Trace

__all__ = ["Stacks"]

_BACKWARD = 1
"""`RecordScope.BACKWARD_FUNCTION`."""

_UNSHOWN = (
    ("autograd/__init__", "_make_grads"),
    ("autograd/__init__", "backward"),
    ("torch/tensor", "backward"),
    ("_internal/common_utils", "prof_callable"),
    ("_internal/common_utils", "prof_func_call"),
    ("_internal/common_utils", "prof_meth_call"),
)
"""Functions that torch's stacks leave out: how `backward` works inside, and torch's own tests."""


class Stacks:
    """The stack of every listed event, as a chain of Python functions from the inside out."""

    def __init__(self, figures: Figures) -> None:
        """Work out the stacks of `figures.events`."""
        self._trace = figures.trace
        self._frames = Frames(figures.trace)
        innermost = np.full(len(figures), -1, dtype=np.int64)
        if len(self._frames):
            hosts = figures.events[: figures.n_hosts]
            innermost[: figures.n_hosts] = self._frames.around(hosts)
            forward = _ForwardThreads(figures)
            forward.lend(self._frames, innermost)
            _give_to_devices(figures, innermost)
            forward.give_to_backward(innermost)
        self._first = self._frames.nearest_shown(innermost)

    def of(self, place: int) -> list[str]:
        """Return the names of the functions that were running, the innermost first."""
        names, frame = [], int(self._first[place])
        while frame >= 0:
            names.append(self._trace.strings[int(self._frames.name[frame])])
            frame = int(self._frames.shown_up[frame])
        return names

    def numbers(self, n: int) -> tuple[Longs, int]:
        """Number the stacks by their innermost `n` functions: (e,) int64, and how many there are."""
        top = len(self._trace.strings) + 1
        parts, frame = [], self._first
        names = np.append(self._frames.name + 1, 0)
        up = np.append(self._frames.shown_up, -1)
        for _ in range(n):
            if not (frame >= 0).any():
                break
            parts.append((names[frame], top))
            frame = up[frame]
        return combined(parts, len(self._first))


class Frames:
    """The calls of Python functions in a trace, row by row in the order of entering.

    Attributes:
        name: (f,) int64, text number of each call's name.
        up: (f,) int64, the call around each, -1: none.
        shown_up: (f,) int64, the nearest call around each that stacks show, -1: none.
    """

    def __init__(self, trace: Trace) -> None:
        """Collect the calls."""
        calls = trace.of_type(ActivityType.PYTHON_FUNCTION)
        self._calls = calls[np.lexsort((calls, trace.start_ns[calls], trace.row[calls]))]
        self._trace = trace
        self._row = trace.row[self._calls].astype(np.int64)
        self._start, self._end = trace.start_ns[self._calls], trace.end_ns[self._calls]
        self.name = trace.name[self._calls].astype(np.int64)
        self.up = nest(self._start, self._end, self._row)
        self._shown = _shown(trace, self.name)
        self.shown_up = self.nearest_shown(self.up)

    def __len__(self) -> int:
        return len(self._calls)

    def nearest_shown(self, frames: Longs) -> Longs:
        """Return calls, each replaced by the nearest one around it that stacks show; -1 stays."""
        frames = frames.copy()
        shown = np.append(self._shown, True)
        while len(bad := np.flatnonzero(~shown[frames])):
            frames[bad] = self.up[frames[bad]]
        return frames

    def around(self, events: Longs) -> Longs:
        """Return the innermost call that was running on each event's thread when it began; never itself.

        Args:
            events: (k,) int64, indices in the trace.
        """
        number = np.full(len(self._trace), -1, dtype=np.int64)
        number[self._calls] = np.arange(len(self))
        itself = number[events]
        running = self.running(self._trace.row[events].astype(np.int64), self._trace.start_ns[events])
        return np.where(itself >= 0, np.append(self.up, -1)[itself], running)

    def running(self, row: Longs, at_ns: Longs) -> Longs:
        """Return the innermost call that was running on a row at a time: (k,) int64, -1: none.

        Args:
            row: (k,) int64, row of the trace.
            at_ns: (k,) int64, Unix ns.
        """
        innermost = np.full(len(row), -1, dtype=np.int64)
        for number in np.unique(self._row).tolist():
            begin, end = np.searchsorted(self._row, [number, number + 1])
            here = np.flatnonzero(row == number)
            last = np.searchsorted(self._start[begin:end], at_ns[here], "right") - 1
            innermost[here] = np.where(last >= 0, last + begin, -1)
        ended = np.append(self._end, np.iinfo(np.int64).max)
        while len(over := np.flatnonzero(ended[innermost] < at_ns)):
            innermost[over] = self.up[innermost[over]]
        return innermost

    def on_rows(self, n: int) -> Bools:
        """Return which of the trace's `n` rows have calls: (n,) bool."""
        there = np.zeros(n, dtype=np.bool_)
        there[self._row] = True
        return there


def _shown(trace: Trace, names: Longs) -> Bools:
    """Return whether a stack shows calls of these names: (f,) bool."""
    shown = np.zeros(len(trace.strings), dtype=np.bool_)
    for number in np.unique(names).tolist():
        text = trace.strings[number]
        shown[number] = not any(file in text and function in text for file, function in _UNSHOWN)
    return shown[names]


def _give_to_devices(figures: Figures, innermost: Longs) -> None:
    """Give device events the stack of the event that they belong to."""
    of_node = np.full(len(figures.forest) + 1, -1, dtype=np.int64)  # the last one is for "none"
    of_node[figures.hosts] = innermost[: figures.n_hosts]
    into = np.append(figures.forest.into, -1)
    innermost[figures.first_device :] = of_node[into[figures.devices.owner]]


class _ForwardThreads:
    """What backward ops, on threads of their own or not, have to do with the threads of their forward ops."""

    def __init__(self, figures: Figures) -> None:
        trace, events = figures.trace, figures.events
        self._figures = figures
        self._sequence = _whole(trace, "Sequence number", events, -1)
        self._row = trace.row[events].astype(np.int64)
        self._forward_row = _rows_of_threads(trace, _whole(trace, "Fwd thread id", events, 0))
        self._parent = np.append(figures.parent, -1)

    def lend(self, frames: Frames, innermost: Longs) -> None:
        """Give a thread that runs no Python the functions that ran on the thread which it works for.

        Which one that is, the outermost ops on the thread say; those that do not go with the one before them.
        """
        figures = self._figures
        without = ~frames.on_rows(len(figures.trace.rows))
        hosts = np.flatnonzero(without[self._row[: figures.n_hosts]])
        roots = hosts[self._parent[hosts] < 0]
        start = figures.trace.start_ns[figures.events]
        roots = roots[np.lexsort((start[roots], self._row[roots]))]
        if not len(roots) or not (self._forward_row[roots] >= 0).any():
            return
        known = np.where(self._forward_row[roots] >= 0, np.arange(len(roots)), 0)
        first = np.concatenate([[True], self._row[roots[1:]] != self._row[roots[:-1]]])
        known = np.maximum.accumulate(np.where(first, np.arange(len(roots)), known))
        running = np.full(len(innermost), -1, dtype=np.int64)
        running[roots] = frames.running(self._forward_row[roots[known]], start[roots])
        innermost[hosts] = running[self._outermost(hosts)]

    def give_to_backward(self, innermost: Longs) -> None:
        """Give what runs in a backward function the stack of the forward op with its sequence number."""
        trace, order = self._figures.trace, self._figures.order
        scope = _whole(trace, "Record scope", self._figures.events, 0)
        if not (scope == _BACKWARD).any():
            return
        above = self._innermost_of(scope == _BACKWARD)
        backward = np.flatnonzero(above >= 0)
        row, wanted = self._row, self._forward_row[above[backward]]
        if not (wanted >= 0).any():  # numbers that no row has: the sequence number has to do
            row, wanted = np.zeros_like(row), np.zeros_like(wanted)
        forward = order[(above[order] < 0) & (self._sequence[order] >= 0)]
        stacks: dict[tuple[int, int], int] = {}
        keys = zip(self._sequence[forward].tolist(), row[forward].tolist(), strict=True)
        for key, frame in zip(keys, innermost[forward].tolist(), strict=True):
            stacks.setdefault(key, frame)
        asked = zip(self._sequence[above[backward]].tolist(), wanted.tolist(), strict=True)
        innermost[backward] = [stacks.get(key, -1) for key in asked]

    def _innermost_of(self, marked: Bools) -> Longs:
        """Return the innermost marked event around each listed event, or itself: (e,) int64, -1: none."""
        above = np.arange(len(marked))
        there = np.append(marked, True)
        while len(climbing := np.flatnonzero(~there[above])):
            above[climbing] = self._parent[above[climbing]]
        return above

    def _outermost(self, places: Longs) -> Longs:
        """Return the outermost event around each place, or itself."""
        above = places.copy()
        while len(climbing := np.flatnonzero(self._parent[above] >= 0)):
            above[climbing] = self._parent[above[climbing]]
        return above


def _whole(trace: Trace, key: str, events: Longs, fill: int) -> Longs:
    column = trace.items.get(key)
    if column is None:
        return np.full(len(events), fill, dtype=np.int64)
    return column.dense(len(trace), fill)[events].astype(np.int64)


def _rows_of_threads(trace: Trace, threads: Longs) -> Longs:
    """Return the rows of threads by the numbers that ops know them by: native ids, or torch's own. -1: there is none."""
    on_host = [index for index, row in enumerate(trace.rows) if trace.places[row.place].kind is PlaceKind.HOST]
    row_of = {trace.rows[index].id: index for index in reversed(on_host)}
    numbers = trace.facts.get("torch_thread_numbers")
    if isinstance(numbers, Mapping):
        row_of = {number: row_of[int(native)] for native, number in numbers.items() if int(native) in row_of}
    distinct, place = np.unique(threads, return_inverse=True)
    rows = np.array([row_of.get(number, -1) if number else -1 for number in distinct.tolist()], dtype=np.int64)
    return rows[place.reshape(-1)]
