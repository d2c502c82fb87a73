"""The schedule is torch's, step for step; torch's own schedule and members may be used as well."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from devprof.errors import DevprofWarning, UsageError
from devprof.profiler import ProfilerAction, ProfilerActivity, schedule
from devprof.profiler.actions import action_of
from devprof.profiler.activities import wanted_activities

COUNTS = st.integers(0, 6)


@given(
    plan=st.fixed_dictionaries(
        {
            "wait": COUNTS,
            "warmup": COUNTS,
            "active": st.integers(1, 6),
            "repeat": st.integers(0, 3),
            "skip_first": COUNTS,
            "skip_first_wait": st.integers(0, 2),
        }
    )
)
def test_every_plan_gives_torchs_actions(plan: dict[str, int]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        ours, theirs = schedule(**plan), torch.profiler.schedule(**plan)  # type: ignore[arg-type]
    n_steps = 4 * sum(plan.values()) + 5
    assert [ours(step).name for step in range(n_steps)] == [theirs(step).name for step in range(n_steps)]


@given(
    plan=st.fixed_dictionaries(
        {name: st.integers(-2, 2) for name in ("wait", "warmup", "active", "repeat", "skip_first")}
    )
)
def test_a_plan_is_refused_where_torch_refuses_it(plan: dict[str, int]) -> None:
    def refused(make: Any, error: type[Exception]) -> bool:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            try:
                make(**plan)
            except error:
                return True
        return False

    assert refused(schedule, UsageError) == refused(torch.profiler.schedule, AssertionError)


def test_both_warn_of_a_missing_warmup() -> None:
    with pytest.warns(UserWarning, match="warmup") as caught:
        torch.profiler.schedule(wait=0, warmup=0, active=1)
    assert len(caught) == 1
    with pytest.warns(DevprofWarning, match="warmup") as caught:
        schedule(wait=0, warmup=0, active=1)
    assert len(caught) == 1


def test_actions_have_torchs_names_and_numbers_and_torchs_are_taken() -> None:
    theirs = torch.profiler.ProfilerAction
    assert {one.name: one.value for one in ProfilerAction} == {one.name: one.value for one in theirs}
    possible = [one for one in theirs if one.name != "DEVICE_STOPPED"]
    assert [action_of(one, 0).name for one in possible] == [one.name for one in possible]


def test_torchs_activities_are_taken_whatever_the_backend_is_called() -> None:
    members = torch.profiler.ProfilerActivity.__members__
    assert set(members) == set(ProfilerActivity.__members__)
    assert [one.name for one in wanted_activities(members.values())] == list(members)
