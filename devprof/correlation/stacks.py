"""`PythonStacks`: the correlation stacks in pure Python, used where no native provider is registered.

Balance is not assumed. A profiler that stops inside a range leaves its id behind, and one that starts inside a range sees a
pop without a push. So a thread's stacks carry the generation (session) they were filled in and are emptied when the thread
first uses them in a later one, and a pop from an empty stack does nothing but count.

Ids belong to threads and not to asyncio tasks, as in Kineto and CUPTI, whose stacks are thread-local too: a vendor's runtime
in C reads them at the launch and cannot see a `contextvars.Context`, and a context variable would make each push several
times dearer. A coroutine that awaits with an entry on the stack leaves it there for whatever runs next on the loop's thread.
So push and pop around stretches of code that do not await, or read `current()` before the await and push it again after.
"""

from __future__ import annotations

import os
import threading

from devprof.correlation.provider import Correlation, StackDepths

__all__ = ["PythonStacks"]


class _Local(threading.local):
    """One thread's stacks, and the generation that they were filled in."""

    def __init__(self) -> None:
        self.generation = 0
        self.ops: list[int] = []
        self.users: list[int] = []


class PythonStacks:
    """Two stacks of ids per thread. Implements `CorrelationProvider`; a push and a pop together cost about 0.3 us."""

    def __init__(self) -> None:
        self._local = _Local()
        self._generation = 0
        self._unbalanced = 0
        self._lock = threading.Lock()
        if hasattr(os, "register_at_fork"):
            # a fork while another thread counts would leave the child with a lock that nobody will release
            os.register_at_fork(after_in_child=self._replace_lock)

    def current_op_id(self) -> int:
        """Return the innermost op id of the calling thread, 0: none."""
        local = self._local
        if local.generation != self._generation:
            self._clear(local)
        return local.ops[-1] if local.ops else 0

    def current_user_id(self) -> int:
        """Return the innermost user id of the calling thread, 0: none."""
        local = self._local
        if local.generation != self._generation:
            self._clear(local)
        return local.users[-1] if local.users else 0

    def current(self) -> Correlation:
        """Return the innermost op id and user id of the calling thread."""
        local = self._local
        if local.generation != self._generation:
            self._clear(local)
        ops, users = local.ops, local.users
        return Correlation(ops[-1] if ops else 0, users[-1] if users else 0)

    def push_correlation_id(self, id: int) -> None:
        """Open an op on the calling thread."""
        local = self._local
        if local.generation != self._generation:
            self._clear(local)
        local.ops.append(id)

    def pop_correlation_id(self) -> None:
        """Close the innermost op of the calling thread; on an empty stack only count the call."""
        local = self._local
        if local.generation != self._generation:
            self._clear(local)
        if local.ops:
            local.ops.pop()
        else:
            self._count_unbalanced()

    def push_user_correlation_id(self, id: int) -> None:
        """Open a user range on the calling thread."""
        local = self._local
        if local.generation != self._generation:
            self._clear(local)
        local.users.append(id)

    def pop_user_correlation_id(self) -> None:
        """Close the innermost user range of the calling thread; on an empty stack only count the call."""
        local = self._local
        if local.generation != self._generation:
            self._clear(local)
        if local.users:
            local.users.pop()
        else:
            self._count_unbalanced()

    def new_generation(self) -> int:
        """Start a generation, with no unbalanced pops, and return its number."""
        with self._lock:
            self._generation += 1
            self._unbalanced = 0
            return self._generation

    def unbalanced_pops(self) -> int:
        """Return how many pops of this generation, on all threads, found an empty stack."""
        return self._unbalanced

    def depths(self) -> StackDepths:
        """Return how deep the calling thread's stacks are."""
        local = self._local
        if local.generation != self._generation:
            self._clear(local)
        return StackDepths(len(local.ops), len(local.users))

    def _clear(self, local: _Local) -> None:
        local.generation = self._generation
        local.ops.clear()
        local.users.clear()

    def _count_unbalanced(self) -> None:
        with self._lock:
            self._unbalanced += 1

    def _replace_lock(self) -> None:
        self._lock = threading.Lock()
