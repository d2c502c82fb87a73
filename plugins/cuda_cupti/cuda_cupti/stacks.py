"""devprof's op and user ids on CUPTI's own stacks, which are per thread and live as long as the process."""

from __future__ import annotations

import ctypes
import os
import threading

from cuda_cupti.binding import Cupti
from cuda_cupti.external_ids import OP_KIND, USER_KIND, ExternalIds

__all__ = ["CorrelationStacks"]

_PUSH, _POP = "cuptiActivityPushExternalCorrelationId", "cuptiActivityPopExternalCorrelationId"

_EMPTY = 18  # CUPTI_ERROR_QUEUE_EMPTY


class _Local(threading.local):
    """What this thread has on CUPTI's stacks, and the session that it put it there for.

    Attributes:
        pushed: by kind, for each range that the thread is in, how many ids are to be taken off at its end: none where CUPTI
            refused the push. The first number is of those that no range takes off any more.
    """

    def __init__(self) -> None:
        self.session: ExternalIds | None = None
        self.pushed = {OP_KIND: [0], USER_KIND: [0]}


class CorrelationStacks:
    """Pushes and pops ids, on the thread that runs the op; one object per process and libcupti.

    A stack is never taken below what devprof itself pushed: another client's entries stay. What a session left on a thread,
    because it stopped inside a range, is taken off when the thread next enters one; until then its stamp gives it away.
    """

    def __init__(self, cupti: Cupti) -> None:
        """Take a library whose activity API is in use."""
        self._cupti = cupti
        self._local = _Local()
        self._ids: ExternalIds | None = None
        self._last = ctypes.c_uint64()  # nobody reads it; CUPTI wants a place
        self._refused = self._stuck = 0
        os.register_at_fork(after_in_child=self._after_fork)

    def begin(self) -> ExternalIds:
        """Start a session of ids, and return it."""
        self._refused = self._stuck = 0
        self._ids = ExternalIds()
        return self._ids

    def end(self) -> tuple[int, int]:
        """End the session; return how many pushes CUPTI refused, and how many pops."""
        self._ids = None
        return self._refused, self._stuck

    def push(self, kind: int, id: int) -> None:
        """Put an id on the calling thread's stack of a kind. Nothing without a session."""
        ids = self._ids
        if ids is None:
            return
        local = self._local
        if local.session is not ids:
            self._clean(local, ids)
        # counted first: a Ctrl-C in between leaves one pop too many, which CUPTI answers, and not one too few
        local.pushed[kind].append(1)
        if self._cupti.attempt(_PUSH, kind, ids.outgoing(id)):
            local.pushed[kind][-1] = 0  # what lies on the stack then is another's
            self._refused += 1

    def pop(self, kind: int) -> None:
        """Take the innermost id of a kind from the calling thread's stack; nothing where this session put none there."""
        local = self._local
        pushed = local.pushed[kind]
        if (self._ids is not None and local.session is not self._ids) or len(pushed) == 1:
            return
        if left := self._taken_off(kind, pushed.pop()):
            pushed[-1] += left  # it lies on top of what the range around took, which takes it off too
            self._stuck += 1

    def _clean(self, local: _Local, ids: ExternalIds) -> None:
        """Take off what an earlier session left on this thread."""
        for kind, pushed in local.pushed.items():
            self._taken_off(kind, sum(pushed))
            local.pushed[kind] = [0]
        local.session = ids

    def _taken_off(self, kind: int, n: int) -> int:
        """Take so many ids off; return how many CUPTI left there."""
        for done in range(n):
            # an empty stack holds none of ours
            if self._cupti.attempt(_POP, kind, ctypes.byref(self._last)) not in (0, _EMPTY):
                return n - done
        return 0

    def _after_fork(self) -> None:
        self._ids = None
        self._local = _Local()
