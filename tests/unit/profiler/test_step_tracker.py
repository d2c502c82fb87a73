"""One count of steps for several requesters."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devprof.errors import DevprofWarning
from devprof.profiler import StepTracker


def test_two_that_count_the_same_steps_make_one_count() -> None:
    tracker = StepTracker()
    tracker.init_step_count("profiler")
    tracker.init_step_count("optimizer")
    counts = [tracker.increment_step(name) for name in ("profiler", "optimizer", "optimizer", "profiler")]
    assert counts == [1, 1, 2, 2]
    assert tracker.current_step() == 2


def test_who_comes_later_counts_from_the_global_step_on() -> None:
    tracker = StepTracker()
    for _ in range(5):
        tracker.increment_step("profiler")
    assert tracker.increment_step("late") == 6


def test_a_requester_can_be_forgotten_and_the_count_stays() -> None:
    tracker = StepTracker()
    tracker.increment_step("profiler")
    assert tracker.erase_step_count("profiler")
    assert not tracker.erase_step_count("profiler")
    assert tracker.current_step() == 1
    assert tracker.increment_step("profiler") == 2


def test_a_count_that_jumps_is_called_out(monkeypatch: pytest.MonkeyPatch) -> None:
    tracker = StepTracker()
    tracker.init_step_count("profiler")
    tracker._steps["profiler"] = 4
    with pytest.warns(DevprofWarning, match="went from 0 to 5 at once"):
        assert tracker.increment_step("profiler") == 5


@given(st.lists(st.sampled_from("abc")))
def test_the_global_step_is_the_greatest_count(calls: list[str]) -> None:
    tracker = StepTracker()
    for name in "abc":
        tracker.init_step_count(name)
    for name in calls:
        tracker.increment_step(name)
    assert tracker.current_step() == max((calls.count(name) for name in "abc"), default=0)


def test_no_step_of_any_thread_is_lost() -> None:
    tracker = StepTracker()
    threads = [threading.Thread(target=lambda: [tracker.increment_step("loop") for _ in range(500)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert tracker.current_step() == 2000
