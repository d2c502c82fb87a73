"""`Driver`: from the steps of a program to the moves of a host, by the table of transitions.

Source: torch/profiler/profiler.py (`profile.start`, `step`, `stop`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from devprof.capture import tell
from devprof.errors import DevprofWarning
from devprof.profiler.actions import TRANSITIONS, Move, ProfilerAction, action_of

__all__ = ["Driver"]

_CAN_STOP_EARLY = (ProfilerAction.WARMUP, ProfilerAction.RECORD)
_HELD = (Move.STOP, Move.TRACE_READY)


class Driver:
    """Knows at which step a profile is, what it does there, and what to do next. One thread at a time.

    Attributes:
        step_num: number of the step.
        action: what is done in this step.
        is_moving: True while moves are made, so also while the user's callback runs.
    """

    def __init__(
        self,
        schedule: Callable[[int], object],
        moves: Mapping[Move, Callable[[], object]],
        *,
        stopped_early: Callable[[], bool],
        cancel: Callable[[], object] = lambda: None,
    ) -> None:
        """Make a driver that has not begun.

        Args:
            schedule: gives the action of a step.
            moves: what to call for each move; `Move.WARN` is the driver's own.
            stopped_early: says whether the device has stopped recording by itself.
            cancel: ends whatever a move began that was not made to its end.

        Raises:
            UsageError: the schedule's answer for step 0 is no action.
        """
        self._schedule = schedule
        self._moves = moves
        self._stopped_early = stopped_early
        self._cancel = cancel
        self.is_moving = False
        self.step_num = 0
        self.action = self._planned = action_of(schedule(0), 0)

    def begin(self) -> None:
        """Begin with the step that the driver is at."""
        try:
            self._go(ProfilerAction.NONE, self.action)
        except BaseException:
            self.action = self._planned
            raise

    def step(self) -> None:
        """Go to the next step.

        Raises:
            UsageError: the schedule's answer is no action; the driver is still at the step before.
            BaseException: what a callback or an interrupt raised; the driver is at the next step, and in order.
        """
        number = self.step_num + 1
        planned = action_of(self._schedule(number), number)
        before, planned_before = self.action, self._planned
        self.step_num, self._planned = number, planned
        self.action = self._really(before, planned_before, planned)
        self._go(before, self.action)

    def count(self) -> None:
        """Go to the next step where nothing is prepared and nothing records: no move is made.

        Raises:
            UsageError: the schedule's answer is no action; the driver is still at the step before.
        """
        number = self.step_num + 1
        self.action = self._planned = action_of(self._schedule(number), number)
        self.step_num = number

    def end(self) -> None:
        """End, whatever the schedule says. A later `begin` goes on with the same step."""
        before, self.action = self.action, self._planned
        self._go(before, None)

    def _really(
        self, before: ProfilerAction, planned_before: ProfilerAction, planned: ProfilerAction
    ) -> ProfilerAction:
        """Return the plan, unless the device stopped recording in this cycle."""
        if before is ProfilerAction.DEVICE_STOPPED:
            over = planned_before is ProfilerAction.RECORD_AND_SAVE or planned is ProfilerAction.NONE
            return planned if over else ProfilerAction.DEVICE_STOPPED
        if before in _CAN_STOP_EARLY and planned is not ProfilerAction.NONE and self._stopped_early():
            tell(
                f"the device stopped recording before step {self.step_num}; the rest of this cycle is not recorded",
                DevprofWarning,
            )
            return ProfilerAction.DEVICE_STOPPED
        return planned

    def _go(self, before: ProfilerAction, after: ProfilerAction | None) -> None:
        """Make the moves from one step to the next.

        What the end of one recording raises waits until the next has begun: whoever gets it finds the profiler in order.
        """
        self.is_moving = True
        try:
            held = self._make_all(before, after)
        except BaseException:
            self._cancel()
            self.action = ProfilerAction.NONE  # nothing is prepared and nothing records
            raise
        finally:
            self.is_moving = False
        if held:
            raise held[0]

    def _make_all(self, before: ProfilerAction, after: ProfilerAction | None) -> list[BaseException]:
        held: list[BaseException] = []
        for move in TRANSITIONS[before, after]:
            if move is Move.TRACE_READY and any(isinstance(error, Exception) for error in held):
                continue  # the stop failed: there is no trace
            try:
                self._make(move, before, after)
            except BaseException as error:
                if move not in _HELD:
                    raise
                held.append(error)
        return held

    def _make(self, move: Move, before: ProfilerAction, after: ProfilerAction | None) -> None:
        if move is not Move.WARN:
            self._moves[move]()
        elif after is not None:
            tell(
                f"the schedule goes from {before.name} to {after.name}, so step {self.step_num - 1} is the last of its cycle "
                "and its trace is not saved; a cycle ends with RECORD_AND_SAVE",
                DevprofWarning,
            )
