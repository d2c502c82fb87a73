"""Callbacks on ranges: who is told of an enter and of the exit that belongs to it.

Source: torch's `at::RecordFunctionCallback`, `addGlobalCallback`, `addThreadLocalCallback` and `removeCallback`, with their
scopes, sampling and `needs_inputs`. Unlike there, a callback that is removed hears nothing more, not even the exits of ranges
whose enter it saw: whoever has gone must not be called.
"""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections.abc import Callable, Iterable
from typing import Any

from devprof.errors import UsageError
from devprof.host.gate import GATE
from devprof.host.scopes import RecordScope

__all__ = ["CALLBACKS", "CallbackHandle", "Enter", "Exit", "RangeEvent", "Registry", "checked_handle"]

_logger = logging.getLogger("devprof.host")


class RangeEvent:
    """What a callback learns of a range. The same object is given at enter and at exit.

    Attributes:
        name: what the range is called.
        scope: its kind.
        id: its id, unique in the process and never 0.
        inputs: its inputs, for a callback with `needs_inputs`; else empty.
        sequence_nr: its sequence number, -1: none.
        forward_thread_id: native id of the thread that ran the forward op, 0: none.
        overload_name: which overload of the op it is.
    """

    __slots__ = ("forward_thread_id", "id", "inputs", "name", "overload_name", "scope", "sequence_nr")

    def __init__(
        self,
        name: str,
        scope: RecordScope,
        id: int,
        *,
        inputs: tuple[object, ...] = (),
        sequence_nr: int = -1,
        forward_thread_id: int = 0,
        overload_name: str = "",
    ) -> None:
        self.name, self.scope, self.id, self.inputs = name, scope, id, inputs
        self.sequence_nr, self.forward_thread_id, self.overload_name = sequence_nr, forward_thread_id, overload_name

    def without_inputs(self) -> RangeEvent:
        """Return the event as a callback without `needs_inputs` sees it."""
        return RangeEvent(
            self.name,
            self.scope,
            self.id,
            sequence_nr=self.sequence_nr,
            forward_thread_id=self.forward_thread_id,
            overload_name=self.overload_name,
        )

    def __repr__(self) -> str:
        return f"RangeEvent({self.name!r}, {self.scope.name}, id={self.id})"


Enter = Callable[[RangeEvent], Any]
Exit = Callable[[RangeEvent, Any], object]


class CallbackHandle:
    """One registered callback. Made by `add_global_callback` and `add_thread_local_callback`.

    Attributes:
        scopes: the scopes that it sees; None: all.
        needs_inputs: whether its events carry inputs.
        discarded_exits: how many exits it was spared because it had been removed after the enter.
        is_removed: True once removed.
    """

    def __init__(
        self, enter: Enter, exit: Exit | None, scopes: frozenset[RecordScope] | None, probability: float, inputs: bool
    ) -> None:
        self.scopes, self.needs_inputs = scopes, inputs
        self.discarded_exits = 0
        self.is_removed = False
        self._enter, self._exit = enter, exit
        self._probability = probability
        self._random = _random_numbers() if probability < 1.0 else float
        self._has_raised = False
        self._running: list[int] = []  # threads that are inside; list methods are atomic
        self._idle = threading.Event()

    def wants(self, scope: RecordScope) -> bool:
        """Say whether to call it for this range; with sampling, that is a matter of chance."""
        return (self.scopes is None or scope in self.scopes) and (
            self._probability >= 1.0 or self._random() < self._probability
        )

    def call_enter(self, event: RangeEvent) -> tuple[bool, Any]:
        """Return whether the exit is to be called, and what to call it with."""
        return self._guarded(self._enter, event)

    def call_exit(self, event: RangeEvent, state: Any) -> None:
        """Tell of an exit, unless the callback has been removed meanwhile."""
        if self.is_removed:
            self.discarded_exits += 1
        elif self._exit is not None:
            self._guarded(self._exit, event, state)

    def drain(self, timeout_s: float) -> bool:
        """Wait until no other thread is inside; False where the time was up first."""
        until, here = time.monotonic() + timeout_s, threading.get_ident()
        while any(thread != here for thread in self._running):
            self._idle.clear()
            if not any(thread != here for thread in self._running):
                break
            left = until - time.monotonic()
            if left <= 0 or not self._idle.wait(left):
                return False
        return True

    def only_thread(self, thread: int) -> None:
        """Forget that other threads than this one are inside, as they are not in the child of a fork."""
        self._running[:] = [other for other in self._running if other == thread]

    def _guarded(self, call: Callable[..., Any], *arguments: object) -> tuple[bool, Any]:
        here = threading.get_ident()
        self._running.append(here)
        try:
            return True, None if self.is_removed else call(*arguments)
        except Exception:
            if not self._has_raised:
                self._has_raised = True
                _logger.exception("callback %r raised; what it raises from now on is not logged", call)
            return False, None
        finally:
            self._running.remove(here)
            if self.is_removed:
                self._idle.set()


