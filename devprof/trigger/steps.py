"""`StepGate`: a capture begins and ends where a step of the program does.

The steps are counted on the program's threads; what records is started and stopped on a thread of devprof's own, so that it can
be stopped whatever becomes of the program's. At the two borders the program's thread waits for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable

__all__ = ["BORDER_WAIT_S", "StepGate", "Steps"]

BORDER_WAIT_S = 30.0
"""How long a program's thread waits at most at a border: as long as a plugin's hook may take."""


class StepGate:
    """One request of steps.

    The first thread that ends a step sets the pace: only its steps of the same kind count.

    Args:
        steps: how many whole steps to record.
        wake: called whenever there is something to do for the thread that records. Callable from any thread.
    """

    def __init__(self, steps: int, wake: Callable[[], object]) -> None:
        self._wanted = steps
        self._wake = wake
        self._lock = threading.Lock()
        self._pace: Hashable = None
        self._began = threading.Event()
        self._ended = threading.Event()
        self.count = 0
        self.may_begin = False
        self.is_over = False

    def passed(self, who: Hashable) -> None:
        """Say that a step ended. Called on the program's threads; waits at the two borders, for a bounded time."""
        pace = (threading.get_ident(), who)
        with self._lock:
            if self._pace is None:
                self._pace, self.may_begin = pace, True
                border = self._began
            elif pace == self._pace and self._began.is_set() and not self.is_over:
                self.count += 1
                if self.count < self._wanted:
                    return
                self.is_over = True
                border = self._ended
            else:
                return
        self._wake()
        border.wait(BORDER_WAIT_S)

    def began(self) -> None:
        """Say that it records; the program goes on."""
        self._began.set()

    def ended(self) -> None:
        """Say that it is over, however it went; the program goes on."""
        self._began.set()
        self._ended.set()


class Steps:
    """Where the program says that a step ended; costs one look where nobody has asked for steps."""

    def __init__(self) -> None:
        self.gate: StepGate | None = None

    def passed(self, who: Hashable = "step") -> None:
        """Say that a step ended. Callable from any thread."""
        gate = self.gate
        if gate is not None:
            gate.passed(who)
