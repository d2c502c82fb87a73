"""A phase runs on a thread of its own, and whatever it does, the caller gets an outcome."""

from __future__ import annotations

import _thread
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest

from devprof.capture import Outcome, PhaseRunner

LONG_S = 60.0


def _facts(outcome: Outcome) -> tuple[bool, BaseException | None, bool, BaseException | None]:
    return outcome.finished, outcome.error, outcome.hurried, outcome.interrupt


class Waited(PhaseRunner):
    """Tells when somebody was in a hurry."""

    def __init__(self, *, grace_s: float) -> None:
        super().__init__(LONG_S, grace_s=grace_s)
        self.hurried = threading.Event()

    def hurry(self) -> None:
        super().hurry()
        self.hurried.set()


def test_a_phase_runs_on_a_daemon_thread_with_its_name() -> None:
    seen: list[threading.Thread] = []
    outcome = PhaseRunner(LONG_S).run("demo-start", lambda: seen.append(threading.current_thread()))
    assert _facts(outcome) == (True, None, False, None)
    assert (seen[0].name, seen[0].daemon, seen[0] is threading.current_thread()) == ("devprof-demo-start", True, False)


def test_every_phase_gets_a_thread_of_its_own() -> None:
    runner, seen = PhaseRunner(LONG_S), list[threading.Thread]()
    for _ in range(3):
        runner.run("x", lambda: seen.append(threading.current_thread()))
    assert len(set(seen)) == 3


def test_a_phases_thread_is_gone_when_the_phase_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    class Lingering(threading.Thread):
        """Ends only once somebody waits for its end; torch would trace it until then."""

        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            self.awaited = threading.Event()

        def run(self) -> None:
            super().run()
            self.awaited.wait(60)

        def join(self, timeout: float | None = None) -> None:
            self.awaited.set()
            super().join(timeout)

    monkeypatch.setattr(threading, "Thread", Lingering)
    thread = PhaseRunner(LONG_S).run("x", lambda: None).thread
    assert isinstance(thread, Lingering)
    assert not thread.is_alive()


@pytest.mark.parametrize(
    "error",
    [ValueError("x"), SystemExit(3), KeyboardInterrupt(), GeneratorExit(), BaseException("x"), RecursionError()],
)
def test_whatever_a_phase_raises_is_in_the_outcome(error: BaseException) -> None:
    def phase() -> None:
        raise error

    assert _facts(PhaseRunner(LONG_S).run("x", phase)) == (True, error, False, None)


def test_a_phase_that_overruns_its_budget_is_left_alone(release: threading.Event) -> None:
    outcome = PhaseRunner(0.01).run("x", lambda: release.wait(60))
    assert _facts(outcome) == (False, None, False, None)
    assert outcome.thread is not None
    assert outcome.thread.is_alive()


def test_what_an_overrunning_phase_raises_later_does_not_change_its_outcome(release: threading.Event) -> None:
    def phase() -> None:
        release.wait(60)
        raise ValueError

    outcome = PhaseRunner(0.01).run("x", phase)
    assert outcome.thread is not None
    release.set()
    outcome.thread.join(60)
    assert _facts(outcome) == (False, None, False, None)


def _around(before: Callable[[], object], after: Callable[[], object]) -> Callable[[], AbstractContextManager[None]]:
    @contextmanager
    def around() -> Iterator[None]:
        before()
        yield
        after()

    return around


def test_the_host_stands_around_every_phase_on_its_thread() -> None:
    order: list[str] = []

    def note() -> None:
        order.append(threading.current_thread().name)

    PhaseRunner(LONG_S, around=_around(note, note)).run("x", lambda: order.append("phase"))
    assert order == ["devprof-x", "phase", "devprof-x"]


def test_a_host_that_fails_to_prepare_the_thread_has_no_phase_on_it() -> None:
    def prepare() -> None:
        raise OSError("no")

    ran: list[int] = []
    outcome = PhaseRunner(LONG_S, around=_around(prepare, prepare)).run("x", lambda: ran.append(1))
    assert (repr(outcome.error), ran) == ("OSError('no')", [])


