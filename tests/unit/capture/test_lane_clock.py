"""A plugin's clock in a capture: when it is read, and what becomes of one that cannot be used."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from devprof.contract import (
    ActivityLogger,
    ClockDomain,
    ClockSample,
    IActivityProfilerSession,
)
from devprof.model import ActivityBatch
from tests.unit.capture.lanes import (
    CLOCK,
    lane_of,
    one_warning,
    run_through,
)
from tests.unit.capture.plugins import (
    CONFIG,
    KERNEL,
    KINDS,
    BareSession,
    PatientRunner,
    one_kernel,
    session_of,
)


def test_the_clock_is_sampled_before_the_start_and_after_the_stop(runner: PatientRunner) -> None:
    lane, registered = lane_of(runner, clock=CLOCK)
    result = run_through(lane)
    bursts = ["sample_clock"] * 5
    assert session_of(registered).calls[:13] == ["clock_domain", *bursts, "start", "stop", *bursts]
    assert result.clock_domain == CLOCK
    assert result.clock_samples == [ClockSample(1_000, ticks, 1_000) for ticks in range(1, 11)]
    assert [batch.clock for batch in result.batches] == ["ticks"]


def test_a_timer_adds_a_burst_for_a_clock_that_runs_with_the_hosts(runner: PatientRunner) -> None:
    lane, _ = lane_of(runner, clock=CLOCK)
    lane.sample_clock()
    lane.configure(KINDS, CONFIG)
    lane.start()
    lane.sample_clock()
    assert [s.device_ticks for s in lane.finish(bool, 5, 50).clock_samples] == list(range(1, 16))
    lane.sample_clock()


@pytest.mark.parametrize("clock", [None, ClockDomain("virtual", virtual=True)])
def test_a_timer_leaves_other_clocks_alone(clock: ClockDomain | None, runner: PatientRunner) -> None:
    lane, registered = lane_of(runner, clock=clock)
    lane.configure(KINDS, CONFIG)
    lane.sample_clock()
    assert session_of(registered).calls == ["clock_domain"]


def test_a_timer_does_not_run_into_another_hook(runner: PatientRunner) -> None:
    def stop() -> None:
        before = len(session_of(registered).calls)
        lane.sample_clock()
        assert len(session_of(registered).calls) == before

    lane, registered = lane_of(runner, clock=CLOCK, faults={"stop": stop})
    assert run_through(lane).ledger.failures == []


@pytest.mark.parametrize("ticks", [1.5, "1", None, float("nan")])
def test_a_clock_that_gives_no_whole_ticks_sets_its_plugin_aside(ticks: Any, runner: PatientRunner) -> None:
    lane, registered = lane_of(runner, clock=CLOCK, faults={"sample_clock": lambda: ticks})
    with one_warning("session.sample_clock"):
        result = run_through(lane)
    assert session_of(registered).calls == ["clock_domain", "sample_clock"]
    assert result.clock_samples == []


def test_a_clock_that_fails_in_between_sets_its_plugin_aside_and_its_device_is_stopped(runner: PatientRunner) -> None:
    readings = iter(range(5))
    lane, registered = lane_of(runner, clock=CLOCK, faults={"sample_clock": lambda: next(readings)})
    lane.configure(KINDS, CONFIG)
    lane.start()
    with one_warning("session.sample_clock"):
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

    lane, registered = lane_of(runner, clock=CLOCK, faults={"sample_clock": read})
    lane.configure(KINDS, CONFIG)
    lane.start()
    timer = threading.Thread(target=lane.sample_clock, name="devprof-clock")
    timer.start()
    entered.wait(60)
    runner.run = _impatient(runner)  # type: ignore[method-assign]
    with one_warning("session.sample_clock"):
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
    lane, _ = lane_of(runner, clock=domain)
    with one_warning("session.clock_domain"):
        assert not lane.configure(KINDS, CONFIG)
    assert problem in lane.ledger.failures[0]


def test_a_clock_without_a_way_to_read_it_sets_its_plugin_aside_at_once(runner: PatientRunner) -> None:
    class Clocked(BareSession, IActivityProfilerSession):
        def clock_domain(self) -> ClockDomain:
            return CLOCK

    lane, _ = lane_of(runner, make=Clocked)
    with one_warning("session.clock_domain"):
        assert not lane.configure(KINDS, CONFIG)
    assert "the session has no sample_clock(), so its ticks would have no time" in lane.ledger.failures[0]


def test_a_batch_on_a_wrong_clock_keeps_what_came_before(runner: PatientRunner) -> None:
    def deliver(logger: ActivityLogger) -> None:
        one_kernel(logger)
        logger.handle_activities(ActivityBatch.from_activities([KERNEL], clock="other"))

    lane, _ = lane_of(runner, deliver=deliver)
    with one_warning("logger.handle_activities"):
        result = run_through(lane)
    assert [len(batch) for batch in result.batches] == [1]
