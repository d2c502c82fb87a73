"""What may be recorded, as a user may write it."""

from __future__ import annotations

import enum
from typing import Any

import pytest

from devprof.capture.hosting import WantedActivity
from devprof.errors import UsageError
from devprof.model import ActivityType
from devprof.profiler import ProfilerActivity
from devprof.profiler.activities import wanted_activities
from devprof.profiler.options import TraceIds, profile_options

torchs = enum.Enum("ProfilerActivity", ["CPU", "CUDA", "PrivateUse1"])


@pytest.mark.parametrize(
    ("activities", "names"),
    [
        (["cpu", "openreg"], ["CPU", "openreg"]),
        ([ProfilerActivity.CPU, ProfilerActivity.PrivateUse1], ["CPU", "PrivateUse1"]),
        ([torchs["CPU"], torchs["CUDA"]], ["CPU", "CUDA"]),
        ({"cpu"}, ["CPU"]),
        (["CUDA", " openreg "], ["CUDA", "openreg"]),
        ((), []),
    ],
)
def test_groups_are_named_by_a_member_of_either_enum_or_by_text(activities: Any, names: list[str]) -> None:
    assert [one.name for one in wanted_activities(activities)] == names


def test_a_group_may_be_narrowed_to_some_kinds() -> None:
    wanted = wanted_activities(["cpu", {"openreg": ["GPU_MEMCPY", "concurrent_kernel"], torchs["CUDA"]: []}])
    assert wanted == (
        WantedActivity("CPU"),
        WantedActivity("openreg", frozenset({ActivityType.GPU_MEMCPY, ActivityType.CONCURRENT_KERNEL})),
        WantedActivity("CUDA", frozenset()),
    )


@pytest.mark.parametrize(
    ("activities", "words"),
    [
        ("cpu", r"activities is 'cpu'; expected a list, such as \['cpu'\]"),
        (7, "activities is 7; expected a list"),
        ([7], "an activity is 7; expected the name of a plugin.*'cpu', 'xpu'"),
        ([""], "an activity is ''"),
        (["cpu", ProfilerActivity.CPU], "CPU more than once"),
        ([{"openreg": "GPU_MEMCPY"}], "kinds of 'openreg' are 'GPU_MEMCPY'; expected a list of names"),
        ([{"openreg": ["KERNEL"]}], "a kind of 'openreg' is 'KERNEL'; expected one of CPU_OP, USER_ANNOTATION"),
    ],
)
def test_what_is_no_activity_is_refused_with_what_there_is(activities: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        wanted_activities(activities)


SWITCHES = dict.fromkeys(
    ("record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules", "acc_events"), False
)


def options_of(activities: Any, use_cpu: bool | None = None) -> Any:
    return profile_options(activities, use_cpu, TraceIds(None), {"experimental_config": None}, **SWITCHES)


CPU = WantedActivity("CPU")
OPENREG = WantedActivity("openreg")


@pytest.mark.parametrize(
    ("activities", "use_cpu", "cpu", "devices"),
    [
        (None, None, CPU, None),
        (None, False, None, None),
        (["openreg"], None, None, (OPENREG,)),
        (["openreg"], True, CPU, (OPENREG,)),
        (["openreg", "cpu"], None, CPU, (OPENREG,)),
        (["openreg", "cpu"], False, None, (OPENREG,)),
        (["cpu"], None, CPU, ()),
    ],
)
def test_the_hosts_side_is_recorded_as_the_activities_or_use_cpu_say(
    activities: Any, use_cpu: bool | None, cpu: WantedActivity | None, devices: Any
) -> None:
    found = options_of(activities, use_cpu)
    assert (found.cpu, found.devices, dict(found.torch_only)) == (cpu, devices, {})


@pytest.mark.parametrize("activities", [[], ["cpu"]])
def test_a_profile_of_nothing_is_refused(activities: list[str]) -> None:
    with pytest.raises(UsageError, match="nothing to record"):
        options_of(activities, use_cpu=False)


def test_flops_need_shapes_and_so_turn_them_on() -> None:
    found = profile_options(None, None, TraceIds(None), {}, **{**SWITCHES, "with_flops": True})
    assert (found.with_flops, found.record_shapes) == (True, True)


def test_ids_of_traces_are_the_users_or_32_digits_and_never_twice_the_same() -> None:
    ids = TraceIds(None)
    made = {ids.make() for _ in range(100)}
    assert len(made) == 100
    assert all(len(one) == 32 and int(one, 16) for one in made)
    ids.callback = lambda: "mine"
    assert ids.make() == "mine"
