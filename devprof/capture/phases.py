"""Run a plugin's hooks on a thread of their own, and wait for them only so long.

A fresh thread per phase, not one worker: with `with_stack` torch traces the Python frames of every thread that exists when
its tracer starts, and a thread made later stays out of the user's trace (docs/adr/0004).
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Outcome", "PhaseRunner", "budget_s"]

_POLL_S = 0.05


def budget_s() -> float:
    """Return how long a phase may take: ``DEVPROF_HOOK_TIMEOUT_S``, 30 seconds where it is not set or not a number."""
    try:
        return max(0.01, float(os.environ.get("DEVPROF_HOOK_TIMEOUT_S", "30")))
    except ValueError:
        return 30.0


@dataclass(slots=True)
class Outcome:
    """How a phase ended: `finished`, or given up; `error` is what left the phase's function, if anything did."""

    finished: bool
    error: BaseException | None = None


class PhaseRunner:
    """Runs functions on fresh daemon threads within a time budget.

    `hurry()` may be called from any thread, such as one that holds back a Ctrl-C: what runs then gets a short grace.
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
        self._hurry_at: float | None = None

    @property
    def timeout_s(self) -> float:
        """Time budget of one phase, seconds."""
        return self._timeout_s

    def hurry(self) -> None:
        """Shorten every wait, the present one included, to the grace period."""
        self._hurry_at = time.monotonic() + self._grace_s

    def run(self, label: str, phase: Callable[[], None]) -> Outcome:
        """Run `phase` on a new thread and wait for it within the budget.

        An exception of the phase, SystemExit and KeyboardInterrupt included, is in the outcome. A KeyboardInterrupt of the
        *waiting* thread propagates.
        """
        outcome = Outcome(finished=False)

        def body() -> None:
            try:
                if self._on_thread is not None:
                    self._on_thread()
                phase()
            except BaseException as error:  # a plugin may raise anything; the outcome carries it
                outcome.error = error
            outcome.finished = True

        thread = threading.Thread(target=body, name=f"devprof-{label}", daemon=True)
        deadline = time.monotonic() + self._timeout_s
        thread.start()
        self._wait(thread, deadline)
        return outcome if not thread.is_alive() else Outcome(finished=False)

    def _wait(self, thread: threading.Thread, deadline: float) -> None:
        while thread.is_alive():
            limit = deadline if self._hurry_at is None else min(deadline, self._hurry_at)
            left = limit - time.monotonic()
            if left <= 0:
                return
            thread.join(min(left, _POLL_S))
