"""`RangeProvider`: the correlation ids of a recording session are the ids of its ranges."""

from __future__ import annotations

from devprof.correlation import Correlation, PythonStacks
from devprof.host.gate import current_range

__all__ = ["RangeProvider"]


class RangeProvider(PythonStacks):
    """Implements `devprof.correlation.CorrelationProvider`. Callable from any thread.

    The op id is that of the innermost range of any scope, so that a launch inside a user range alone belongs to that range; the
    user id is that of the innermost user range. Both follow the context: an asyncio task has its own, and what a thread pool
    runs has those of where it was submitted. An id that the program pushes itself goes before the ranges, on its thread.
    """

    def __init__(self) -> None:
        super().__init__()
        self._first_id = 0

    def begin(self, first_id: int) -> None:
        """Start a session whose ids are greater than `first_id`: earlier ranges are not current in it."""
        self.new_generation()
        self._first_id = first_id

    def current_op_id(self) -> int:
        """Return the id pushed last on this thread, else that of the innermost range, 0: none."""
        return self.current().op_id

    def current_user_id(self) -> int:
        """Return the user id pushed last on this thread, else that of the innermost user range, 0: none."""
        return self.current().user_id

    def current(self) -> Correlation:
        """Return both."""
        op_id, user_id = super().current()
        entered, first = current_range(), self._first_id
        if not op_id and entered.id > first:
            op_id = entered.id
        if not user_id and entered.user_id > first:
            user_id = entered.user_id
        return Correlation(op_id, user_id)
