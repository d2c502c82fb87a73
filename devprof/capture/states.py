"""States of a capture, as a table. Nothing else decides what may follow what.

READY --prepare--> WARMUP --start--> RECORDING --stop--> PROCESSING --finish--> DONE; `cancel` leads from every state but DONE
to CANCELLED.
"""

from __future__ import annotations

from enum import Enum

from devprof.errors import SessionError

__all__ = ["SessionState", "advance"]


class SessionState(Enum):
    """Where a capture stands; the first four are Kineto's words."""

    READY = "ready"
    WARMUP = "warmup"
    RECORDING = "recording"
    PROCESSING = "processing"
    DONE = "done"
    CANCELLED = "cancelled"


_NEXT = {
    (SessionState.READY, "prepare"): SessionState.WARMUP,
    (SessionState.WARMUP, "start"): SessionState.RECORDING,
    (SessionState.RECORDING, "stop"): SessionState.PROCESSING,
    (SessionState.PROCESSING, "finish"): SessionState.DONE,
    (SessionState.READY, "cancel"): SessionState.CANCELLED,
    (SessionState.WARMUP, "cancel"): SessionState.CANCELLED,
    (SessionState.RECORDING, "cancel"): SessionState.CANCELLED,
    (SessionState.PROCESSING, "cancel"): SessionState.CANCELLED,
}


def advance(state: SessionState, action: str) -> SessionState:
    """Return the state after `action`.

    Raises:
        SessionError: the action is not possible in that state.
    """
    following = _NEXT.get((state, action))
    if following is None:
        possible = sorted(a for s, a in _NEXT if s is state)
        raise SessionError(f"cannot {action} a capture that is {state.value}; possible now: {possible or 'nothing'}")
    return following