# -- where no thread can be started -----------------------------------------------------------------------------------


@pytest.fixture
def no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", start)


@pytest.mark.usefixtures("no_threads")
def test_where_no_thread_can_be_started_a_phase_runs_on_the_calling_one_and_has_no_budget() -> None:
    seen: list[threading.Thread] = []

    def note() -> None:
        seen.append(threading.current_thread())

    outcome = PhaseRunner(0.0, around=_around(note, note)).run("demo-stop", note)
    assert _facts(outcome) == (True, None, False, None)
    assert (seen, outcome.thread) == ([threading.current_thread()] * 3, None)


@pytest.mark.usefixtures("no_threads")
@pytest.mark.parametrize("error", [ValueError("x"), SystemExit(3)])
def test_what_a_phase_raises_on_the_calling_thread_is_in_the_outcome(error: BaseException) -> None:
    def phase() -> None:
        raise error

    assert _facts(PhaseRunner(LONG_S).run("x", phase)) == (True, error, False, None)


@pytest.mark.usefixtures("no_threads")
def test_a_ctrl_c_on_the_calling_thread_is_the_users_and_not_an_error_of_the_phase() -> None:
    interrupt = KeyboardInterrupt()

    def phase() -> None:
        raise interrupt

    assert _facts(PhaseRunner(LONG_S).run("x", phase)) == (True, None, False, interrupt)


# -- hurry ------------------------------------------------------------------------------------------------------------


def test_hurry_gives_up_what_runs_once_its_grace_is_over(release: threading.Event) -> None:
    runner = PhaseRunner(LONG_S, grace_s=0.0)

    def phase() -> None:
        runner.hurry()
        release.wait(60)

    assert _facts(runner.run("x", phase)) == (False, None, True, None)


def test_a_later_phase_gets_a_grace_of_its_own() -> None:
    runner = PhaseRunner(30.0, grace_s=2.0)
    assert runner._deadline(1_000.0) == 1_030.0
    runner._hurried_at = 900.0
    assert runner._deadline(1_000.0) == 1_002.0
    runner._hurried_at = 1_005.0
    assert runner._deadline(1_000.0) == 1_007.0
    runner._hurried_at = 1_029.0
    assert runner._deadline(1_000.0) == 1_030.0


def test_a_later_phase_that_overruns_its_grace_was_hurried(release: threading.Event) -> None:
    runner = PhaseRunner(LONG_S, grace_s=0.01)
    runner.hurry()
    assert _facts(runner.run("x", lambda: release.wait(60))) == (False, None, True, None)


def test_a_second_hurry_does_not_lengthen_the_wait() -> None:
    runner = PhaseRunner(LONG_S)
    runner.hurry()
    first = runner._hurried_at
    runner.hurry()
    assert runner._hurried_at == first


# -- Ctrl-C -----------------------------------------------------------------------------------------------------------


def test_a_ctrl_c_while_waiting_is_held_until_the_phase_is_done() -> None:
    runner = Waited(grace_s=LONG_S)

    def phase() -> None:
        _thread.interrupt_main()
        runner.hurried.wait(LONG_S)

    outcome = runner.run("x", phase)
    assert (outcome.finished, outcome.error, type(outcome.interrupt)) == (True, None, KeyboardInterrupt)


def test_a_ctrl_c_while_waiting_for_a_phase_that_hangs_ends_the_wait(release: threading.Event) -> None:
    runner = Waited(grace_s=0.01)

    def phase() -> None:
        _thread.interrupt_main()
        release.wait(60)

    outcome = runner.run("x", phase)
    assert (outcome.finished, outcome.hurried, type(outcome.interrupt)) == (False, True, KeyboardInterrupt)


def test_the_budget_is_the_environments_unless_one_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEVPROF_HOOK_TIMEOUT_S", "7")
    assert (PhaseRunner().timeout_s, PhaseRunner(3.0).timeout_s) == (7.0, 3.0)
