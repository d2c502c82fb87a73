"""All plugins of one capture: each has its own fate, and the host's calls come in one order."""

from __future__ import annotations

import _thread
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from devprof.capture import CaptureSession, PluginLedger, SessionReport, SessionState
from devprof.capture import session as session_module
from devprof.contract import ClockDomain
from devprof.errors import PluginWarning, SessionError
from devprof.model import ActivityType
from devprof.registry import RegisteredProfiler
from tests.unit.capture.plugins import CONFIG, KINDS, PatientRunner, plugin, session_of

ROOT = Path(__file__).parents[3]
CLOCK = ClockDomain("ticks")
STEPS: tuple[Callable[[CaptureSession], Any], ...] = (
    lambda capture: capture.prepare(KINDS),
    lambda capture: capture.start(),
    lambda capture: capture.stop(bool, 5, 50),
    lambda capture: capture.finish(),
)


def _capture(*plugins: RegisteredProfiler, runner: PatientRunner | None = None) -> CaptureSession:
    return CaptureSession(plugins, CONFIG, runner=runner or PatientRunner())


def _advanced(capture: CaptureSession, steps: int) -> CaptureSession:
    for step in STEPS[:steps]:
        step(capture)
    return capture


def test_two_plugins_deliver_side_by_side() -> None:
    one, other = plugin("one"), plugin("other")
    capture = _advanced(_capture(one, other), 2)
    results = capture.stop(bool, 5, 50)
    assert [(result.name, [len(batch) for batch in result.batches]) for result in results] == [
        ("one", [1]),
        ("other", [1]),
    ]
    assert capture.finish() == SessionReport(
        "python", {"one": PluginLedger("one"), "other": PluginLedger("other")}, start_ns=5, end_ns=50, complete=True
    )
    assert (capture.report.clean, capture.interrupt) == (True, None)


def test_each_plugin_may_be_asked_for_kinds_of_its_own_and_report_memory_to_a_place_of_its_own() -> None:
    asked: dict[str, Any] = {}

    class Reporter:
        def __init__(self, name: str) -> None:
            self.name = name

    def noting(name: str) -> RegisteredProfiler:
        found = plugin(name)
        configure = found.profiler.configure

        def note(kinds: Any, config: Any) -> Any:
            asked[name] = (kinds, config.memory.name, config.trace_id)
            return configure(kinds, config)

        found.profiler.configure = note  # type: ignore[method-assign]
        return found

    copies, kernels = frozenset({ActivityType.GPU_MEMCPY}), frozenset({ActivityType.CONCURRENT_KERNEL})
    capture = CaptureSession(
        [noting("one"), noting("other")],
        replace(CONFIG, trace_id="id"),
        runner=PatientRunner(),
        memory_for=Reporter,  # type: ignore[arg-type]  # it is only handed on
    )
    capture.prepare({"one": copies, "other": kernels})
    assert asked == {"one": (copies, "one", "id"), "other": (kernels, "other", "id")}


def test_a_capture_without_plugins_is_clean_and_empty() -> None:
    capture = _advanced(_capture(), 2)
    assert (capture.alive, capture.stop(bool, 5, 50), str(capture.finish())) == (
        False,
        [],
        "no devprof plugin took part",
    )


@pytest.mark.parametrize("hook", ["clock_domain", "start", "stop", "process_trace", "get_metadata"])
def test_the_failure_of_one_plugin_is_nothing_to_the_other(hook: str) -> None:
    def fail() -> None:
        raise OSError("broken")

    bad, good = plugin("bad", faults={hook: fail}), plugin("good")
    capture = _capture(bad, good)
    with pytest.warns(PluginWarning, match="plugin 'bad'") as caught:
        _advanced(capture, 4)
    assert len(caught) == 1
    assert (len(capture.report.ledgers["bad"].failures), capture.report.ledgers["good"]) == (1, PluginLedger("good"))
    assert session_of(good).calls[-1] == "get_trace_buffer"


def test_a_plugin_that_hangs_does_not_keep_the_next_one_from_its_time(
    runner: PatientRunner, hang: Callable[[], None]
) -> None:
    bad, good = plugin("bad", faults={"stop": hang}), plugin("good")
    capture = _advanced(_capture(bad, good, runner=runner), 2)
    with pytest.warns(PluginWarning, match="plugin 'bad', session.stop: did not come back"):
        results = capture.stop(bool, 5, 50)
    assert [len(result.batches) for result in results] == [0, 1]


