"""Run a plugin's hooks on a thread of their own, and wait for them only so long.

A fresh thread per phase, not one worker: with `with_stack` torch traces the Python frames of every thread that exists when
its tracer starts, and a thread made later stays out of the user's trace (docs/adr/0004).

Where no thread can be started, a phase runs on the calling thread, without a time limit: the system has none left, or the
program is ending, for Python 3.12 and later start none for a handler of `atexit`. A hook that hangs then hangs the program; a
phase that does not run loses every record and leaves the device recording.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

from devprof.capture.settings import budget_s
from devprof.registry.failures import must_propagate

__all__ = ["Outcome", "PhaseRunner", "started"]

_POLL_S = 0.05


@dataclass(slots=True)
class Outcome:
    """How a phase ended.

    Attributes:
        finished: False where it was given up on; its thread may run on.
        error: what left the phase's function, if anything did.
        hurried: True where it was given up on because somebody was in a hurry, not for its time budget.
        interrupt: a Ctrl-C that came meanwhile. The caller raises it once the phase is accounted for.
        thread: where it ran, or still runs; None: on the calling thread.
    """

    finished: bool
    error: BaseException | None = None
    hurried: bool = False
    interrupt: KeyboardInterrupt | None = None
    thread: threading.Thread | None = None


def started(thread: threading.Thread) -> bool:
    """Start a thread; False where none is to be had, so that the caller must do its work."""
    try:
        thread.start()
    except RuntimeError:
        return False
    return True


class PhaseRunner:
    """Runs functions on fresh daemon threads within a time budget. One host thread runs phases, one at a time.

    `hurry()` may be called from any thread, such as one that holds back a Ctrl-C: what runs then, and every later phase, gets
    a short grace.
    """

    def __init__(
        self,
        timeout_s: float | None = None,
        *,
        grace_s: float = 2.0,
        around: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        """Make a runner.

        Args:
            timeout_s: time budget of one phase, seconds; None takes `budget_s()`.
            grace_s: what is left to a phase once `hurry()` was called, seconds.
            around: makes what is entered on the thread of a phase, around it; a host shuts its own recording off there.
        """
        self._timeout_s = budget_s() if timeout_s is None else timeout_s
        self._around = around
        self._grace_s = grace_s
        self._hurried_at: float | None = None

    @property
    def timeout_s(self) -> float:
        """Time budget of one phase, seconds."""
        return self._timeout_s

    def beside(self) -> PhaseRunner:
        """Return a runner with the same budget, for another thread's phases: a hurry of the one is none of the other."""
        return PhaseRunner(self._timeout_s, grace_s=self._grace_s, around=self._around)

    def hurry(self) -> None:
        """Shorten every wait, the present one included, to the grace period. A second call changes nothing."""
        if self._hurried_at is None:
            self._hurried_at = time.monotonic()

    def run(self, label: str, phase: Callable[[], object]) -> Outcome:
        """Run `phase` on a new thread and wait for it within the budget; without a limit where there is no thread for it.

        An exception of the phase, SystemExit and KeyboardInterrupt included, is in the outcome. A KeyboardInterrupt of the
        *waiting* thread is a hurry: the phase gets its grace, and the interrupt is in the outcome.
        """
        done, ended = Outcome(finished=False), threading.Event()

        def body() -> None:
            try:
                with self._around():
                    phase()
            except BaseException as error:  # noqa: BLE001 - a plugin may raise anything; the outcome carries it
                done.error = error
            done.finished = True
            ended.set()

        began = time.monotonic()
        thread = threading.Thread(target=body, name=f"devprof-{label}", daemon=True)
        on_its_own, interrupt = self._start(thread)
        if not on_its_own:
            body()
            return _of_this_thread(done)
        interrupt = self._wait(thread, ended, began) or interrupt
        if done.finished:
            return replace(done, interrupt=interrupt, thread=thread)
        return Outcome(False, None, self._hurried_at is not None, interrupt, thread)

    def _start(self, thread: threading.Thread) -> tuple[bool, KeyboardInterrupt | None]:
        try:
            return started(thread), None
        except KeyboardInterrupt as error:  # `start` waits until the thread runs
            self.hurry()
            return True, error

    def _wait(self, thread: threading.Thread, ended: threading.Event, began: float) -> KeyboardInterrupt | None:
        interrupt = None
        while True:
            try:
                left = self._deadline(began) - time.monotonic()
                if ended.wait(min(max(left, 0.0), _POLL_S)):
                    thread.join()  # torch must not find it when its tracer starts
                    return interrupt
                if left <= 0:
                    return interrupt
            except KeyboardInterrupt as error:
                interrupt = error
                self.hurry()

    def _deadline(self, began: float) -> float:
        budget = began + self.timeout_s
        return budget if self._hurried_at is None else min(budget, max(began, self._hurried_at) + self._grace_s)


def _of_this_thread(done: Outcome) -> Outcome:
    """Return the outcome of a phase that ran on the calling thread, where a Ctrl-C ends the hook itself."""
    error = done.error
    if isinstance(error, KeyboardInterrupt) and must_propagate(error):
        return replace(done, error=None, interrupt=error)
    return done
