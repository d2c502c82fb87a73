"""Lists, trees, self times and averages of a real session are torch's own, field by field, except where torch is wrong.

Where they differ, a test here says so and why; `docs/differences-from-torch.md` has the list.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
import toyland
from torch._C._profiler import _ExperimentalConfig
from torch.profiler import ProfilerActivity, record_function
from toyland import Join, Runtime

from devprof import analysis
from devprof.model import ActivityType
from devprof.torch import trace_of
from tests.cases.like_torch import GROUPINGS, averages_read, differing, events_read, unlike

CPU_ONLY = (ProfilerActivity.CPU,)
EVERYTHING = {"record_shapes": True, "profile_memory": True, "with_flops": True}


@pytest.fixture(scope="module")
def model() -> torch.nn.Module:
    torch.manual_seed(0)
    made = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
    made(torch.ones(2, 8)).sum().backward()
    return made


def recorded(body: Callable[[], Any], activities: Any = CPU_ONLY, **options: Any) -> Any:
    """Return a finished torch profile of `body`."""
    with toyland.profile(activities, **options) as prof:
        body()
    return prof


def all_differences(prof: Any) -> dict[str, Any]:
    """Return where devprof's events and averages differ from torch's, by attribute and by grouping."""
    trace = trace_of(prof)
    found: dict[str, Any] = differing(events_read(analysis.events(trace), trace), events_read(prof.events(), trace))
    for by_shape, by_stack, by_overload in GROUPINGS:
        mine = analysis.key_averages(trace, by_shape, by_stack, by_overload)
        theirs = prof.key_averages(by_shape, by_stack, by_overload)
        if differences := differing(averages_read(mine), averages_read(theirs)):
            found[f"averages by {by_shape}, {by_stack}, {by_overload}"] = differences
    return found


def trained(model: torch.nn.Module) -> Callable[[], None]:
    """Return a training step."""

    def step() -> None:
        model(torch.ones(2, 8)).square().mean().backward()

    return step


def recursion(depth: int) -> None:
    with record_function("recursion"):
        if depth:
            recursion(depth - 1)
        else:
            torch.ones(2) + 1


def nested_ranges() -> None:
    recursion(3)
    with record_function("outer"):
        for _ in range(2):
            with record_function("inner"):
                torch.ones(2).mul(2)
        with record_function("outer"):
            pass
    torch.cat([torch.ones(2, 3), torch.zeros(2, 3)])


def _forked(x: torch.Tensor) -> torch.Tensor:
    future = torch.jit.fork(torch.neg, x)
    return torch.jit.wait(future) + 1


@pytest.fixture(scope="module")
def forked() -> Any:
    """A script with a fork: its ops run on a thread of torch's own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        script = torch.jit.script(_forked)
    for _ in range(3):  # the first runs compile
        script(torch.ones(3))
    return script


def ends_elsewhere() -> None:
    with record_function("ends on another thread") as block:
        future: torch.futures.Future[int] = torch.futures.Future()
        ended = block._call_end_callbacks_on_future(future)
    worker = threading.Thread(target=lambda: future.set_result(1))
    worker.start()
    worker.join()
    ended.wait()


