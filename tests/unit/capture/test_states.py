"""A capture goes one way, and says what is possible where it stands."""

from __future__ import annotations

import pytest

from devprof.capture import SessionState, advance
from devprof.errors import SessionError, UsageError

S = SessionState
TABLE = {
    (S.READY, "prepare"): S.WARMUP,
    (S.WARMUP, "start"): S.RECORDING,
    (S.RECORDING, "stop"): S.PROCESSING,
    (S.PROCESSING, "finish"): S.DONE,
    **{(state, "cancel"): S.CANCELLED for state in (S.READY, S.WARMUP, S.RECORDING, S.PROCESSING)},
}
ACTIONS = ("prepare", "start", "stop", "finish", "cancel", "rewind")


@pytest.mark.parametrize(("step", "following"), TABLE.items())
def test_a_step_of_the_table_is_taken(step: tuple[SessionState, str], following: SessionState) -> None:
    assert advance(*step) is following


@pytest.mark.parametrize(
    ("state", "action"), [(state, action) for state in S for action in ACTIONS if (state, action) not in TABLE]
)
def test_every_other_step_is_refused_with_those_that_are_possible(state: SessionState, action: str) -> None:
    possible = sorted(one for known, one in TABLE if known is state)
    with pytest.raises(SessionError) as caught:
        advance(state, action)
    assert str(caught.value) == (
        f"cannot {action} a capture that is {state.value}; possible now: {possible or 'nothing'}"
    )
    assert isinstance(caught.value, UsageError)
    assert isinstance(caught.value, RuntimeError)
