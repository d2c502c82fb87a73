"""Run a plugin's hooks on a thread of their own, and wait for them only so long.

A fresh thread per phase, not one worker: with `with_stack` torch traces the Python frames of every thread that exists when
its tracer starts, and a thread made later stays out of the user's trace (docs/adr/0004).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from devprof.capture.settings import budget_s
from devprof.errors import CaptureError

__all__ = ["Outcome", "PhaseRunner"]

_POLL_S = 0.05


@dataclass(slots=True)
class Outcome:
    """How a phase ended.

    Attributes:
        finished: False where it was given up on; its thread may run on.
        error: what left the phase's function, if anything did.
        hurried: True where it was given up on because somebody was in a hurry, not for its time budget.
        interrupt: a Ctrl-C that came meanwhile. The caller raises it once the phase is accounted for.
        thread: where it ran, or still runs.
    """

    finished: bool
    error: BaseException | None = None
    hurried: bool = False
    interrupt: KeyboardInterrupt | None = None
    thread: threading.Thread | None = None


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
        on_thread: Callable[[], object] | None = None,
    ) -> None:
        """Make a runner.

        Args:
            timeout_s: time budget of one phase, seconds; None takes `budget_s()`.
            grace_s: what is left to a phase once `hurry()` was called, seconds.
            on_thread: called first on every phase thread; a host shuts its own recording off there.
        """
        self._timeout_s = budget_s() if timeout_s is None else timeout_s
        self._on_thread = on_thread
        self._grace_s = grace_s
        self._hurried_at: float | None = None

    @property
    def timeout_s(self) -> float:
        """Time budget of one phase, seconds."""
        return self._timeout_s

    def beside(self) -> PhaseRunner:
        """Return a runner with the same budget, for another thread's phases: a hurry of the one is none of the other."""
        return PhaseRunner(self._timeout_s, grace_s=self._grace_s, on_thread=self._on_thread)

    def hurry(self) -> None:
        """Shorten every wait, the present one included, to the grace period. A second call changes nothing."""
        if self._hurried_at is None:
            self._hurried_at = time.monotonic()

    def run(self, label: str, phase: Callable[[], object]) -> Outcome:
        """Run `phase` on a new thread and wait for it within the budget.

        An exception of the phase, SystemExit and KeyboardInterrupt included, is in the outcome. A KeyboardInterrupt of the
        *waiting* thread is a hurry: the phase gets its grace, and the interrupt is in the outcome.
        """
        done, ended = Outcome(finished=False), threading.Event()

        def body() -> None:
            try:
                if self._on_thread is not None:
                    self._on_thread()
                phase()
            except BaseException as error:  # noqa: BLE001 - a plugin may raise anything; the outcome carries it
                done.error = error
            done.finished = True
            ended.set()

        began = time.monotonic()
        thread = threading.Thread(target=body, name=f"devprof-{label}", daemon=True)
        try:
            interrupt = self._start(thread)
        except RuntimeError as error:  # the system has no thread left, or the interpreter is going
            return Outcome(finished=True, error=CaptureError(f"no thread could be started for {label}: {error}"))
        interrupt = self._wait(thread, ended, began) or interrupt
        if done.finished:
            return replace(done, interrupt=interrupt, thread=thread)
        return Outcome(False, None, self._hurried_at is not None, interrupt, thread)

    def _start(self, thread: threading.Thread) -> KeyboardInterrupt | None:
        try:
            thread.start()  # waits until the thread runs, so a Ctrl-C may come here
        except KeyboardInterrupt as error:
            self.hurry()
            return error
        return None

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
