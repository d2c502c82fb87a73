"""A plugin that fails, hangs or answers late is set aside once, by name, and what it delivered before is kept."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from devprof.capture import Lane, quarantined
from devprof.contract import (
    ActivityLogger,
)
from devprof.errors import PluginContractError, PluginWarning
from devprof.model import DeviceInfo
from tests.unit.capture.lanes import (
    AFTER_RECORDS,
    LIFE,
    Hang,
    hook_name,
    lane_of,
    one_warning,
    raising,
    run_through,
)
from tests.unit.capture.plugins import (
    CONFIG,
    KERNEL,
    KINDS,
    BareSession,
    PatientRunner,
    Session,
    one_kernel,
    plugin,
    session_of,
)

# -- a plugin that misbehaves -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("hook", LIFE)
@pytest.mark.parametrize(
    "error",
    [ValueError("broken"), SystemExit(3), KeyboardInterrupt(), RecursionError(), BaseException("odd")],
    ids=repr,
)
def test_a_hook_that_raises_sets_its_plugin_aside_with_one_warning(
    hook: str, error: BaseException, runner: PatientRunner
) -> None:
    lane, registered = lane_of(runner, faults={hook: raising(error)})
    with one_warning(hook_name(hook)):
        result = run_through(lane)
    calls = session_of(registered).calls
    before = LIFE[: LIFE.index(hook) + 1]
    # a session that was set aside while it recorded is stopped all the same
    assert calls == (["clock_domain", "start", "stop"] if hook == "start" else before)
    assert len(result.ledger.failures) == 1
    assert type(error).__name__ in result.ledger.failures[0]
    delivered = hook in (*AFTER_RECORDS, "process_trace", "get_trace_buffer")
    assert [len(batch) for batch in result.batches] == ([1] if delivered else [])
    assert quarantined() == {}


NONSENSE: dict[str, Any] = {
    "clock_domain": "ticks",
    "start": 1,
    "stop": False,
    "process_trace": [KERNEL],
    "status": "ready",
    "errors": "one text",
    "get_device_infos": ["npu"],
    "get_resource_infos": None,
    "get_device_properties": [{"a": object()}],
    "get_metadata": {1: 2},
    "get_trace_buffer": b"buffer",
}


@pytest.mark.parametrize("hook", LIFE)
def test_a_hook_that_returns_nonsense_sets_its_plugin_aside_with_one_warning(hook: str, runner: PatientRunner) -> None:
    lane, _ = lane_of(runner, faults={hook: lambda: NONSENSE[hook]})
    with one_warning(hook_name(hook)):
        result = run_through(lane)
    assert len(result.ledger.failures) == 1
    assert "returned" in result.ledger.failures[0]


@pytest.mark.parametrize("hook", LIFE)
def test_a_hook_that_hangs_is_given_up_on_and_its_plugin_left_out_for_good(
    hook: str, runner: PatientRunner, hang: Hang
) -> None:
    lane, registered = lane_of(runner, faults={hook: hang})
    with one_warning(hook_name(hook)):
        result = run_through(lane)
    sentence = f"plugin 'demo', {hook_name(hook)}: did not come back within 0 s (DEVPROF_HOOK_TIMEOUT_S); "
    assert result.ledger.failures == [sentence + "the plugin is left out until the process ends"]
    assert session_of(registered).calls == LIFE[: LIFE.index(hook) + 1]
    assert [len(batch) for batch in result.batches] == ([1] if LIFE.index(hook) > LIFE.index("stop") else [])
    # the next capture has no part in it
    later = Lane(registered, PatientRunner(), CONFIG.now_ns)
    assert run_through(later).ledger.failures == result.ledger.failures
    assert len(registered.profiler.sessions) == 1  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (raising(OSError("no device")), "configure: OSError: no device"),
        (raising(SystemExit()), "configure: SystemExit"),
        (raising(KeyboardInterrupt()), "configure: KeyboardInterrupt"),
        (lambda: 5, "profiler.configure: int 5 is not an IActivityProfilerSession or None"),
        (lambda: Session, "profiler.configure: gave the class Session"),
        (object, "it has no start, stop or process_trace"),
    ],
)
def test_a_configure_that_fails_leaves_the_plugin_out(
    make: Callable[[], Any], message: str, runner: PatientRunner
) -> None:
    lane, _ = lane_of(runner, make=make)
    with pytest.warns(PluginWarning) as caught:
        result = run_through(lane)
    assert (len(caught), lane.alive, len(result.ledger.failures)) == (1, False, 1)
    assert message in result.ledger.failures[0]


def test_a_configure_that_hangs_is_given_up_on(runner: PatientRunner, hang: Hang, release: threading.Event) -> None:
    made = threading.Event()

    def make() -> BareSession:
        hang()
        made.set()
        return BareSession()

    lane, _ = lane_of(runner, make=make)
    with one_warning("configure"):
        assert not lane.configure(KINDS, CONFIG)
    release.set()
    made.wait(60)
    _join_phases()
    assert lane.session is None


def test_a_session_whose_attribute_raises_is_no_session(runner: PatientRunner) -> None:
    class Odd(BareSession):
        @property
        def sample_clock(self) -> Callable[[], int]:
            raise RuntimeError("not now")

    lane, _ = lane_of(runner, make=Odd)
    with one_warning("configure"):
        assert not lane.configure(KINDS, CONFIG)


def test_an_answer_that_misbehaves_when_it_is_read_again_is_the_plugins_fault(runner: PatientRunner) -> None:
    class Once(list[DeviceInfo]):
        reads = 0

        def __iter__(self) -> Iterator[DeviceInfo]:
            self.reads += 1
            if self.reads > 1:
                raise RuntimeError("read once only")
            return super().__iter__()

    lane, _ = lane_of(runner, faults={"get_device_infos": lambda: Once([DeviceInfo(0, "x")])})
    with one_warning("session.get_device_infos"):
        result = run_through(lane)
    assert [len(batch) for batch in result.batches] == [1]


def test_what_was_delivered_before_a_failure_is_kept(runner: PatientRunner) -> None:
    def deliver(logger: ActivityLogger) -> None:
        logger.handle_activity(KERNEL)
        logger.handle_activities("nonsense")  # type: ignore[arg-type]

    lane, _ = lane_of(runner, deliver=deliver)
    with one_warning("logger.handle_activities"):
        result = run_through(lane)
    assert [batch.activities() for batch in result.batches] == [[KERNEL]]


# -- a hook that comes back after it was given up on ------------------------------------------------------------------


def _join_phases() -> None:
    for thread in threading.enumerate():
        if thread.name.startswith("devprof-"):
            thread.join(60)


def test_a_hook_that_writes_after_it_was_given_up_on_changes_nothing(
    runner: PatientRunner, hang: Hang, release: threading.Event
) -> None:
    late: list[BaseException] = []

    def deliver(logger: ActivityLogger) -> None:
        one_kernel(logger)
        hang()
        for method, arguments in (("handle_activity", (KERNEL,)), ("handle_dropped", (5, "late"))):
            try:
                getattr(logger, method)(*arguments)
            except PluginContractError as error:
                late.append(error)

    lane, registered = lane_of(runner, deliver=deliver)
    with one_warning("session.process_trace"):
        result = run_through(lane)
    account = result.ledger.as_dict()
    release.set()
    _join_phases()
    assert len(late) == 2
    assert [len(batch) for batch in result.batches] == [1]
    assert result.ledger.as_dict() == account
    assert session_of(registered).calls == ["clock_domain", "start", "stop", "process_trace"]


@pytest.mark.parametrize(("hook", "answer"), [("errors", ["late"]), ("get_metadata", {"late": 1}), ("stop", None)])
def test_an_answer_that_comes_after_it_was_given_up_on_is_not_taken(
    hook: str, answer: Any, runner: PatientRunner, hang: Hang, release: threading.Event
) -> None:
    def fault() -> Any:
        hang()
        return answer

    lane, _ = lane_of(runner, faults={hook: fault})
    with one_warning(hook_name(hook)):
        result = run_through(lane)
    release.set()
    _join_phases()
    assert (result.ledger.errors, result.metadata, len(result.ledger.failures)) == ([], {}, 1)


def test_what_a_hook_raises_after_it_was_given_up_on_is_not_in_the_account(
    runner: PatientRunner, hang: Hang, release: threading.Event
) -> None:
    def fault() -> None:
        hang()
        raise ValueError("late")

    lane, _ = lane_of(runner, faults={"stop": fault})
    with one_warning("session.stop"):
        result = run_through(lane)
    release.set()
    _join_phases()
    assert len(result.ledger.failures) == 1
    assert "late" not in result.ledger.failures[0]


# -- hurry ------------------------------------------------------------------------------------------------------------


def test_a_plugin_cut_short_by_an_interrupt_is_left_out_only_until_its_hook_comes_back(
    release: threading.Event,
) -> None:
    runner = PatientRunner(grace_s=0.01)

    def fault() -> None:
        runner.hurry()
        release.wait(60)

    lane, _ = lane_of(runner, faults={"stop": fault})
    with one_warning("session.stop"):
        result = run_through(lane)
    words = "plugin 'demo', session.stop: was cut short by an interrupt; the plugin is left out until it comes back"
    assert result.ledger.failures == [words]
    assert quarantined() == {"demo": words}
    release.set()
    _join_phases()
    assert quarantined() == {}
    assert len(run_through(Lane(plugin(), PatientRunner(), CONFIG.now_ns)).batches) == 1
