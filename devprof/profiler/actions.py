"""What the profiler does at each step, and what it takes to get from one step to the next: one table.

Source: torch/profiler/profiler.py (`ProfilerAction` and the action map of `profile`).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from devprof.errors import UsageError

__all__ = ["TRANSITIONS", "Move", "ProfilerAction", "action_of"]


class ProfilerAction(Enum):
    """What the profiler does during a step.

    A schedule returns one of the first four. `DEVICE_STOPPED` is the profiler's own: the device stopped recording early, and
    the rest of the cycle passes without.
    """

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3
    DEVICE_STOPPED = 4


class Move(Enum):
    """One move between two steps.

    Attributes:
        PREPARE: the plugins get ready.
        START: recording begins.
        STOP: recording ends and the trace is there.
        TRACE_READY: the user's callback gets the trace.
        WARN: the schedule makes no sense here; say so.
    """

    PREPARE = "prepare"
    START = "start"
    STOP = "stop"
    TRACE_READY = "trace ready"
    WARN = "warn"


_PREPARE, _START, _STOP, _READY, _WARN = Move.PREPARE, Move.START, Move.STOP, Move.TRACE_READY, Move.WARN
_BEGIN = (_PREPARE, _START)
_SAVE = (_STOP, _READY)

_NONE, _WARMUP, _RECORD, _LAST, _STOPPED = ProfilerAction

TRANSITIONS: Mapping[tuple[ProfilerAction, ProfilerAction | None], tuple[Move, ...]] = {
    (_NONE, _NONE): (),
    (_NONE, _WARMUP): (_PREPARE,),
    (_NONE, _RECORD): _BEGIN,
    (_NONE, _LAST): _BEGIN,
    (_WARMUP, _NONE): (_WARN, _START, _STOP),
    (_WARMUP, _WARMUP): (),
    (_WARMUP, _RECORD): (_START,),
    (_WARMUP, _LAST): (_START,),
    (_RECORD, _NONE): (_WARN, _STOP),
    # torch does not prepare here, and its next cycle then starts unprepared
    (_RECORD, _WARMUP): (_WARN, _STOP, _PREPARE),
    (_RECORD, _RECORD): (),
    (_RECORD, _LAST): (),
    (_LAST, _NONE): _SAVE,
    (_LAST, _WARMUP): (*_SAVE, _PREPARE),
    (_LAST, _RECORD): (*_SAVE, *_BEGIN),
    (_LAST, _LAST): (*_SAVE, *_BEGIN),
    # the callback is called although nothing may be in the trace: the cycle is over for the user too
    (_WARMUP, _STOPPED): (_START, *_SAVE),
    (_RECORD, _STOPPED): _SAVE,
    (_STOPPED, _STOPPED): (),
    (_STOPPED, _NONE): (),
    (_STOPPED, _WARMUP): (_PREPARE,),
    (_STOPPED, _RECORD): _BEGIN,
    (_STOPPED, _LAST): _BEGIN,
    # None: the profiler is stopped
    (_NONE, None): (),
    (_WARMUP, None): (_START, _STOP),
    (_RECORD, None): _SAVE,
    (_LAST, None): _SAVE,
    (_STOPPED, None): (),
}
"""Moves from the action of one step to that of the next; `None` is the stop of the profiler."""


def action_of(value: object, step: int) -> ProfilerAction:
    """Return what a schedule answered; torch's own actions are taken by their names.

    Args:
        value: the answer.
        step: the step that it is for.

    Raises:
        UsageError: it is no action, or one that is the profiler's own.
    """
    name = getattr(value, "name", None) if type(value).__name__ == "ProfilerAction" else None
    action = ProfilerAction.__members__.get(str(name))
    if action is None:
        raise UsageError(
            f"the schedule returned {value!r} for step {step}; expected a ProfilerAction: NONE, WARMUP, RECORD or "
            "RECORD_AND_SAVE"
        )
    if action is ProfilerAction.DEVICE_STOPPED:
        raise UsageError(
            f"the schedule returned DEVICE_STOPPED for step {step}; only the profiler itself may decide that"
        )
    return action
