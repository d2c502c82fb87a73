"""One plugin through one capture: whatever it does, the host goes on and the account is right."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from devprof.capture import Lane, LaneResult, PluginLedger, quarantined
from devprof.contract import (
    ActivityLogger,
    ClockDomain,
    ClockSample,
    CorrelationAccess,
    IActivityProfilerSession,
    NativeCorrelation,
    TraceStatus,
)
from devprof.errors import PluginContractError, PluginWarning
from devprof.model import ActivityBatch, ActivityType, DeviceInfo, GenericTraceActivity, ResourceInfo
from devprof.registry import RegisteredProfiler
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

CLOCK = ClockDomain("ticks", 1e9)
AFTER_RECORDS = ["status", "errors", "get_device_infos", "get_resource_infos", "get_device_properties", "get_metadata"]
# what is called under `CorrelationAccess.READ`
LIFE = ["clock_domain", "start", "stop", "process_trace", *AFTER_RECORDS, "get_trace_buffer"]

Hang = Callable[[], None]


def _raise(error: BaseException) -> Callable[[], Any]:
    def fault() -> Any:
        raise error

    return fault


@contextlib.contextmanager
def _one_warning(hook: str) -> Iterator[None]:
    """Exactly one `PluginWarning`, which names the plugin and the hook."""
    with pytest.warns(PluginWarning) as caught:
        yield
    assert len(caught) == 1, [str(one.message) for one in caught]
    assert f"plugin 'demo', {hook}: " in str(caught[0].message)


def _run(lane: Lane) -> LaneResult:
    lane.configure(frozenset(ActivityType), CONFIG)
    lane.start()
    return lane.finish(bool, 5, 50)


def _lane(runner: PatientRunner, **options: Any) -> tuple[Lane, RegisteredProfiler]:
    registered = plugin(**options)
    return Lane(registered, runner, CONFIG.now_ns), registered


def _hook(name: str) -> str:
    return name if name == "configure" else f"session.{name}"


# -- a plugin that behaves --------------------------------------------------------------------------------------------


def test_hooks_are_called_in_order_and_what_they_say_is_in_the_result(runner: PatientRunner) -> None:
    lane, registered = _lane(runner)
    result = _run(lane)
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
    lane, registered = _lane(runner)
    assert lane.configure({ActivityType.CPU_OP, ActivityType.CONCURRENT_KERNEL}, CONFIG)
    assert registered.profiler.asked == [{ActivityType.CONCURRENT_KERNEL}]  # type: ignore[attr-defined]


def test_a_plugin_that_can_record_nothing_of_it_is_not_asked(runner: PatientRunner) -> None:
    lane, registered = _lane(runner)
    assert not lane.configure({ActivityType.CPU_OP}, CONFIG)
    assert registered.profiler.asked == []  # type: ignore[attr-defined]


def test_a_plugin_may_sit_out(runner: PatientRunner) -> None:
    lane, _ = _lane(runner, make=lambda: None)
    result = _run(lane)
    assert (lane.alive, lane.session, result) == (False, None, LaneResult("demo", PluginLedger("demo")))


def test_a_plugin_without_optional_hooks_delivers_all_the_same(runner: PatientRunner) -> None:
    lane, _ = _lane(runner, make=BareSession)
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
    lane, registered = _lane(runner)
    _run(lane)
    threads = session_of(registered).threads
    assert {threads["clock_domain"], threads["start"]} == {"devprof-demo-configure", "devprof-demo-start"}
    assert {threads[hook] for hook in LIFE[2:]} == {"devprof-demo-stop"}


def test_what_no_trace_can_hold_is_counted(runner: PatientRunner) -> None:
    def deliver(logger: ActivityLogger) -> None:
        logger.handle_activity(KERNEL)
        logger.handle_activity(GenericTraceActivity(ActivityType.CPU_OP, "op", 1, 2))
        logger.handle_activity(GenericTraceActivity(ActivityType.CONCURRENT_KERNEL, "k", 2**70, 2))
        logger.handle_dropped(4, "buffer full")

    lane, _ = _lane(runner, deliver=deliver)
    ledger = _run(lane).ledger
    assert (ledger.dropped, ledger.rejected) == (
        {"buffer full": 4},
        {"activity type reserved for the host": 1, "malformed record: start_ns is out of range": 1},
    )


def test_a_row_may_be_named_while_records_are_handed_over(runner: PatientRunner) -> None:
    def deliver(logger: ActivityLogger) -> None:
        logger.handle_device_info(DeviceInfo(1, "second"))
        logger.handle_resource_info(ResourceInfo(8, 1, "stream 8"))

    lane, _ = _lane(runner, deliver=deliver)
    result = _run(lane)
    assert result.device_infos == [DeviceInfo(0, "demo 0"), DeviceInfo(1, "second")]
    assert result.resource_infos == [ResourceInfo(7, 0, "stream 7"), ResourceInfo(8, 1, "stream 8")]


def test_records_do_not_stay_with_a_lane_that_has_delivered_them(runner: PatientRunner) -> None:
    lane, _ = _lane(runner)
    assert len(_run(lane).batches) == 1
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
    lane, _ = _lane(runner, faults={"status": lambda: status, "errors": lambda: errors})
    assert _run(lane).ledger.errors == wanted


def test_a_flood_of_errors_is_cut(runner: PatientRunner) -> None:
    lane, _ = _lane(runner, faults={"errors": lambda: ["again"] * 10_000})
    assert _run(lane).ledger.errors == ["again"] * 100


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
    lane, registered = _lane(runner, faults={hook: _raise(error)})
    with _one_warning(_hook(hook)):
        result = _run(lane)
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
    lane, _ = _lane(runner, faults={hook: lambda: NONSENSE[hook]})
    with _one_warning(_hook(hook)):
        result = _run(lane)
    assert len(result.ledger.failures) == 1
    assert "returned" in result.ledger.failures[0]


@pytest.mark.parametrize("hook", LIFE)
def test_a_hook_that_hangs_is_given_up_on_and_its_plugin_left_out_for_good(
    hook: str, runner: PatientRunner, hang: Hang
) -> None:
    lane, registered = _lane(runner, faults={hook: hang})
    with _one_warning(_hook(hook)):
        result = _run(lane)
    sentence = f"plugin 'demo', {_hook(hook)}: did not come back within 0 s (DEVPROF_HOOK_TIMEOUT_S); "
    assert result.ledger.failures == [sentence + "the plugin is left out until the process ends"]
    assert session_of(registered).calls == LIFE[: LIFE.index(hook) + 1]
    assert [len(batch) for batch in result.batches] == ([1] if LIFE.index(hook) > LIFE.index("stop") else [])
    # the next capture has no part in it
    later = Lane(registered, PatientRunner(), CONFIG.now_ns)
    assert _run(later).ledger.failures == result.ledger.failures
    assert len(registered.profiler.sessions) == 1  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (_raise(OSError("no device")), "configure: OSError: no device"),
        (_raise(SystemExit()), "configure: SystemExit"),
        (_raise(KeyboardInterrupt()), "configure: KeyboardInterrupt"),
        (lambda: 5, "profiler.configure: int 5 is not an IActivityProfilerSession or None"),
        (lambda: Session, "profiler.configure: gave the class Session"),
        (object, "it has no start, stop or process_trace"),
    ],
)
def test_a_configure_that_fails_leaves_the_plugin_out(
    make: Callable[[], Any], message: str, runner: PatientRunner
) -> None:
    lane, _ = _lane(runner, make=make)
    with pytest.warns(PluginWarning) as caught:
        result = _run(lane)
    assert (len(caught), lane.alive, len(result.ledger.failures)) == (1, False, 1)
    assert message in result.ledger.failures[0]


def test_a_configure_that_hangs_is_given_up_on(runner: PatientRunner, hang: Hang, release: threading.Event) -> None:
    made = threading.Event()

    def make() -> BareSession:
        hang()
        made.set()
        return BareSession()

    lane, _ = _lane(runner, make=make)
    with _one_warning("configure"):
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

    lane, _ = _lane(runner, make=Odd)
    with _one_warning("configure"):
        assert not lane.configure(KINDS, CONFIG)


def test_an_answer_that_misbehaves_when_it_is_read_again_is_the_plugins_fault(runner: PatientRunner) -> None:
    class Once(list[DeviceInfo]):
        reads = 0

        def __iter__(self) -> Iterator[DeviceInfo]:
            self.reads += 1
            if self.reads > 1:
                raise RuntimeError("read once only")
            return super().__iter__()

    lane, _ = _lane(runner, faults={"get_device_infos": lambda: Once([DeviceInfo(0, "x")])})
    with _one_warning("session.get_device_infos"):
        result = _run(lane)
    assert [len(batch) for batch in result.batches] == [1]


def test_what_was_delivered_before_a_failure_is_kept(runner: PatientRunner) -> None:
    def deliver(logger: ActivityLogger) -> None:
        logger.handle_activity(KERNEL)
        logger.handle_activities("nonsense")  # type: ignore[arg-type]

    lane, _ = _lane(runner, deliver=deliver)
    with _one_warning("logger.handle_activities"):
        result = _run(lane)
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

    lane, registered = _lane(runner, deliver=deliver)
    with _one_warning("session.process_trace"):
        result = _run(lane)
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

    lane, _ = _lane(runner, faults={hook: fault})
    with _one_warning(_hook(hook)):
        result = _run(lane)
    release.set()
    _join_phases()
    assert (result.ledger.errors, result.metadata, len(result.ledger.failures)) == ([], {}, 1)


def test_what_a_hook_raises_after_it_was_given_up_on_is_not_in_the_account(
    runner: PatientRunner, hang: Hang, release: threading.Event
) -> None:
    def fault() -> None:
        hang()
        raise ValueError("late")

    lane, _ = _lane(runner, faults={"stop": fault})
    with _one_warning("session.stop"):
        result = _run(lane)
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

    lane, _ = _lane(runner, faults={"stop": fault})
    with _one_warning("session.stop"):
        result = _run(lane)
    words = "plugin 'demo', session.stop: was cut short by an interrupt; the plugin is left out until it comes back"
    assert result.ledger.failures == [words]
    assert quarantined() == {"demo": words}
    release.set()
    _join_phases()
    assert quarantined() == {}
    assert len(_run(Lane(plugin(), PatientRunner(), CONFIG.now_ns)).batches) == 1


# -- correlation on the threads of ops --------------------------------------------------------------------------------


def test_pushes_and_pops_reach_the_plugin_on_the_ops_thread(runner: PatientRunner) -> None:
    lane, registered = _lane(runner, correlation=CorrelationAccess.PYTHON)
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
    lane, registered = _lane(runner, faults={"push_correlation_id": _raise(error)})
    lane.configure(KINDS, CONFIG)
    lane.start()
    with _one_warning("session.push_correlation_id"):
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

    lane, _ = _lane(runner, faults={"stop": stop})
    with _one_warning("session.stop"):
        _run(lane)


def test_native_correlation_is_asked_for_where_the_plugin_wants_it(runner: PatientRunner) -> None:
    lane, registered = _lane(runner, correlation=CorrelationAccess.NATIVE)
    lane.configure(KINDS, CONFIG)
    assert lane.native_correlation == NativeCorrelation(1, 2)
    assert session_of(registered).calls == ["clock_domain", "native_correlation"]


def test_a_quiet_stop_that_raises_or_ends_the_program_is_not_heard(runner: PatientRunner) -> None:
    lane, registered = _lane(runner, faults={"start": _raise(OSError()), "stop": _raise(SystemExit())})
    with _one_warning("session.start"):
        result = _run(lane)
    assert session_of(registered).calls == ["clock_domain", "start", "stop"]
    assert len(result.ledger.failures) == 1


def test_a_quiet_stop_that_hangs_is_a_hang(runner: PatientRunner, hang: Hang) -> None:
    lane, _ = _lane(runner, faults={"start": _raise(OSError()), "stop": hang})
    with _one_warning("session.start"):
        result = _run(lane)
    assert len(result.ledger.failures) == 2
    assert list(quarantined()) == ["demo"]


def test_a_phase_that_fails_before_its_hook_is_not_blamed_on_the_hook_before(
    runner: PatientRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    lane, _ = _lane(runner)
    lane.configure(KINDS, CONFIG)
    lane.start()
    monkeypatch.setattr(lane, "_finish", _raise(OSError("devprof's own")))
    with _one_warning("session.stop"):
        result = lane.finish(bool, 5, 50)
    assert result.ledger.set_aside is not None
    assert result.ledger.set_aside.hook == "session.stop"


# -- toggling ---------------------------------------------------------------------------------------------------------


def test_a_toggle_reaches_a_plugin_that_takes_part(runner: PatientRunner) -> None:
    lane, registered = _lane(runner)
    lane.toggle(False)
    lane.configure(KINDS, CONFIG)
    lane.start()
    lane.toggle(False)
    session = session_of(registered)
    assert session.calls == ["clock_domain", "start", "toggle_collection_dynamic"]
    assert session.threads["toggle_collection_dynamic"] == "devprof-demo-toggle_collection_dynamic"


def test_a_toggle_that_hangs_is_given_up_on(runner: PatientRunner, hang: Hang) -> None:
    lane, _ = _lane(runner, faults={"toggle_collection_dynamic": hang})
    lane.configure(KINDS, CONFIG)
    lane.start()
    with _one_warning("session.toggle_collection_dynamic"):
        lane.toggle(True)
    assert not lane.alive


# -- cancelling -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("started", [False, True])
def test_a_discarded_session_is_stopped_and_forgotten(started: bool, runner: PatientRunner) -> None:
    lane, registered = _lane(runner)
    lane.configure(KINDS, CONFIG)
    if started:
        lane.start()
    lane.discard()
    lane.discard()
    assert session_of(registered).calls == ["clock_domain", *(["start"] if started else []), "stop"]
    assert (lane.session, lane.alive, lane.finish(bool, 5, 50).batches) == (None, False, [])


def test_discarding_what_was_never_configured_calls_nobody(runner: PatientRunner) -> None:
    lane, registered = _lane(runner)
    lane.discard()
    assert registered.profiler.sessions == []  # type: ignore[attr-defined]


# -- the clock --------------------------------------------------------------------------------------------------------


def test_the_clock_is_sampled_before_the_start_and_after_the_stop(runner: PatientRunner) -> None:
    lane, registered = _lane(runner, clock=CLOCK)
    result = _run(lane)
    bursts = ["sample_clock"] * 5
    assert session_of(registered).calls[:13] == ["clock_domain", *bursts, "start", "stop", *bursts]
    assert result.clock_domain == CLOCK
    assert result.clock_samples == [ClockSample(1_000, ticks, 1_000) for ticks in range(1, 11)]
    assert [batch.clock for batch in result.batches] == ["ticks"]


def test_a_timer_adds_a_burst_for_a_clock_that_runs_with_the_hosts(runner: PatientRunner) -> None:
    lane, _ = _lane(runner, clock=CLOCK)
    lane.sample_clock()
    lane.configure(KINDS, CONFIG)
    lane.start()
    lane.sample_clock()
    assert [s.device_ticks for s in lane.finish(bool, 5, 50).clock_samples] == list(range(1, 16))
    lane.sample_clock()


@pytest.mark.parametrize("clock", [None, ClockDomain("virtual", virtual=True)])
def test_a_timer_leaves_other_clocks_alone(clock: ClockDomain | None, runner: PatientRunner) -> None:
    lane, registered = _lane(runner, clock=clock)
    lane.configure(KINDS, CONFIG)
    lane.sample_clock()
    assert session_of(registered).calls == ["clock_domain"]


def test_a_timer_does_not_run_into_another_hook(runner: PatientRunner) -> None:
    def stop() -> None:
        before = len(session_of(registered).calls)
        lane.sample_clock()
        assert len(session_of(registered).calls) == before

    lane, registered = _lane(runner, clock=CLOCK, faults={"stop": stop})
    assert _run(lane).ledger.failures == []


@pytest.mark.parametrize("ticks", [1.5, "1", None, float("nan")])
def test_a_clock_that_gives_no_whole_ticks_sets_its_plugin_aside(ticks: Any, runner: PatientRunner) -> None:
    lane, registered = _lane(runner, clock=CLOCK, faults={"sample_clock": lambda: ticks})
    with _one_warning("session.sample_clock"):
        result = _run(lane)
    assert session_of(registered).calls == ["clock_domain", "sample_clock"]
    assert result.clock_samples == []


def test_a_clock_that_fails_in_between_sets_its_plugin_aside_and_its_device_is_stopped(runner: PatientRunner) -> None:
    readings = iter(range(5))
    lane, registered = _lane(runner, clock=CLOCK, faults={"sample_clock": lambda: next(readings)})
    lane.configure(KINDS, CONFIG)
    lane.start()
    with _one_warning("session.sample_clock"):
        lane.sample_clock()
    result = lane.finish(bool, 5, 50)
    assert session_of(registered).calls[-3:] == ["start", "sample_clock", "stop"]
    assert (result.batches, len(result.clock_samples)) == ([], 5)


def test_a_timer_whose_clock_hangs_is_to_blame_when_the_capture_stops(
    runner: PatientRunner, release: threading.Event
) -> None:
    entered, readings = threading.Event(), iter(range(5))

    def read() -> int:
        for ticks in readings:
            return ticks
        entered.set()
        release.wait(60)
        return 0

    lane, registered = _lane(runner, clock=CLOCK, faults={"sample_clock": read})
    lane.configure(KINDS, CONFIG)
    lane.start()
    timer = threading.Thread(target=lane.sample_clock, name="devprof-clock")
    timer.start()
    entered.wait(60)
    runner.run = _impatient(runner)  # type: ignore[method-assign]
    with _one_warning("session.sample_clock"):
        lane.finish(bool, 5, 50)
    assert "stop" not in session_of(registered).calls


def _impatient(runner: PatientRunner) -> Callable[..., Any]:
    patient = runner.run

    def run(label: str, phase: Callable[[], object]) -> Any:
        def body() -> None:
            runner.hung.set()
            phase()

        return patient(label, body)

    return run


@pytest.mark.parametrize(
    ("domain", "problem"),
    [
        (ClockDomain("unix_ns"), "its name is 'unix_ns'; expected a text that is not empty and not 'unix_ns'"),
        (ClockDomain(""), "its name is ''"),
        (ClockDomain(5), "its name is 5"),  # type: ignore[arg-type]
        (ClockDomain("t", 0), "it states 0 ticks per second; expected a number above 0"),
        (ClockDomain("t", -1.0), "it states -1.0 ticks per second"),
        (ClockDomain("t", float("nan")), "it states nan ticks per second"),
        (ClockDomain("t", float("inf")), "it states inf ticks per second"),
        (ClockDomain("t", "fast"), "it states 'fast' ticks per second"),  # type: ignore[arg-type]
    ],
)
def test_a_clock_that_cannot_be_used_sets_its_plugin_aside_at_once(
    domain: ClockDomain, problem: str, runner: PatientRunner
) -> None:
    lane, _ = _lane(runner, clock=domain)
    with _one_warning("session.clock_domain"):
        assert not lane.configure(KINDS, CONFIG)
    assert problem in lane.ledger.failures[0]


def test_a_clock_without_a_way_to_read_it_sets_its_plugin_aside_at_once(runner: PatientRunner) -> None:
    class Clocked(BareSession, IActivityProfilerSession):
        def clock_domain(self) -> ClockDomain:
            return CLOCK

    lane, _ = _lane(runner, make=Clocked)
    with _one_warning("session.clock_domain"):
        assert not lane.configure(KINDS, CONFIG)
    assert "the session has no sample_clock(), so its ticks would have no time" in lane.ledger.failures[0]


def test_a_batch_on_a_wrong_clock_keeps_what_came_before(runner: PatientRunner) -> None:
    def deliver(logger: ActivityLogger) -> None:
        one_kernel(logger)
        logger.handle_activities(ActivityBatch.from_activities([KERNEL], clock="other"))

    lane, _ = _lane(runner, deliver=deliver)
    with _one_warning("logger.handle_activities"):
        result = _run(lane)
    assert [len(batch) for batch in result.batches] == [1]
