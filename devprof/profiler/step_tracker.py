"""`StepTracker`: one count of steps, where several parts of a program count theirs.

Source: torch/autograd/profiler.py (`KinetoStepTracker`).
"""

from __future__ import annotations

import os
import threading

from devprof.capture import tell
from devprof.errors import DevprofWarning

__all__ = ["PROFILER_STEP", "StepTracker", "step_tracker"]

PROFILER_STEP = "ProfilerStep"
"""The profiler's own name among the requesters, and the first part of the name of its ranges."""


class StepTracker:
    """Counts steps for several requesters; the global step is the greatest of their counts. Callable from any thread.

    A training loop has one step where its profiler and each of its optimizers count one.
    """

    def __init__(self) -> None:
        self._steps: dict[str, int] = {}
        self._current = 0
        self._replace_lock()
        os.register_at_fork(after_in_child=self._replace_lock)

    def init_step_count(self, requester: str) -> None:
        """Let a requester count from the global step on."""
        with self._lock:
            self._steps[requester] = self._current

    def erase_step_count(self, requester: str) -> bool:
        """Forget a requester; say whether it was known. The global step stays."""
        with self._lock:
            return self._steps.pop(requester, None) is not None

    def increment_step(self, requester: str) -> int:
        """Count a step of a requester, and return the global step; warn where that jumps by more than one."""
        with self._lock:
            self._steps[requester] = self._steps.get(requester, self._current) + 1
            before, self._current = self._current, max(self._current, *self._steps.values())
            current, counts = self._current, dict(self._steps)
        if current - before > 1:
            tell(f"the step count went from {before} to {current} at once; counts are {counts}", DevprofWarning)
        return current

    def current_step(self) -> int:
        """Return the global step."""
        return self._current

    def _replace_lock(self) -> None:
        self._lock = threading.Lock()


step_tracker = StepTracker()
"""The tracker of this process."""