def _random_numbers() -> Callable[[], float]:
    import random  # loaded where somebody samples

    return random.Random().random  # of its own: the program's seeded numbers stay what they are


class _Own(threading.local):
    """The callbacks of one thread."""

    def __init__(self) -> None:
        self.callbacks: list[CallbackHandle] = []
        self.alive = _Alive(self.callbacks)


class _Alive:
    """Goes with its thread, and takes the thread's callbacks along."""

    def __init__(self, callbacks: list[CallbackHandle]) -> None:
        weakref.finalize(self, _thread_ended, callbacks).atexit = False


def _thread_ended(callbacks: list[CallbackHandle]) -> None:
    for handle in list(callbacks):
        CALLBACKS.remove(handle)


class Registry:
    """Every callback of the process. `changed` is called, under the gate's lock, when there are more or fewer."""

    def __init__(self) -> None:
        self.changed: Callable[[], None] = lambda: None
        self._global: tuple[CallbackHandle, ...] = ()
        self._own = _Own()
        self._lists: dict[CallbackHandle, list[CallbackHandle]] = {}

    def __bool__(self) -> bool:
        return bool(self._global or self._lists)

    def here(self) -> list[CallbackHandle]:
        """Return the callbacks that the calling thread's ranges are told to, those for all threads first."""
        # a range of a signal handler may come while this thread's list is being made
        return [*self._global, *getattr(self._own, "callbacks", ())]

    def add(self, handle: CallbackHandle, *, here_only: bool) -> None:
        """Register a callback, for all threads or for the calling one."""
        with GATE.lock:
            if here_only:
                self._lists[handle] = self._own.callbacks
                self._own.callbacks.append(handle)
            else:
                self._global = (*self._global, handle)
            self.changed()

    def remove(self, handle: CallbackHandle) -> None:
        """Forget a callback; nothing happens where it is not known."""
        handle.is_removed = True
        with GATE.lock:
            self._global = tuple(other for other in self._global if other is not handle)
            own = self._lists.pop(handle, None)
            if own is not None and handle in own:
                own.remove(handle)
            self.changed()

    def after_fork(self) -> None:
        """Go on in the child of a fork: threads that were inside a callback are not there."""
        here = threading.get_ident()
        for handle in (*self._global, *self._lists):
            handle.only_thread(here)
        self.changed()


CALLBACKS = Registry()


def checked_handle(
    enter: Enter,
    exit: Exit | None,
    scopes: Iterable[RecordScope] | None,
    sampling_probability: float,
    needs_inputs: bool,
) -> CallbackHandle:
    """Return a handle that is not registered yet.

    Raises:
        UsageError: something cannot be called, a scope is none, or the probability is not from 0 to 1.
    """
    if not callable(enter) or not (exit is None or callable(exit)):
        raise UsageError(f"a callback is called at enter and at exit; found {enter!r} and {exit!r}")
    if not isinstance(sampling_probability, int | float) or not 0.0 <= sampling_probability <= 1.0:
        raise UsageError(f"sampling_probability is {sampling_probability!r}, expected a number from 0 to 1")
    try:
        wanted = None if scopes is None else frozenset(RecordScope(scope) for scope in scopes)
    except (TypeError, ValueError) as error:
        raise UsageError(f"scopes is {scopes!r}, expected members of RecordScope") from error
    return CallbackHandle(enter, exit, wanted, sampling_probability, bool(needs_inputs))
