"""`Forest`: the host events that a table lists, as trees, with the time that each one spent itself.

As torch's `EventList._build_tree` (torch/autograd/profiler_util.py), except where events cross: see `_own_time`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from devprof.analysis.columns import Bools, IdIndex, Longs, stable_order, sums
from devprof.analysis.names import Names
from devprof.analysis.work import ROLE_OF_TYPE
from devprof.link import nest
from devprof.model import ActivityType, Role
from devprof.store import ROLES, Trace

__all__ = ["Forest", "forest_of"]

_OWNERS = (ActivityType.CPU_OP, ActivityType.USER_ANNOTATION)
"""Kinds of events that have an op id, and so can own launches and device work."""

_FEW_LEVELS = 8

_OWNS = np.zeros(256, dtype=np.bool_)
_OWNS[list(_OWNERS)] = True

_FOLLOWS = np.isin(ROLE_OF_TYPE, [ROLES.index(role) for role in (Role.LAUNCH, Role.OVERHEAD, Role.OTHER)])
"""(256,) bool, kinds of host records that a plugin delivers: they stand on the thread of the op that they are linked to."""
_FOLLOWS[[ActivityType.PYTHON_FUNCTION, ActivityType.CPU_INSTANT_EVENT]] = False


@dataclass(frozen=True, slots=True, eq=False)
class Forest:
    """The m listed host events, and how they are nested.

    First come those that began and ended on one thread, thread by thread in the order of entering; then the others, which are
    nobody's parent or child.

    Attributes:
        event: (m,) int64, index in the trace.
        parent: (m,) int64, position of the innermost event around each, -1: none.
        into: (m,) int64, position of the event that stands for it in lists: itself, or the nearest one above that does not
            have the same name as its only child.
        is_async: (m,) bool: ended on another thread than it began on.
        total_ns: (m,) int64, duration.
        self_ns: (m,) int64, duration without the time in which a child ran; of events that stand for others, theirs too.
        thread: (m,) int64, index of the row that it counts to: its own, or for a plugin's host record that of its op.
        memory: (k,) int64, the trace's allocations and frees.
        memory_in: (k,) int64, position of the innermost event around each on its thread, -1: none.
        owners: finds positions by op id.
    """

    event: Longs
    parent: Longs
    into: Longs
    is_async: Bools
    total_ns: Longs
    self_ns: Longs
    thread: Longs
    memory: Longs
    memory_in: Longs
    owners: IdIndex
    _levels: list[Longs] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.event)

    @property
    def stays(self) -> Bools:
        """(m,) bool: which events are listed under their own name."""
        return np.equal(self.into, np.arange(len(self)))

    def listed_parent(self) -> Longs:
        """Return the position of the listed event around each listed event: (m,) int64, -1: none."""
        return np.where(self.parent >= 0, self.into[self.parent], -1)

    def summed(self, values: Longs) -> Longs:
        """Return what each event and everything inside it come to: (m,) int64.

        Args:
            values: (m,) int64, what each event comes to by itself.
        """
        total = values.copy()
        climbing = np.flatnonzero(values)
        carried = values[climbing]
        for _ in range(_FEW_LEVELS):  # each value by itself, which is cheapest where trees are low
            above = self.parent[climbing]
            inside = np.flatnonzero(above >= 0)
            if not len(inside):
                return total
            climbing, carried = above[inside], carried[inside]
            np.add.at(total, climbing, carried)
        total = values.copy()
        for level in self._deepest_first():
            np.add.at(total, self.parent[level], total[level])
        return total

    def own(self, values: Longs) -> Longs:
        """Return what each listed event comes to by itself, with what is listed under it: (m,) int64."""
        return values if self.stays.all() or not values.any() else sums(self.into, values, len(self))

    def _deepest_first(self) -> Iterator[Longs]:
        if not self._levels:
            self._levels.extend(_levels(self.parent))
        return reversed(self._levels)


def forest_of(trace: Trace, names: Names) -> Forest:
    """Build the trees of a trace's host events.

    Args:
        trace: the trace.
        names: its names.
    """
    on_host = ~trace.on_device
    listed = on_host & (names.listed | names.out_of_memory)[trace.name]
    listed[_hidden(trace)] = False
    is_async = np.zeros(len(trace), dtype=np.bool_)
    if "End thread" in trace.items:
        is_async[trace.items["End thread"].events] = True
    thread = _threads(trace, on_host)
    memory = np.flatnonzero(on_host & names.memory[trace.name]) if names.memory.any() else np.empty(0, dtype=np.int64)
    together = np.flatnonzero(listed & ~is_async)
    end = _ends(trace, names)
    order = _entered(trace.start_ns[together], end[together], thread[together])
    event = np.concatenate([together[order], np.flatnonzero(listed & is_async)])
    return _grown(trace, names, event, end[event], len(together), thread, memory)


def _grown(trace: Trace, names: Names, event: Longs, end: Longs, n: int, thread: Longs, memory: Longs) -> Forest:
    """Build the forest of ordered events, of which the first `n` began and ended on one thread."""
    start, on = trace.start_ns[event], thread[event]
    at = trace.start_ns[memory]
    above = nest(_joined(start[:n], at), _joined(end[:n], at), _joined(on[:n], thread[memory]))
    parent = _joined(above[:n], np.full(len(event) - n, -1))
    total = end - start
    own = np.zeros(len(event), dtype=np.int64)
    own[:n] = _own_time(start[:n], end[:n], parent[:n], on[:n])
    into = _merged(parent, names.key[event])
    return Forest(
        event=event,
        parent=parent,
        into=into,
        is_async=np.arange(len(event)) >= n,
        total_ns=total,
        self_ns=own if (into == np.arange(len(into))).all() else sums(into, own, len(own)),
        thread=on,
        memory=memory,
        memory_in=above[n:],
        owners=_owners(trace, event),
    )


def _joined(one: Longs, other: Longs) -> Longs:
    return np.concatenate([one, other]) if len(other) else one


def _ends(trace: Trace, names: Names) -> Longs:
    """Return when each event ended, not before its start: (n,) int64; an allocation that failed is an instant."""
    end = np.maximum(trace.end_ns, trace.start_ns)
    if names.out_of_memory.any():
        instants = np.flatnonzero(names.out_of_memory[trace.name])
        end[instants] = trace.start_ns[instants]
    return end


def _hidden(trace: Trace) -> Longs:
    column = trace.items.get("hidden")
    return np.empty(0, dtype=np.int64) if column is None else column.events[column.values.astype(np.bool_)]


def _owners(trace: Trace, event: Longs) -> IdIndex:
    return IdIndex(trace.id[event] * _OWNS.take(trace.activity_type[event]))


def _threads(trace: Trace, on_host: Bools) -> Longs:
    """Return the row that each event counts to: (n,) int64."""
    follower = _FOLLOWS.take(trace.activity_type)
    follower &= on_host
    follower &= trace.linked != 0
    following = np.flatnonzero(follower)
    thread = trace.row.astype(np.int64)
    if not len(following):
        return thread
    ops = trace.of_type(*_OWNERS)
    op = IdIndex(trace.id[ops]).find(trace.linked[following])
    if (op < 0).any():
        following, op = following[op >= 0], op[op >= 0]
    thread[following] = trace.row[ops[op]]
    return thread


def _entered(start: Longs, end: Longs, thread: Longs) -> Longs:
    """Return the order of entering: by thread, by start, longest first; of equal ones as they stand."""
    order = np.arange(len(start))
    top = int(thread.max(initial=0))
    if (thread[1:] < thread[:-1]).any():
        order = stable_order(thread, top)
    if _falls(start[order], thread[order]).any():
        order = np.argsort(start, kind="stable")
        order = order[stable_order(thread[order], top)]
    begin, on = start[order], thread[order]
    tied = (begin[1:] == begin[:-1]) & (on[1:] == on[:-1])
    if tied.any() and (tied & (np.diff(end[order]) > 0)).any():
        order = order[np.lexsort((-end[order], begin, on))]
    return order


def _falls(start: Longs, thread: Longs) -> Bools:
    """Say which events begin before the one that stands before them, on one thread."""
    falls: Bools = (start[1:] < start[:-1]) & (thread[1:] == thread[:-1])
    return falls


def _own_time(start: Longs, end: Longs, parent: Longs, thread: Longs) -> Longs:
    """Return how long each event was the one that had begun last among those that ran on its thread: (n,) int64, ns.

    Where events nest that is their duration less that of their children. Where one crosses out of another, the time that they
    share belongs to the later one alone; so nothing is below zero, and all together are as long as the thread was busy.
    """
    until = _until_crossed(start, end, parent, thread)
    inside = np.flatnonzero(parent >= 0)
    return (until - start) - sums(parent[inside], (until - start)[inside], len(parent))


def _until_crossed(start: Longs, end: Longs, parent: Longs, thread: Longs) -> Longs:
    """Return when each event ended, or when the first one began that is not inside it: (n,) int64."""
    until = end.copy()
    later = np.flatnonzero((parent[1:] != np.arange(len(parent) - 1)) & (thread[1:] == thread[:-1])) + 1
    before = later - 1
    # up from what was entered last until what has the same parent: nothing is passed twice, as nothing is left twice
    while len(later):
        crossed = np.flatnonzero(end[before] > start[later])
        until[before[crossed]] = start[later[crossed]]
        climbing = np.flatnonzero(parent[before] != parent[later])
        later, before = later[climbing], parent[before[climbing]]
    return until


def _merged(parent: Longs, key: npt.NDArray[np.int32]) -> Longs:
    """Let an event stand for its only child of the same name, and for that one's, and so on."""
    into = np.arange(len(parent))
    inside = np.flatnonzero(parent >= 0)
    above = parent[inside]
    alike = np.flatnonzero(key[inside] == key[above])
    if not len(alike):
        return into
    n_children = np.bincount(above, minlength=len(parent))
    gone = inside[alike[n_children[above[alike]] == 1]]
    into[gone] = parent[gone]
    while True:  # 1, 2, 4, ... steps at once
        further = into[into[gone]]
        if (further == into[gone]).all():
            return into
        into[gone] = further


def _levels(parent: Longs) -> list[Longs]:
    """Return the positions of depth 1, 2, ...: what has a parent, from the outermost to the innermost."""
    depth = (parent >= 0).astype(np.int64)
    above = parent.copy()
    climbing = np.flatnonzero(depth)
    while len(climbing):  # 1, 2, 4, ... steps at once
        reached = above[climbing]
        depth[climbing] += depth[reached]
        further = above[reached]
        above[climbing] = further
        climbing = climbing[further >= 0]
    order = stable_order(depth, int(depth.max(initial=0)))
    return np.split(order, np.cumsum(np.bincount(depth)))[1:-1] if len(parent) else []
