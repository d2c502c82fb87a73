"""One plugin through one capture: whatever it does, the host goes on and the account is right."""

from __future__ import annotations

import threading

import pytest

from devprof.capture import LaneResult, PluginLedger, quarantined
from devprof.contract import (
    ActivityLogger,
    CorrelationAccess,
    NativeCorrelation,
    TraceStatus,
)
from devprof.model import ActivityType, DeviceInfo, GenericTraceActivity, ResourceInfo
from tests.unit.capture.lanes import (
    LIFE,
    Hang,
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
    session_of,
)

# -- a plugin that behaves --------------------------------------------------------------------------------------------


def test_hooks_are_called_in_order_and_what_they_say_is_in_the_result(runner: PatientRunner) -> None:
    lane, registered = lane_of(runner)
    result = run_through(lane)
    assert session_of(registered).calls == LIFE
    assert session_of(registered).window == (5, 50)
    assert [batch.activities() for batch in result.batches] == [[KERNEL]]
    result.batches.clear()
    assert result == LaneResult(
        name="demo",
        ledger=PluginLedger("demo"),
        device_infos=[DeviceInfo(0, "demo 0")],
        resource_infos=[ResourceInfo(7, 0, "stream 7")],
        device_properties=[{"id": 0}],
        metadata={"driver": "1.0"},
    )


def test_a_plugin_is_asked_only_for_what_it_can_record(runner: PatientRunner) -> None:
    lane, registered = lane_of(runner)
    assert lane.configure({ActivityType.CPU_OP, ActivityType.CONCURRENT_KERNEL}, CONFIG)
    assert registered.profiler.asked == [{ActivityType.CONCURRENT_KERNEL}]  # type: ignore[attr-defined]


def test_a_plugin_that_can_record_nothing_of_it_is_not_asked(runner: PatientRunner) -> None:
    lane, registered = lane_of(runner)
    assert not lane.configure({ActivityType.CPU_OP}, CONFIG)
    assert registered.profiler.asked == []  # type: ignore[attr-defined]


def test_a_plugin_may_sit_out(runner: PatientRunner) -> None:
    lane, _ = lane_of(runner, make=lambda: None)
    result = run_through(lane)
    assert (lane.alive, lane.session, result) == (False, None, LaneResult("demo", PluginLedger("demo")))


def test_a_plugin_without_optional_hooks_delivers_all_the_same(runner: PatientRunner) -> None:
    lane, _ = lane_of(runner, make=BareSession)
    lane.configure(KINDS, CONFIG)
    lane.start()
    lane.push(0, 1)
    lane.pop(1)
    lane.toggle(True)
    lane.sample_clock()
    result = lane.finish(bool, 5, 50)
    assert [batch.activities() for batch in result.batches] == [[KERNEL]]
    assert result.ledger == PluginLedger("demo")


def test_every_phase_runs_on_a_thread_of_its_own(runner: PatientRunner) -> None:
    lane, registered = lane_of(runner)
    run_through(lane)
    threads = session_of(registered).threads
    assert {threads["clock_domain"], threads["start"]} == {"devprof-demo-configure", "devprof-demo-start"}
    assert {threads[hook] for hook in LIFE[2:]} == {"devprof-demo-stop"}


def test_what_no_trace_can_hold_is_counted(runner: PatientRunner) -> None:
    def deliver(logger: ActivityLogger) -> None:
        logger.handle_activity(KERNEL)
        logger.handle_activity(GenericTraceActivity(ActivityType.CPU_OP, "op", 1, 2))
        logger.handle_activity(GenericTraceActivity(ActivityType.CONCURRENT_KERNEL, "k", 2**70, 2))
        logger.handle_dropped(4, "buffer full")

    lane, _ = lane_of(runner, deliver=deliver)
    ledger = run_through(lane).ledger
    assert (ledger.dropped, ledger.rejected) == (
        {"buffer full": 4},
        {"activity type reserved for the host": 1, "malformed record: start_ns is out of range": 1},
    )


def test_a_row_may_be_named_while_records_are_handed_over(runner: PatientRunner) -> None:
    def deliver(logger: ActivityLogger) -> None:
        logger.handle_device_info(DeviceInfo(1, "second"))
        logger.handle_resource_info(ResourceInfo(8, 1, "stream 8"))

    lane, _ = lane_of(runner, deliver=deliver)
    result = run_through(lane)
    assert result.device_infos == [DeviceInfo(0, "demo 0"), DeviceInfo(1, "second")]
    assert result.resource_infos == [ResourceInfo(7, 0, "stream 7"), ResourceInfo(8, 1, "stream 8")]


def test_records_do_not_stay_with_a_lane_that_has_delivered_them(runner: PatientRunner) -> None:
    lane, _ = lane_of(runner)
    assert len(run_through(lane).batches) == 1
    assert lane.session is None
    again = lane.finish(bool, 5, 50)
    assert (again.batches, again.ledger) == ([], PluginLedger("demo"))


@pytest.mark.parametrize(
    ("status", "errors", "wanted"),
    [
        (TraceStatus.READY, [], []),
        (TraceStatus.WARNING, ["low on memory"], ["low on memory"]),
        (TraceStatus.ERROR, ["lost the device"], ["lost the device"]),
        (TraceStatus.ERROR, [], ["status is error"]),
    ],
)
def test_what_the_plugin_says_of_itself_is_in_the_account(
    status: TraceStatus, errors: list[str], wanted: list[str], runner: PatientRunner
) -> None:
    lane, _ = lane_of(runner, faults={"status": lambda: status, "errors": lambda: errors})
    assert run_through(lane).ledger.errors == wanted


