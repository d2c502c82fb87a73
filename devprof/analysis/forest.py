"""`Forest`: the host events that a table lists, as trees, with the time that each one spent itself.

As torch's `EventList._build_tree` (torch/autograd/profiler_util.py), except where events cross: see `_own_time`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from devprof.analysis.columns import Bools, Longs, stable_order
from devprof.analysis.names import Names
from devprof.analysis.ops import Ops
from devprof.analysis.work import ROLE_OF_TYPE
from devprof.link import nesting
from devprof.model import ActivityType, Role
from devprof.store import ROLES, Trace

__all__ = ["Forest", "forest_of"]

_FEW_LEVELS = 8

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
        merged: (k,) int64, positions of the events that others stand for.
        is_async: (m,) bool: ended on another thread than it began on.
        total_ns: (m,) int64, duration.
        self_ns: (m,) int64, duration without the time in which a child ran; of events that stand for others, theirs too.
        thread: (m,) int64, index of the row that it counts to: its own, or for a plugin's host record that of its op.
        memory: (k,) int64, the trace's allocations and frees.
        memory_in: (k,) int64, position of the innermost event around each on its thread, -1: none.
        ops: finds events by op id.
    """

    event: Longs
    parent: Longs
    into: Longs
    merged: Longs
    is_async: Bools
    total_ns: Longs
    self_ns: Longs
    thread: Longs
    memory: Longs
    memory_in: Longs
    ops: Ops
    _levels: list[Longs] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.event)

    @property
    def stays(self) -> Bools:
        """(m,) bool: which events are listed under their own name."""
        stays = np.ones(len(self), dtype=np.bool_)
        stays[self.merged] = False
        return stays

    def owners(self, ids: Longs) -> Longs:
        """Return the position of the event that has each op id: (k,) int64, -1: none.

        Args:
            ids: (k,) int64.
        """
        found = self.ops.find(ids)
        position = np.full(max(int(self.event.max(initial=-1)), int(found.max(initial=-1))) + 2, -1, dtype=np.int64)
        position[self.event] = np.arange(len(self))
        return position[found]  # the last one is for "none"

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
        """Return what each listed event comes to by itself, with what is merged into it: (m,) int64."""
        return _with_merged(values, self.merged, self.into)

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
    listed = _listed(trace, names, on_host)
    is_async = np.zeros(len(trace), dtype=np.bool_)
    if "End thread" in trace.items:
        is_async[trace.items["End thread"].events] = True
    ops = Ops(trace)
    thread = _threads(trace, on_host, ops)
    memory = np.flatnonzero(on_host & names.memory[trace.name]) if names.memory.any() else np.empty(0, dtype=np.int64)
    together = np.flatnonzero(listed & ~is_async)
    end = _ends(trace, names)
    order = _entered(trace.start_ns[together], end[together], thread[together])
    event = _joined(together[order], np.flatnonzero(listed & is_async))
    start, end, on = trace.start_ns[event], end[event], thread[event]
    n, at = len(together), trace.start_ns[memory]
    above, crosses = nesting(_joined(start[:n], at), _joined(end[:n], at), _joined(on[:n], thread[memory]))
    parent = _joined(above[:n], np.full(len(event) - n, -1))
    until = _until_crossed(start[:n], end[:n], parent[:n], on[:n]) if crosses else end[:n]
    own = _joined(_own_time(until - start[:n], parent[:n]), np.zeros(len(event) - n, dtype=np.int64))
    merged, into = _merged(parent, names.key[event])
    return Forest(
        event=event,
        parent=parent,
        into=into,
        merged=merged,
        is_async=np.arange(len(event)) >= n,
        total_ns=end - start,
        self_ns=_with_merged(own, merged, into),
        thread=on,
        memory=memory,
        memory_in=above[n:],
        ops=ops,
    )


def _listed(trace: Trace, names: Names, on_host: Bools) -> Bools:
    """Return which events are listed as host events: (n,) bool."""
    listed = names.listed | names.out_of_memory
    found = on_host.copy() if listed.all() else on_host & listed[trace.name]
    found[_hidden(trace)] = False
    return found


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


def _threads(trace: Trace, on_host: Bools, ops: Ops) -> Longs:
    """Return the row that each event counts to: (n,) int64."""
    follower = _FOLLOWS.take(trace.activity_type)
    follower &= on_host
    follower &= trace.linked != 0
    following = np.flatnonzero(follower)
    thread = trace.row.astype(np.int64)
    if not len(following):
        return thread
    op = ops.find(trace.linked[following])
    if (op < 0).any():
        following, op = following[op >= 0], op[op >= 0]
    thread[following] = trace.row[op]
    return thread


def _entered(start: Longs, end: Longs, thread: Longs) -> Longs:
    """Return the order of entering: by thread, by start, longest first; of equal ones as they stand."""
    top = int(thread.max(initial=0))
    order = np.arange(len(start)) if (thread[1:] >= thread[:-1]).all() else stable_order(thread, top)
    begin, on = start[order], thread[order]
    same = on[1:] == on[:-1]
    if (same & (begin[1:] < begin[:-1])).any():
        order = np.argsort(start, kind="stable")
        order = order[stable_order(thread[order], top)]
        begin, on = start[order], thread[order]
        same = on[1:] == on[:-1]
    tied = np.flatnonzero(same & (begin[1:] == begin[:-1]))
    if (end[order[tied]] < end[order[tied + 1]]).any():
        order = order[np.lexsort((-end[order], begin, on))]
    return order


def _own_time(lasted: Longs, parent: Longs) -> Longs:
    """Return how long each event was the one that had begun last among those that ran on its thread: (n,) int64, ns.

    Where events nest that is their duration less that of their children. Where one crosses out of another, the time that they
    share belongs to the later one alone; so nothing is below zero, and all together are as long as the thread was busy.

    Args:
        lasted: (n,) int64, from the start of each to its end, or to the start of the first one that is not inside it; ns.
        parent: (n,) int64.
    """
    # the first sum is of those that have no parent
    inside = np.bincount(parent + 1, weights=lasted, minlength=len(parent) + 1)[1:]
    return lasted - inside.astype(np.int64)


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


def _merged(parent: Longs, key: npt.NDArray[np.int32]) -> tuple[Longs, Longs]:
    """Let an event stand for its only child of the same name, and for that one's, and so on.

    Returns:
        Positions of those that others stand for, (k,) int64; and which one stands for each, (m,) int64.
    """
    n = len(parent)
    into = np.arange(n)
    # an only child comes right behind its parent
    alike = np.flatnonzero((key[1:] == key[:-1]) & (parent[1:] == into[:-1])) + 1
    if not len(alike):
        return alike, into
    n_children = np.bincount(parent + 1, minlength=n + 1)[1:]
    gone = alike[n_children[alike - 1] == 1]
    into[gone] = parent[gone]
    while True:  # 1, 2, 4, ... steps at once
        further = into[into[gone]]
        if (further == into[gone]).all():
            return gone, into
        into[gone] = further


def _with_merged(values: Longs, merged: Longs, into: Longs) -> Longs:
    """Return what each listed event comes to with what is merged into it: (m,) int64; what is merged keeps its own."""
    if not len(merged):
        return values
    whole = values.copy()
    np.add.at(whole, into[merged], values[merged])
    return whole


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
