"""A session's methods are taken once, called through the guard, and one at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from devprof.capture.hooks import SessionHooks
from devprof.contract import ActivityLogger, ClockSample, GetLinkedActivity, IActivityProfilerSession, TraceStatus
from devprof.errors import PluginContractError, PluginWarning
from devprof.registry import SESSION_RETURNS, Guard
from tests.unit.capture.plugins import BareSession, Session, one_kernel


def _hooks(session: object) -> SessionHooks:
    return SessionHooks("demo", session, Guard("demo"))


def _session(**faults: object) -> Session:
    return Session({hook: lambda answer=answer: answer for hook, answer in faults.items()}, one_kernel, None)  # type: ignore[misc]


def test_a_session_has_the_hooks_that_it_has() -> None:
    hooks = _hooks(BareSession())
    assert [hook for hook in ("start", "stop", "process_trace", "errors", "sample_clock") if hook in hooks] == [
        *("start", "stop", "process_trace")
    ]


def test_a_hook_that_is_lacking_gives_the_default() -> None:
    hooks = _hooks(BareSession())
    assert hooks.call("errors", default=("nothing",)) == ("nothing",)
    assert hooks.clock_domain() is None


class _Inheriting(IActivityProfilerSession):
    """Names the protocol as its base and writes the least."""

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def process_trace(
        self, logger: ActivityLogger, get_linked_activity: GetLinkedActivity, start_ns: int, end_ns: int
    ) -> None: ...


def test_a_hook_that_is_the_protocols_own_is_not_there() -> None:
    hooks = _hooks(_Inheriting())
    assert [hook for hook in SESSION_RETURNS if hook in hooks] == ["start", "stop", "process_trace"]


def test_a_session_that_inherits_its_delivery_is_refused() -> None:
    class Forgetful(IActivityProfilerSession):
        pass

    with pytest.raises(
        PluginContractError, match=r"the session inherits process_trace\(\), so it would deliver nothing"
    ):
        _hooks(Forgetful())  # type: ignore[abstract]


def test_what_is_no_session_is_refused() -> None:
    with pytest.raises(PluginContractError, match="it has no start, stop or process_trace"):
        _hooks(object())


def test_the_hook_to_blame_is_the_one_called_last_by_a_phase() -> None:
    hooks = _hooks(_session())
    blamed = [hooks.running]
    for hook in ("start", "status"):
        hooks.call(hook)
        blamed.append(hooks.running)
    hooks.call_per_op("push_correlation_id", 1)
    blamed.append(hooks.running)
    assert blamed == ["configure", "session.start", "session.status", "session.status"]


def test_after_a_failure_no_hook_is_called() -> None:
    session = _session(start=1)
    hooks = _hooks(session)
    with pytest.warns(PluginWarning):
        hooks.call("start")
    samples: list[ClockSample] = []
    assert hooks.call("status", default=TraceStatus.READY) is TraceStatus.READY
    hooks.sample(lambda: 1, samples)
    assert (session.calls, samples) == (["start"], [])


def test_a_session_that_is_set_aside_can_still_be_stopped() -> None:
    session = _session(start=1)
    hooks = _hooks(session)
    with pytest.warns(PluginWarning):
        hooks.call("start")
    hooks.stop_quietly()
    assert session.calls == ["start", "stop"]


def test_a_timer_gets_no_turn_while_another_thread_has_it_and_a_turn_afterwards() -> None:
    hooks, samples = _hooks(_session()), list[ClockSample]()
    with hooks.turn():
        hooks.sample_unless_busy(lambda: 1, samples)
        assert samples == []
    hooks.sample_unless_busy(lambda: 1, samples)
    assert len(samples) == 5


def test_a_timer_thins_the_samples_in_its_turn_so_that_it_costs_no_phase_its_burst(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A phase that adds a burst between the thinning's look and its write would lose it."""
    hooks, samples = _hooks(_session()), list[ClockSample]()
    phase = threading.Thread(target=lambda: _in_a_turn(hooks, lambda: hooks.sample(lambda: 7, samples)))
    busy: list[bool] = []

    def thin(samples: list[ClockSample]) -> None:
        busy.append(hooks._turn.locked())
        if len(busy) == 1:
            looked = list(samples)
            phase.start()
            phase.join(0.2)  # outside of a turn it is done by now
            samples[:] = looked

    monkeypatch.setattr("devprof.capture.hooks.thin_out", thin)
    hooks.sample_unless_busy(lambda: 1, samples)
    phase.join(60)
    assert busy == [True, True]
    assert [one.host_before_ns for one in samples] == [1] * 5 + [7] * 5


def _in_a_turn(hooks: SessionHooks, call: Callable[[], object]) -> None:
    with hooks.turn():
        call()


def test_a_phase_waits_for_the_timers_turn_to_end() -> None:
    session = _session()
    hooks = _hooks(session)
    order: list[str] = []

    def phase() -> None:
        with hooks.turn():
            order.append("phase")

    with hooks.turn():
        waiting = threading.Thread(target=phase)
        waiting.start()
        order.append("timer")
    waiting.join(60)
    assert order == ["timer", "phase"]
