"""Which steps a schedule records."""

from __future__ import annotations

from typing import Any

import pytest

from devprof.errors import DevprofWarning, UsageError
from devprof.profiler import ProfilerAction, schedule

LETTERS = {"NONE": ".", "WARMUP": "w", "RECORD": "r", "RECORD_AND_SAVE": "S"}


def drawn(n_steps: int, **plan: int) -> str:
    steps = schedule(**plan)  # type: ignore[arg-type]
    return "".join(LETTERS[steps(number).name] for number in range(n_steps))


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        ({"wait": 1, "warmup": 1, "active": 2}, ".wrS.wrS.wrS"),
        ({"wait": 1, "warmup": 1, "active": 2, "repeat": 1}, ".wrS........"),
        ({"wait": 1, "warmup": 1, "active": 2, "repeat": 2}, ".wrS.wrS...."),
        ({"wait": 0, "warmup": 1, "active": 1}, "wSwSwSwSwSwS"),
        ({"wait": 0, "warmup": 2, "active": 3, "skip_first": 2}, "..wwrrSwwrrS"),
        ({"wait": 3, "warmup": 1, "active": 1, "skip_first": 1, "skip_first_wait": 1}, ".wS...wS...w"),
        ({"wait": 3, "warmup": 1, "active": 1, "repeat": 1, "skip_first_wait": 1}, "wS.........."),
    ],
)
def test_a_schedule_skips_waits_warms_up_records_and_repeats(plan: dict[str, int], expected: str) -> None:
    assert drawn(12, **plan) == expected


def test_a_schedule_without_warmup_says_what_that_costs() -> None:
    with pytest.warns(DevprofWarning, match="no warmup") as caught:
        steps = schedule(wait=0, warmup=0, active=1)
    assert caught[0].filename == __file__
    assert steps(0) is ProfilerAction.RECORD_AND_SAVE


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        ({"wait": -1, "warmup": 1, "active": 1}, "wait is -1; expected 0 or more"),
        ({"wait": 1, "warmup": -1, "active": 1}, "warmup is -1; expected 0 or more"),
        ({"wait": 1, "warmup": 1, "active": 0}, "active is 0; expected 1 or more"),
        ({"wait": 1, "warmup": 1, "active": 1, "repeat": -2}, "repeat is -2; expected 0 or more"),
        ({"wait": 1, "warmup": 1, "active": 1, "skip_first": -1}, "skip_first is -1; expected 0 or more"),
        ({"wait": 1.5, "warmup": 1, "active": 1}, "wait is 1.5; expected a whole number from 0 up"),
        ({"wait": 1, "warmup": 1, "active": "2"}, "active is '2'; expected a whole number from 1 up"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused_with_what_is_expected(plan: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as refused:
        schedule(**plan)
    assert str(refused.value) == f"schedule: {words}"


def test_steps_are_numbered_from_0() -> None:
    with pytest.raises(UsageError, match="step is -1"):
        schedule(wait=1, warmup=1, active=1)(-1)


def test_two_schedules_of_one_plan_are_equal_and_say_what_they_are() -> None:
    one, other = (schedule(wait=1, warmup=2, active=3) for _ in range(2))
    assert one == other
    assert repr(one) == "Schedule(wait=1, warmup=2, active=3, repeat=0, skip_first=0, skip_first_wait=False)"
