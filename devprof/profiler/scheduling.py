"""`schedule`: which steps are recorded.

Source: torch/profiler/profiler.py (`schedule`).
"""

from __future__ import annotations

import operator
from dataclasses import dataclass

from devprof.capture import tell
from devprof.errors import DevprofWarning, UsageError
from devprof.profiler.actions import ProfilerAction

__all__ = ["Schedule", "always_record", "schedule"]


@dataclass(frozen=True, slots=True)
class Schedule:
    """Gives the action of each step; made by `schedule`."""

    wait: int
    warmup: int
    active: int
    repeat: int
    skip_first: int
    skip_first_wait: bool

    def __call__(self, step: int) -> ProfilerAction:
        """Return what the profiler does in a step.

        Args:
            step: number of the step, from 0.

        Raises:
            UsageError: it is negative.
        """
        if step < 0:
            raise UsageError(f"step is {step}; steps are numbered from 0")
        if step < self.skip_first:
            return ProfilerAction.NONE
        cycle = self.wait + self.warmup + self.active
        passed = step - self.skip_first + (self.wait if self.skip_first_wait else 0)
        if self.repeat and passed >= self.repeat * cycle:
            return ProfilerAction.NONE
        return self._within(passed % cycle)

    def _within(self, step: int) -> ProfilerAction:
        if step < self.wait:
            return ProfilerAction.NONE
        if step < self.wait + self.warmup:
            return ProfilerAction.WARMUP
        last = step == self.wait + self.warmup + self.active - 1
        return ProfilerAction.RECORD_AND_SAVE if last else ProfilerAction.RECORD


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Schedule:
    """Return a schedule: skip some steps, then in cycles wait, warm up and record.

    Args:
        wait: steps of each cycle in which nothing happens.
        warmup: steps in which the plugins are prepared and nothing is recorded; 0 lets the first recorded step pay for that.
        active: steps that are recorded, at least 1; the trace is ready at the end of the last.
        repeat: number of cycles; 0: until the profiler is stopped.
        skip_first: steps before the first cycle.
        skip_first_wait: not 0: the first cycle has no wait.

    Raises:
        UsageError: a number is negative, or `active` is 0, or something is no whole number.

    Example:
        >>> plan = schedule(wait=1, warmup=1, active=2)
        >>> [plan(step).name for step in range(5)]
        ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """
    counts = {"wait": wait, "warmup": warmup, "active": active, "repeat": repeat, "skip_first": skip_first}
    whole = {name: _count(name, value, least=1 if name == "active" else 0) for name, value in counts.items()}
    if whole["warmup"] == 0:
        tell("the schedule has no warmup, so the first recorded step of a cycle may take longer", DevprofWarning)
    return Schedule(**whole, skip_first_wait=bool(skip_first_wait))


def always_record(step: int) -> ProfilerAction:
    """Record every step; what a profiler does that has no schedule."""
    return ProfilerAction.RECORD


def _count(name: str, value: object, *, least: int) -> int:
    try:
        number = operator.index(value)  # type: ignore[arg-type]  # the call is the check
    except TypeError:
        raise UsageError(f"schedule: {name} is {value!r}; expected a whole number from {least} up") from None
    if number < least:
        raise UsageError(f"schedule: {name} is {number}; expected {least} or more")
    return int(number)
