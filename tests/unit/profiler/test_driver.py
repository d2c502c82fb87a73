"""From steps to moves: every transition, and what stays in order when something raises."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devprof.errors import DevprofWarning, UsageError
from devprof.profiler import ProfilerAction
from devprof.profiler.actions import TRANSITIONS, Move
from devprof.profiler.driver import Driver

NONE, WARMUP, RECORD, LAST, STOPPED = ProfilerAction
PLANNED = (NONE, WARMUP, RECORD, LAST)


class Recorder:
    """A host that only notes its moves, and refuses those that make no sense."""

    def __init__(self, plan: Sequence[Any], *, raises: dict[Move, BaseException] | None = None) -> None:
        self.made: list[str] = []
        self.state = "idle"
        self.device_stops_at: set[int] = set()
        self.raises = raises or {}
        moves = {move: (lambda move=move: self.make(move)) for move in Move if move is not Move.WARN}
        self.driver = Driver(lambda step: plan[step], moves, stopped_early=self.stopped_early)

    def stopped_early(self) -> bool:
        return self.driver.step_num in self.device_stops_at

    def make(self, move: Move) -> None:
        self.made.append(move.value)
        expected, following = {
            Move.PREPARE: ("idle", "ready"),
            Move.START: ("ready", "recording"),
            Move.STOP: ("recording", "idle"),
            Move.TRACE_READY: ("idle", "idle"),
        }[move]
        assert self.state == expected, f"{move} while {self.state}"
        if move in self.raises:
            error = self.raises.pop(move)
            if move in (Move.STOP, Move.TRACE_READY):
                self.state = following
            else:
                self.state = "idle"
            raise error
        self.state = following

    def run(self, n_steps: int) -> list[list[str]]:
        """Begin, take all steps, end; return the moves of each call."""
        calls: list[list[str]] = []
        for call in (self.driver.begin, *[self.driver.step] * (n_steps - 1), self.driver.end):
            self.made = []
            call()
            calls.append(self.made)
        return calls


def test_a_cycle_prepares_records_and_hands_its_trace_over() -> None:
    plan = (NONE, WARMUP, RECORD, LAST, NONE)
    assert Recorder(plan).run(5) == [[], ["prepare"], ["start"], [], ["stop", "trace ready"], []]


def test_cycles_without_a_pause_end_one_recording_before_they_begin_the_next() -> None:
    assert Recorder((LAST, LAST, RECORD, LAST, WARMUP)).run(5) == [
        ["prepare", "start"],
        ["stop", "trace ready", "prepare", "start"],
        ["stop", "trace ready", "prepare", "start"],
        [],
        ["stop", "trace ready", "prepare"],
        ["start", "stop"],
    ]


def test_a_stop_in_the_middle_of_a_cycle_hands_over_what_there_is() -> None:
    assert Recorder((RECORD, RECORD)).run(2) == [["prepare", "start"], [], ["stop", "trace ready"]]


@pytest.mark.parametrize(
    ("plan", "moves", "words"),
    [
        ((WARMUP, NONE), ["start", "stop"], "from WARMUP to NONE"),
        ((RECORD, NONE), ["stop"], "from RECORD to NONE"),
        ((RECORD, WARMUP), ["stop", "prepare"], "from RECORD to WARMUP"),
    ],
)
def test_a_schedule_that_makes_no_sense_is_called_out_and_the_profiler_stays_in_order(
    plan: tuple[ProfilerAction, ...], moves: list[str], words: str
) -> None:
    with pytest.warns(DevprofWarning, match=words):
        calls = Recorder((*plan, NONE)).run(2)
    assert calls[1] == moves


def test_the_table_has_an_entry_for_every_step_that_can_follow_another() -> None:
    possible = {(before, after) for before in ProfilerAction for after in (*PLANNED, None)}
    possible |= {(WARMUP, STOPPED), (RECORD, STOPPED), (STOPPED, STOPPED)}
    assert set(TRANSITIONS) == possible


@pytest.mark.filterwarnings("ignore::devprof.errors.DevprofWarning")
@given(plan=st.lists(st.sampled_from(PLANNED), min_size=1, max_size=12), stops=st.sets(st.integers(0, 12)))
def test_whatever_a_schedule_and_the_device_do_no_move_comes_out_of_order_and_nothing_is_left_running(
    plan: list[ProfilerAction], stops: set[int]
) -> None:
    host = Recorder(plan)
    host.device_stops_at = stops
    calls = host.run(len(plan))  # `Recorder.make` asserts the order
    assert host.state == "idle"
    made = [move for moves in calls for move in moves]
    assert made.count("start") == made.count("stop")


@given(plan=st.lists(st.sampled_from(PLANNED), min_size=1, max_size=12))
@pytest.mark.filterwarnings("ignore::devprof.errors.DevprofWarning")
def test_what_records_is_what_the_schedule_says(plan: list[ProfilerAction]) -> None:
    host = Recorder(plan)
    host.driver.begin()
    for number, action in enumerate(plan):
        assert host.driver.action is action
        assert (host.state == "recording") == (action in (RECORD, LAST))
        assert (host.state == "ready") == (action is WARMUP)
        if number < len(plan) - 1:
            host.driver.step()


def test_when_the_device_stops_early_the_rest_of_the_cycle_passes_and_the_next_records_again() -> None:
    host = Recorder((WARMUP, RECORD, RECORD, LAST, WARMUP, LAST, NONE))
    host.device_stops_at = {2, 3}
    with pytest.warns(DevprofWarning, match="the device stopped recording before step 2"):
        calls = host.run(7)
    assert calls == [
        ["prepare"],
        ["start"],
        ["stop", "trace ready"],
        [],
        ["prepare"],
        ["start"],
        ["stop", "trace ready"],
        [],
    ]


def test_what_the_callback_raises_comes_out_once_the_next_recording_has_begun() -> None:
    host = Recorder((LAST, RECORD, LAST), raises={Move.TRACE_READY: ValueError("the callback's")})
    host.driver.begin()
    with pytest.raises(ValueError, match="the callback's"):
        host.driver.step()
    assert (host.state, host.driver.step_num, host.driver.action) == ("recording", 1, RECORD)
    host.driver.step()
    host.driver.end()
    assert host.state == "idle"


def test_an_interrupt_during_the_stop_does_not_keep_the_trace_from_the_callback() -> None:
    host = Recorder((RECORD,), raises={Move.STOP: KeyboardInterrupt()})
    host.driver.begin()
    host.made = []
    with pytest.raises(KeyboardInterrupt):
        host.driver.end()
    assert host.made == ["stop", "trace ready"]


def test_where_the_stop_fails_there_is_no_trace_to_hand_over() -> None:
    host = Recorder((RECORD,), raises={Move.STOP: RuntimeError("broken")})
    host.driver.begin()
    host.made = []
    with pytest.raises(RuntimeError, match="broken"):
        host.driver.end()
    assert host.made == ["stop"]


@pytest.mark.parametrize("move", [Move.PREPARE, Move.START])
def test_where_nothing_can_be_recorded_the_program_is_told_and_a_later_step_tries_again(move: Move) -> None:
    host = Recorder((NONE, RECORD, RECORD, LAST), raises={move: RuntimeError("not now")})
    host.driver.begin()
    with pytest.raises(RuntimeError, match="not now"):
        host.driver.step()
    assert (host.state, host.driver.action) == ("idle", NONE)
    host.driver.step()
    assert (host.state, host.driver.action) == ("recording", RECORD)


def test_an_answer_that_is_no_action_leaves_the_profiler_at_its_step() -> None:
    host = Recorder((RECORD, "RECORD", LAST))
    host.driver.begin()
    with pytest.raises(UsageError, match="the schedule returned 'RECORD' for step 1; expected a ProfilerAction"):
        host.driver.step()
    assert (host.driver.step_num, host.driver.action, host.state) == (0, RECORD, "recording")


def test_only_the_profiler_itself_may_say_that_the_device_stopped() -> None:
    with pytest.raises(UsageError, match="DEVICE_STOPPED for step 0"):
        Recorder((STOPPED,))


def test_an_action_of_another_profiler_is_taken_by_its_name() -> None:
    theirs = enum.Enum("ProfilerAction", {"NONE": 10, "RECORD": 11})
    host = Recorder((theirs["NONE"], theirs["RECORD"]))
    assert host.run(2) == [[], ["prepare", "start"], ["stop", "trace ready"]]


def test_a_profile_that_is_started_again_goes_on_with_its_step() -> None:
    host = Recorder((RECORD, RECORD, LAST, NONE))
    host.driver.begin()
    host.driver.step()
    host.driver.end()
    host.made = []
    host.driver.begin()
    assert (host.driver.step_num, host.made) == (1, ["prepare", "start"])