def test_a_flood_of_errors_is_cut(runner: PatientRunner) -> None:
    lane, _ = lane_of(runner, faults={"errors": lambda: ["again"] * 10_000})
    assert run_through(lane).ledger.errors == ["again"] * 100


# -- correlation on the threads of ops --------------------------------------------------------------------------------


def test_pushes_and_pops_reach_the_plugin_on_the_ops_thread(runner: PatientRunner) -> None:
    lane, registered = lane_of(runner, correlation=CorrelationAccess.PYTHON)
    lane.push(0, 1)  # nobody is there yet
    lane.configure(KINDS, CONFIG)
    lane.start()
    for kind in (0, 1):
        lane.push(kind, 7)
        lane.pop(kind)
    session = session_of(registered)
    hooks = ["push_correlation_id", "pop_correlation_id", "push_user_correlation_id", "pop_user_correlation_id"]
    assert session.calls == ["clock_domain", "start", *hooks]
    assert {session.threads[hook] for hook in hooks} == {threading.current_thread().name}
    lane.finish(bool, 5, 50)
    lane.push(0, 1)
    assert session.calls[-1] == "get_trace_buffer"


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit()])
def test_a_push_that_raises_sets_its_plugin_aside_and_its_device_is_stopped(
    error: BaseException, runner: PatientRunner
) -> None:
    lane, registered = lane_of(runner, faults={"push_correlation_id": raising(error)})
    lane.configure(KINDS, CONFIG)
    lane.start()
    with one_warning("session.push_correlation_id"):
        for _ in range(1000):
            lane.push(0, 1)
    result = lane.finish(bool, 5, 50)
    assert session_of(registered).calls == ["clock_domain", "start", "push_correlation_id", "stop"]
    assert (len(result.ledger.failures), result.batches) == (1, [])


def test_a_push_does_not_take_the_blame_for_a_hook_that_hangs(runner: PatientRunner, release: threading.Event) -> None:
    def stop() -> None:
        lane.push(0, 1)
        runner.hung.set()
        release.wait(60)

    lane, _ = lane_of(runner, faults={"stop": stop})
    with one_warning("session.stop"):
        run_through(lane)


def test_native_correlation_is_asked_for_where_the_plugin_wants_it(runner: PatientRunner) -> None:
    lane, registered = lane_of(runner, correlation=CorrelationAccess.NATIVE)
    lane.configure(KINDS, CONFIG)
    assert lane.native_correlation == NativeCorrelation(1, 2)
    assert session_of(registered).calls == ["clock_domain", "native_correlation"]


def test_a_quiet_stop_that_raises_or_ends_the_program_is_not_heard(runner: PatientRunner) -> None:
    lane, registered = lane_of(runner, faults={"start": raising(OSError()), "stop": raising(SystemExit())})
    with one_warning("session.start"):
        result = run_through(lane)
    assert session_of(registered).calls == ["clock_domain", "start", "stop"]
    assert len(result.ledger.failures) == 1


def test_a_quiet_stop_that_hangs_is_a_hang(runner: PatientRunner, hang: Hang) -> None:
    lane, _ = lane_of(runner, faults={"start": raising(OSError()), "stop": hang})
    with one_warning("session.start"):
        result = run_through(lane)
    assert len(result.ledger.failures) == 2
    assert list(quarantined()) == ["demo"]


def test_a_phase_that_fails_before_its_hook_is_not_blamed_on_the_hook_before(
    runner: PatientRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    lane, _ = lane_of(runner)
    lane.configure(KINDS, CONFIG)
    lane.start()
    monkeypatch.setattr(lane, "_finish", raising(OSError("devprof's own")))
    with one_warning("session.stop"):
        result = lane.finish(bool, 5, 50)
    assert result.ledger.set_aside is not None
    assert result.ledger.set_aside.hook == "session.stop"


# -- toggling ---------------------------------------------------------------------------------------------------------


def test_a_toggle_reaches_a_plugin_that_takes_part(runner: PatientRunner) -> None:
    lane, registered = lane_of(runner)
    lane.toggle(False)
    lane.configure(KINDS, CONFIG)
    lane.start()
    lane.toggle(False)
    session = session_of(registered)
    assert session.calls == ["clock_domain", "start", "toggle_collection_dynamic"]
    assert session.threads["toggle_collection_dynamic"] == "devprof-demo-toggle_collection_dynamic"


def test_a_toggle_that_hangs_is_given_up_on(runner: PatientRunner, hang: Hang) -> None:
    lane, _ = lane_of(runner, faults={"toggle_collection_dynamic": hang})
    lane.configure(KINDS, CONFIG)
    lane.start()
    with one_warning("session.toggle_collection_dynamic"):
        lane.toggle(True)
    assert not lane.alive


# -- cancelling -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("started", [False, True])
def test_a_discarded_session_is_stopped_and_forgotten(started: bool, runner: PatientRunner) -> None:
    lane, registered = lane_of(runner)
    lane.configure(KINDS, CONFIG)
    if started:
        lane.start()
    lane.discard()
    lane.discard()
    assert session_of(registered).calls == ["clock_domain", *(["start"] if started else []), "stop"]
    assert (lane.session, lane.alive, lane.finish(bool, 5, 50).batches) == (None, False, [])


def test_discarding_what_was_never_configured_calls_nobody(runner: PatientRunner) -> None:
    lane, registered = lane_of(runner)
    lane.discard()
    assert registered.profiler.sessions == []  # type: ignore[attr-defined]
