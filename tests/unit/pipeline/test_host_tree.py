"""Which event is above which on the host."""

from __future__ import annotations

from devprof.model import GenericTraceActivity
from devprof.pipeline import assemble
from tests.unit.pipeline.recordings import MAIN, WORKER, clock, frame, memory, op, recording, tree, user


def host_tree(*events: GenericTraceActivity) -> dict[str, str | None]:
    return tree(assemble(recording(*events), (), clock=clock(), window_start_ns=0, window_end_ns=10**9))


def test_ranges_hang_on_the_range_around_them_in_their_context() -> None:
    assert host_tree(user("step", 0, 90, 1), op("linear", 10, 50, 2, 1), op("addmm", 20, 40, 3, 2)) == {
        "step": None,
        "linear": "step",
        "addmm": "linear",
    }


def test_work_of_a_pool_and_of_a_task_hangs_on_the_range_that_submitted_it() -> None:
    """On another thread, after the range's end, or in the middle of another task's range."""
    assert host_tree(
        user("step", 0, 30, 1),
        op("in pool", 40, 60, 2, 1, thread=WORKER),
        op("task a", 50, 90, 3, 1),
        op("task b", 60, 80, 4, 1),
    ) == {"step": None, "in pool": "step", "task a": "step", "task b": "step"}


def test_a_range_whose_parent_was_not_recorded_is_at_the_top() -> None:
    assert host_tree(op("orphan", 0, 10, 7, 4)) == {"orphan": None}


def test_functions_nest_in_time_with_the_ranges_of_their_thread() -> None:
    assert host_tree(
        frame("train", 0, 100),
        user("step", 10, 90, 1),
        frame("forward", 20, 80),
        frame("inner", 30, 70),
        op("linear", 40, 60, 2, 1),
        frame("elsewhere", 20, 80, thread=WORKER),
    ) == {
        "train": None,
        "step": "train",
        "forward": "step",
        "inner": "forward",
        "linear": "inner",
        "elsewhere": None,
    }


def test_a_function_between_a_range_and_its_parent_is_passed_over_where_it_runs_in_another_range() -> None:
    """Task b's op is entered inside a function of task a; its context knows better."""
    assert host_tree(
        user("a", 0, 50, 1),
        frame("of a", 5, 45),
        user("b", 10, 90, 2),
        op("op of b", 20, 30, 3, 2),
        op("op of a", 32, 40, 4, 1),
    ) == {"a": None, "of a": "a", "b": None, "op of b": "b", "op of a": "a"}


def test_functions_of_a_pool_worker_do_not_cut_work_off_from_the_range_that_submitted_it() -> None:
    assert host_tree(
        user("step", 0, 100, 1), frame("worker", 0, 100, thread=WORKER), op("job", 10, 20, 2, 1, thread=WORKER)
    ) == {"step": None, "worker": None, "job": "step"}


def test_a_range_that_ends_on_another_thread_encloses_no_function_and_keeps_its_children() -> None:
    assert host_tree(
        user("request", 0, 90, 1, End_thread=WORKER), frame("handler", 10, 80), op("read", 20, 30, 2, 1)
    ) == {"request": None, "handler": None, "read": "request"}


def test_memory_belongs_to_the_innermost_range_or_to_the_function_in_it() -> None:
    assert host_tree(op("empty", 0, 50, 1), memory(20, 1)) == {"empty": None, "[memory]": "empty"}
    assert host_tree(op("empty", 0, 50, 1), frame("alloc", 10, 30), memory(20, 1)) == {
        "empty": None,
        "alloc": "empty",
        "[memory]": "alloc",
    }
    assert host_tree(memory(20, 0, thread=MAIN)) == {"[memory]": None}


def test_deep_recursion_inside_a_range_is_climbed_to_that_range() -> None:
    depth = 300
    frames = [frame(f"f{level}", 10 + level, 5000 - level) for level in range(depth)]
    found = host_tree(user("step", 0, 9000, 1), *frames, op("leaf", 2000, 2001, 2, 1))
    assert found["leaf"] == f"f{depth - 1}"
    assert found["f0"] == "step"
    assert all(found[f"f{level}"] == f"f{level - 1}" for level in range(1, depth))
