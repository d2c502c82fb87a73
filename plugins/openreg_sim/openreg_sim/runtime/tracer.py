"""`OpenRegTracer`: the ids that an outer framework has put on the calling thread.

One stack per thread and kind, behind one flag. Enabling starts an epoch, and a stack of an earlier epoch counts as empty, so
that pushes without a pop do not leak from one capture into the next. Where the native device is loaded, its tracer holds the
stacks, because torch's ops push on it without Python; else they are here. A client whose framework can be asked at any time
may have calls from Python ask it, which is right also where tasks take turns on a thread.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from dataclasses import dataclass

from openreg_sim.runtime.records import ActivityKind, ExternalCorrelationKind

__all__ = ["OpenRegTracer", "TracerCounts"]

_ALL_KINDS = sum(kind.bit for kind in ActivityKind)  # the native tracer keeps ids for all kinds, or for none


@dataclass(frozen=True, slots=True)
class TracerCounts:
    """What happened on the stacks of all threads since the tracer was last enabled.

    Attributes:
        unbalanced_pops: pops that found an empty stack.
        pushes: ids put on a stack; None where the native device holds the stacks, which does not count them.
        pops: ids taken off; None likewise.
        stale: ids of an earlier epoch that were thrown away; None likewise.
    """

    unbalanced_pops: int
    pushes: int | None
    pops: int | None
    stale: int | None


class _Stacks:
    """One thread's stacks and counters; written by that thread only, so no lock is taken per push."""

    __slots__ = ("epoch", "ids", "pops", "pushes", "stale", "unbalanced")

    def __init__(self) -> None:
        self.epoch = -1
        self.ids: tuple[list[int], ...] = tuple([] for _ in ExternalCorrelationKind)
        self.pushes = self.pops = self.unbalanced = self.stale = 0

    def enter(self, epoch: int) -> None:
        """Empty the stacks and counters that were left from an earlier epoch."""
        self.epoch = epoch
        self.stale = sum(len(ids) for ids in self.ids)
        self.pushes = self.pops = self.unbalanced = 0
        for ids in self.ids:
            ids.clear()


class OpenRegTracer:
    """Stacks of external ids, per thread and kind. Every method may be called from any thread.

    Args:
        find_native: returns the native device's library, or None; asked each time the tracer is enabled.
    """

    def __init__(self, find_native: Callable[[], ctypes.CDLL | None] = lambda: None) -> None:
        self.enabled = False
        self.ask: Callable[[], tuple[int, int]] | None = None
        """Gives the op id and user id of the calling thread or task; the stacks here are only for what it does not know."""
        self._find_native = find_native
        self._native: ctypes.CDLL | None = None
        self._native_unbalanced = 0
        self._epoch = 0
        self._local = threading.local()
        self._entered: list[_Stacks] = []

    def enable(self) -> None:
        """Start an epoch with empty stacks; does nothing if enabled."""
        if self.enabled:
            return
        self._entered = []  # before the epoch: a thread enters itself when it sees a new epoch
        self._epoch += 1
        self._native = self._find_native()
        if self._native is not None:
            self._native_unbalanced = self._native.orTracerUnbalancedPops()
            # off first: if another runtime left it on, turning it on again would start no epoch
            self._native.orActivityDisableTracing(_ALL_KINDS)
            self._native.orActivityEnableTracing(_ALL_KINDS)
        self.enabled = True

    def disable(self) -> None:
        """Ignore pushes and pops from now on."""
        if self.enabled and self._native is not None:
            self._native.orActivityDisableTracing(_ALL_KINDS)
        self.enabled = False

    def push(self, kind: int, id: int) -> None:
        """Put an id on the calling thread's stack of that kind. Does nothing while disabled."""
        if not self.enabled:
            return
        if self._native is not None:
            self._native.orTracerPush(kind, id)
            return
        stacks = self._mine()
        stacks.ids[kind].append(id)
        stacks.pushes += 1

    def pop(self, kind: int) -> int:
        """Take the innermost id off the calling thread's stack and return it; 0 if there is none, or while disabled."""
        if not self.enabled:
            return 0
        if self._native is not None:
            last = int(self._native.orTracerTop(kind))
            self._native.orTracerPop(kind)
            return last
        stacks = self._mine()
        if not stacks.ids[kind]:
            stacks.unbalanced += 1
            return 0
        stacks.pops += 1
        return stacks.ids[kind].pop()

    def current(self) -> tuple[int, int]:
        """Return the calling thread's innermost op id and user id; 0 where there is none."""
        if not self.enabled:
            return 0, 0
        if self.ask is not None:
            op_id, user_id = self.ask()
            if op_id or user_id or self._native is not None:
                return op_id, user_id
        if self._native is not None:
            return self._native.orTracerTop(0), self._native.orTracerTop(1)
        operator, user = self._mine().ids
        return operator[-1] if operator else 0, user[-1] if user else 0

    def counts(self) -> TracerCounts:
        """Return the sum over all threads that have used their stacks in this epoch."""
        if self._native is not None:
            return TracerCounts(self._native.orTracerUnbalancedPops() - self._native_unbalanced, None, None, None)
        entered = list(self._entered)
        return TracerCounts(
            unbalanced_pops=sum(s.unbalanced for s in entered),
            pushes=sum(s.pushes for s in entered),
            pops=sum(s.pops for s in entered),
            stale=sum(s.stale for s in entered),
        )

    def _mine(self) -> _Stacks:
        stacks: _Stacks | None = getattr(self._local, "stacks", None)
        if stacks is None:
            stacks = self._local.stacks = _Stacks()
        if stacks.epoch != self._epoch:
            stacks.enter(self._epoch)
            self._entered.append(stacks)
        return stacks