def test_in_a_hurry_a_slow_plugin_is_given_up_on_and_the_others_still_deliver(release: threading.Event) -> None:
    runner = PatientRunner(grace_s=0.01)

    def slow() -> None:
        runner.hurry()
        release.wait(60)

    capture = _advanced(_capture(plugin("slow", faults={"stop": slow}), runner=runner), 2)
    runner._grace_s = 0.01
    with pytest.warns(PluginWarning, match="plugin 'slow', session.stop: was cut short by an interrupt"):
        assert capture.stop(bool, 5, 50)[0].batches == []
    later = PatientRunner(grace_s=60)
    later.hurry()
    later._hurried_at = 0.0  # long ago; the grace of the phases below is their own
    other = _advanced(_capture(plugin("other"), runner=later), 2)
    assert [len(result.batches) for result in other.stop(bool, 5, 50)] == [1]


# -- order ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("done", range(5))
def test_only_the_next_step_is_possible(done: int) -> None:
    for index, step in enumerate(STEPS):
        if index != done:
            registered = plugin()
            capture = _advanced(_capture(registered), done)
            before = list(session_of(registered).calls) if done else []
            with pytest.raises(SessionError, match="possible now"):
                step(capture)
            assert (list(session_of(registered).calls) if done else []) == before


def test_a_capture_that_is_finished_twice_says_so() -> None:
    capture = _advanced(_capture(plugin()), 4)
    with pytest.raises(SessionError, match="cannot finish a capture that is done; possible now: nothing"):
        capture.finish()
    assert capture.report.complete


def test_a_stop_without_a_start_is_refused_and_the_capture_can_be_cancelled() -> None:
    registered = plugin()
    capture = _advanced(_capture(registered), 1)
    with pytest.raises(SessionError, match="cannot stop a capture that is warmup"):
        capture.stop(bool, 5, 50)
    capture.cancel("never started")
    assert session_of(registered).calls == ["clock_domain", "stop"]


@pytest.mark.parametrize(
    ("done", "calls"),
    [(0, None), (1, ["clock_domain", "stop"]), (2, ["clock_domain", "start", "stop"])],
)
def test_a_cancelled_capture_has_stopped_its_plugins_and_says_why(done: int, calls: list[str] | None) -> None:
    registered = plugin()
    capture = _advanced(_capture(registered), done)
    capture.cancel("the user left")
    assert (session_of(registered).calls if calls else None) == calls
    assert (capture.state, capture.alive) == (SessionState.CANCELLED, False)
    assert capture.report == SessionReport("python", {"demo": PluginLedger("demo")}, notes=["the user left"])
    with pytest.raises(SessionError, match="cannot cancel a capture that is cancelled"):
        capture.cancel("again")


def test_a_capture_that_delivered_can_be_cancelled_and_calls_nobody_again() -> None:
    registered = plugin()
    capture = _advanced(_capture(registered), 3)
    before = list(session_of(registered).calls)
    capture.cancel("torch failed")
    assert (session_of(registered).calls, capture.report.complete) == (before, False)


def test_a_finished_capture_cannot_be_cancelled() -> None:
    capture = _advanced(_capture(plugin()), 4)
    with pytest.raises(SessionError, match="cannot cancel a capture that is done"):
        capture.cancel("too late")
    assert capture.report.notes == []


@pytest.mark.parametrize(("done", "reached"), [(0, False), (1, False), (2, True), (3, False), (4, False)])
def test_a_toggle_reaches_plugins_only_while_recording(done: int, reached: bool) -> None:
    registered = plugin()
    capture = _advanced(_capture(registered), done)
    capture.toggle(False)
    assert (done > 0 and "toggle_collection_dynamic" in session_of(registered).calls) == reached


# -- the clock's timer ------------------------------------------------------------------------------------------------


def _clock_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "devprof-clock"]


def test_clocks_are_sampled_while_recording_and_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "_SAMPLE_EVERY_S", 0.001)
    registered = plugin(clock=CLOCK)
    capture = _advanced(_capture(registered), 2)
    capture.watch_clocks()
    [timer] = _clock_threads()
    while session_of(registered).calls.count("sample_clock") < 15:
        pass
    [result] = capture.stop(bool, 5, 50)
    timer.join(60)
    ticks = [sample.device_ticks for sample in result.clock_samples]
    assert ticks == sorted(ticks)
    assert len(ticks) >= 20


@pytest.mark.parametrize("end", [lambda c: c.stop(bool, 5, 50), lambda c: c.cancel("x")])
def test_the_timer_ends_with_the_capture(end: Callable[[CaptureSession], Any]) -> None:
    capture = _advanced(_capture(plugin(clock=CLOCK)), 2)
    capture.watch_clocks()
    [timer] = _clock_threads()
    end(capture)
    timer.join(60)
    assert not timer.is_alive()