def three_threads() -> None:
    def work() -> None:
        with record_function("worker"):
            torch.ones(4, 4) @ torch.ones(4, 4)

    workers = [threading.Thread(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    work()


@pytest.mark.parametrize("options", [{}, EVERYTHING], ids=["plain", "everything"])
def test_a_training_step_is_listed_and_summed_as_torch_does(model: torch.nn.Module, options: dict[str, Any]) -> None:
    assert all_differences(recorded(trained(model), **options)) == {}


def test_stacks_modules_and_overloads_are_torchs(model: torch.nn.Module) -> None:
    config = _ExperimentalConfig(verbose=True, capture_overload_names=True)
    prof = recorded(trained(model), with_stack=True, with_modules=True, experimental_config=config, **EVERYTHING)
    assert any(one.stack for one in prof.events())
    assert all_differences(prof) == {}


def test_nested_ranges_and_recursion_are_torchs() -> None:
    assert all_differences(recorded(nested_ranges, **EVERYTHING)) == {}


def test_forks_are_torchs(forked: Any) -> None:
    prof = recorded(lambda: forked(torch.ones(3)), record_shapes=True)
    assert any(one.name == "<forked function>" for one in prof.events())
    trace = trace_of(prof)
    found = differing(events_read(analysis.events(trace), trace), events_read(prof.events(), trace))
    # a script that waits goes on, and ends, on the thread of its fork: at times after the profile has stopped, and then
    # Kineto's trace and torch's list give it different ends
    assert {name for differences in found.values() for name, _, _ in differences} <= {"_forked", "<forked function>"}
    assert found.keys() <= {"end", "cpu_time", "cpu_time_total"}


def test_ranges_that_end_on_another_thread_are_torchs() -> None:
    prof = recorded(ends_elsewhere)
    assert [one.name for one in prof.events() if one.is_async and one.is_user_annotation] == ["ends on another thread"]
    assert all_differences(prof) == {}


def test_threads_are_torchs() -> None:
    prof = recorded(three_threads, experimental_config=_ExperimentalConfig(profile_all_threads=True))
    assert len({one.thread for one in prof.events()}) == 4
    assert all_differences(prof) == {}


def test_operations_are_counted_as_torch_counts_them() -> None:
    def body() -> None:
        x, matrices = torch.ones(2, 3, 8, 8), torch.ones(2, 3, 3)
        torch.nn.functional.conv2d(x, torch.ones(4, 3, 3, 3), padding=1, stride=2)
        torch.nn.functional.conv2d(x, torch.ones(6, 1, 3, 3), groups=3, dilation=2)
        torch.bmm(matrices, matrices)
        torch.baddbmm(matrices, matrices, matrices)
        torch.ones(3, 4) @ torch.ones(4, 5)
        torch.ones(3) @ torch.ones(3)
        x.sum() * 3 + 1

    prof = recorded(body, with_flops=True)
    assert sum(one.flops or 0 for one in prof.events()) > 10_000
    assert all_differences(prof) == {}


def work_on_a_device(runtime: Runtime) -> Callable[[], None]:
    """Return a program with launches, copies and sets, in ops, in ranges and in neither."""

    def body() -> None:
        with record_function("range"):
            toyland.run_in_op(lambda: runtime.launch("a", works=3))
            runtime.launch("in the range alone", stream=1)
            toyland.run_in_op(lambda: runtime.launch("copy", work_type=ActivityType.GPU_MEMCPY, device=1))
        runtime.launch("in nothing", launches=False)
        toyland.run_in_op(lambda: runtime.launch("set", work_type=ActivityType.GPU_MEMSET, launches=False))

    return body


def test_device_work_is_listed_owned_and_summed_as_torch_does(join: Join) -> None:
    runtime = Runtime()
    join(toyland.scripted(script=runtime.script, torch_device=toyland.backend()))
    prof = recorded(work_on_a_device(runtime), toyland.BOTH, **EVERYTHING)
    found = all_differences(prof)
    # what belongs to no op belongs to no thread; torch says the one that stopped the profile
    assert {(name, mine) for name, mine, _ in found.pop("thread")} == {
        ("in nothing", 0),
        ("in the range alone", 0),
        ("range", 0),
    }
    assert found == {}
    assert [[kernel.name for kernel in one.kernels] for one in analysis.events(trace_of(prof)) if one.kernels] == [
        ["a", "a", "a"],
        ["copy"],
        ["set"],
    ]


TABLES: list[dict[str, Any]] = [
    {},
    {"sort_by": "self_cpu_time_total", "row_limit": 5},
    {"sort_by": "device_time_total"},
    {"sort_by": "self_cuda_time_total", "time_unit": "us"},
    {"sort_by": "count", "header": "Title", "top_level_events_only": True},
    {"max_name_column_width": 20, "max_shapes_column_width": 30, "time_unit": "ms"},
]


@pytest.mark.parametrize("asked", TABLES, ids=str)
def test_tables_hold_what_torchs_hold(join: Join, asked: dict[str, Any]) -> None:
    runtime = Runtime()
    join(toyland.scripted(script=runtime.script, torch_device=toyland.backend()))
    prof = recorded(work_on_a_device(runtime), toyland.BOTH, record_shapes=True, profile_memory=True)
    listed = analysis.events(trace_of(prof))
    # torch adds up floats, and so finds an order where sums are equal
    in_order = not asked.get("sort_by", "").startswith(("device", "self_cuda"))
    for by_shape in (False, True):
        mine = listed.key_averages(group_by_input_shapes=by_shape).table(**asked)
        theirs = prof.key_averages(group_by_input_shape=by_shape).table(**asked)
        assert unlike(mine, theirs, in_order=in_order) == []
    assert unlike(listed.table(**asked), prof.events().table(**asked), in_order=in_order) == []


def test_totals_are_torchs(model: torch.nn.Module) -> None:
    prof = recorded(trained(model), **EVERYTHING)
    mine, theirs = analysis.events(trace_of(prof)), prof.profiler
    assert mine.self_cpu_time_total == pytest.approx(theirs.self_cpu_time_total, abs=1e-3)
    ours, torchs = mine.total_average(), prof.events().total_average()
    for name in ("key", "count", "cpu_memory_usage", "self_cpu_memory_usage"):
        assert getattr(ours, name) == getattr(torchs, name)
    for name in ("cpu_time_total", "self_cpu_time_total", "device_time_total"):
        assert getattr(ours, name) == pytest.approx(getattr(torchs, name), abs=1e-3)


# --- where torch is wrong ---------------------------------------------------------------------------------------------


def crossing_ranges() -> None:
    """A range begins in one function, outlives it, and ends in another one."""

    def begin(block: Any) -> None:
        block.__enter__()
        for _ in range(50):
            torch.ones(2)

    def end(block: Any) -> None:
        block.__exit__(None, None, None)

    block = torch._C._profiler._RecordFunctionFast("outlives begin()")
    begin(block)
    torch.ones(2)
    end(block)


VERBOSE = {"with_stack": True, "experimental_config": _ExperimentalConfig(verbose=True)}


def test_a_range_that_outlives_the_function_where_it_began_gives_torch_a_negative_self_time() -> None:
    """Both stand in the function around them, and torch takes the time that they share off it twice."""
    prof = recorded(crossing_ranges, **VERBOSE)
    found = all_differences(prof)
    assert min(theirs for _, _, theirs in found["self_cpu_time_total"]) < 0
    assert min(one.self_cpu_time_total for one in analysis.events(trace_of(prof))) >= 0
    in_averages = {name for key in found if key.startswith("averages") for name in found[key]}
    assert {key for key in found if not key.startswith("averages")} == in_averages == {"self_cpu_time_total"}
    # all together are as long as the thread was busy, for both
    total_us = analysis.events(trace_of(prof)).self_cpu_time_total
    assert total_us == pytest.approx(prof.events().self_cpu_time_total, abs=1e-3)


def test_torch_has_stacks_only_where_it_is_told_to_be_verbose(model: torch.nn.Module) -> None:
    prof = recorded(trained(model), with_stack=True)
    assert not any(one.stack for one in prof.events())
    (mine,) = [one for one in analysis.events(trace_of(prof)) if one.name == "aten::mean"]
    assert mine.stack[1].endswith(": step")


def test_torch_gives_a_range_the_memory_of_another_thread(forked: Any) -> None:
    def body() -> None:
        x = torch.ones(1000)
        with record_function("around"):
            forked(x)

    prof = recorded(body, profile_memory=True)
    (theirs,) = [one for one in prof.events() if one.name == "around"]
    listed = analysis.events(trace_of(prof))
    (mine,) = [one for one in listed if one.name == "around"]
    on_the_other = sum(
        one.self_cpu_memory_usage for one in listed if one.thread != mine.thread and one.start_ns < mine.end_ns
    )
    assert on_the_other >= 4000
    assert theirs.cpu_memory_usage == mine.cpu_memory_usage + on_the_other


def test_torch_loses_the_work_of_an_op_whose_only_child_has_its_name(join: Join) -> None:
    runtime = Runtime()
    join(toyland.scripted(script=runtime.script, torch_device=toyland.backend()))

    def body() -> None:
        with torch._C._profiler._RecordFunctionFast("twice"):
            runtime.launch("outer", launches=False)
            with torch._C._profiler._RecordFunctionFast("twice"):
                runtime.launch("inner", launches=False)

    prof = recorded(body, toyland.BOTH)
    (theirs,) = [one for one in prof.key_averages() if one.key == "twice"]
    (mine,) = [one for one in analysis.key_averages(trace_of(prof)) if one.key == "twice"]
    assert (theirs.count, mine.count) == (1, 1)
    assert (round(theirs.device_time_total, 3), mine.device_time_total) == (0.1, 0.2)


def test_torchs_table_of_events_fails_on_memory_rows_when_operations_are_counted() -> None:
    kept: list[torch.Tensor] = []

    def body() -> None:
        kept.append(torch.ones(1000))
        kept.clear()

    prof = recorded(body, **EVERYTHING)
    with pytest.raises(TypeError):
        prof.events().table()
    assert "[memory]" in analysis.events(trace_of(prof)).table()