@pytest.mark.parametrize("clock", [None, ClockDomain("virtual", virtual=True)])
def test_where_no_clock_runs_there_is_no_timer(clock: ClockDomain | None) -> None:
    capture = _advanced(_capture(plugin(clock=clock)), 2)
    capture.watch_clocks()
    assert _clock_threads() == []
    capture.cancel("done")


def test_a_system_without_threads_has_no_timer_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    capture = _advanced(_capture(plugin(clock=CLOCK)), 2)

    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", start)
        capture.watch_clocks()
    assert len(capture.stop(bool, 5, 50)[0].clock_samples) == 10


def test_a_system_without_threads_loses_no_record(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    registered = plugin()
    capture = _capture(registered)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", start)
        [result] = _advanced(capture, 2).stop(bool, 5, 50)
    assert [len(batch) for batch in result.batches] == [1]
    assert (result.ledger.failures, result.ledger.set_aside) == ([], None)
    assert session_of(registered).threads["stop"] == threading.current_thread().name


# -- Ctrl-C -----------------------------------------------------------------------------------------------------------


class _Interrupted(PatientRunner):
    """Tells when the Ctrl-C has arrived."""

    def __init__(self) -> None:
        super().__init__(grace_s=60.0)
        self.arrived = threading.Event()

    def hurry(self) -> None:
        super().hurry()
        self.arrived.set()

    def press(self) -> None:
        _thread.interrupt_main()
        self.arrived.wait(60)


def test_a_ctrl_c_while_plugins_stop_is_kept_and_every_plugin_delivers() -> None:
    runner = _Interrupted()
    plugins = plugin("one", faults={"stop": runner.press}), plugin("other")
    capture = _advanced(_capture(*plugins, runner=runner), 2)
    results = capture.stop(bool, 5, 50)
    assert [len(result.batches) for result in results] == [1, 1]
    assert isinstance(capture.interrupt, KeyboardInterrupt)
    assert [ledger.failures for ledger in capture.report.ledgers.values()] == [[], []]


@pytest.mark.parametrize(("hook", "done"), [("clock_domain", 0), ("start", 1)])
def test_a_ctrl_c_while_plugins_begin_is_raised_when_the_hook_is_done(hook: str, done: int) -> None:
    runner = _Interrupted()
    registered = plugin(faults={hook: runner.press})
    capture = _advanced(_capture(registered, runner=runner), done)
    with pytest.raises(KeyboardInterrupt):
        STEPS[done](capture)
    capture.cancel("interrupted")
    assert session_of(registered).calls == (["clock_domain", "start", "stop"] if done else ["clock_domain", "stop"])
    assert capture.report.ledgers["demo"].failures == []


def test_a_ctrl_c_while_a_capture_is_cancelled_is_kept() -> None:
    runner = _Interrupted()
    plugins = plugin("one", faults={"stop": runner.press}), plugin("other")
    capture = _advanced(_capture(*plugins, runner=runner), 2)
    capture.cancel("the user left")
    assert isinstance(capture.interrupt, KeyboardInterrupt)
    assert [session_of(one).calls[-1] for one in plugins] == ["stop", "stop"]


# -- fork -------------------------------------------------------------------------------------------------------------

FORKED = """
    import os, sys, warnings
    warnings.simplefilter("ignore")
    from devprof.capture import CaptureSession
    from devprof.contract import ClockDomain
    from tests.unit.capture.plugins import CONFIG, KINDS, plugin, session_of

    def say(line):
        os.write(1, f"{line}\\n".encode())  # in one piece: two processes write at the same time

    def finish(who):
        [result] = capture.stop(bool, 5, 50)
        capture.finish()
        n_records = [len(batch) for batch in result.batches]
        say(f"{who} {n_records} {len(result.clock_samples) >= 10} {result.ledger.failures}")
    """


def _forked(body: str) -> list[str]:
    program = textwrap.dedent(FORKED) + textwrap.dedent(body)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return sorted(done.stdout.splitlines())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_process_forked_while_recording_can_stop_its_copy_of_the_capture() -> None:
    said = _forked("""
        capture = CaptureSession([plugin(clock=ClockDomain("ticks"))], CONFIG)
        capture.prepare(KINDS)
        capture.start()
        capture.watch_clocks()
        child = os.fork()
        finish("parent" if child else "child")
        if child:
            os.waitpid(child, 0)
    """)
    assert said == ["child [1] True []", "parent [1] True []"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_hook_that_forks_harms_nobody() -> None:
    said = _forked("""
        def fork():
            child = os.fork()
            if child:
                os.waitpid(child, 0)
            else:
                say("child")
        capture = CaptureSession([plugin(clock=ClockDomain("ticks"), faults={"stop": fork})], CONFIG)
        capture.prepare(KINDS)
        capture.start()
        finish("parent")
    """)
    assert said == ["child", "parent [1] True []"]
