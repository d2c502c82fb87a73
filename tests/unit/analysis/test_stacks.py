"""The Python stack of an event: the functions that were running when it began, the innermost first."""

from __future__ import annotations

from typing import Any

from devprof.analysis import events, key_averages
from devprof.store import Trace


def stacks(trace: Trace) -> dict[str, list[str]]:
    return {one.name: one.stack for one in events(trace)}


def test_a_stack_is_what_was_running_when_the_event_began(made: Any) -> None:
    made.frame("main", 0, 100)
    made.frame("step", 10, 50)
    made.op("op", 20, 30)
    made.op("later", 60, 70)
    made.op("outside", 110, 120)
    assert stacks(made.build()) == {
        "main": [],
        "step": ["main"],
        "op": ["step", "main"],
        "later": ["main"],
        "outside": [],
    }


def test_a_range_that_outlives_the_function_that_began_it_has_it_in_its_stack(made: Any) -> None:
    made.frame("main", 0, 100)
    made.frame("__enter__", 10, 20)
    made.range("range", 15, 80)
    made.op("op", 30, 40)
    assert {name: stack for name, stack in stacks(made.build()).items() if name in ("range", "op")} == {
        "range": ["__enter__", "main"],
        "op": ["main"],
    }


def test_stacks_are_those_of_the_events_own_thread(made: Any) -> None:
    made.frame("main", 0, 100, thread=1)
    made.frame("worker", 0, 100, thread=2)
    made.op("here", 20, 30, thread=1)
    made.op("there", 20, 30, thread=2)
    made.op("elsewhere", 20, 30, thread=3)
    found = stacks(made.build())
    assert (found["here"], found["there"], found["elsewhere"]) == (["main"], ["worker"], [])


def test_device_work_has_the_stack_of_its_op(made: Any) -> None:
    made.frame("main", 0, 100)
    made.op("op", 20, 30, id=4)
    made.kernel("kernel", 500, 600, linked=4)
    made.kernel("stray", 20, 30)
    found = stacks(made.build())
    assert (found["kernel"], found["stray"]) == (["main"], [])


def test_how_backward_works_inside_is_left_out(made: Any) -> None:
    made.frame("train.py(3): step", 0, 100)
    made.frame("torch/autograd/__init__.py(250): backward", 10, 90)
    made.frame("run_backward", 20, 80)
    made.op("op", 30, 40)
    assert stacks(made.build())["op"] == ["run_backward", "train.py(3): step"]


def test_a_backward_op_has_the_stack_of_its_forward_op(made: Any) -> None:
    made.frame("forward", 0, 50, thread=1)
    made.op("mm", 10, 20, thread=1, Sequence_number=3)
    made.op("inside mm", 12, 14, thread=1, Sequence_number=3)
    made.op("mm of another thread", 5, 6, thread=8, Sequence_number=3)
    made.frame("backward", 60, 100, thread=1)
    made.op("MmBackward", 65, 90, thread=2, Sequence_number=3, Fwd_thread_id=1, Record_scope=1)
    made.op("mm in backward", 70, 80, thread=2)
    made.op("AddBackward", 92, 95, thread=2, Sequence_number=77, Fwd_thread_id=1, Record_scope=1)
    found = stacks(made.build())
    assert [found[name] for name in ("mm", "MmBackward", "mm in backward", "AddBackward")] == [
        ["forward"],
        ["forward"],
        ["forward"],
        [],
    ]


def test_threads_are_found_by_torchs_own_numbers_where_ops_have_those(made: Any) -> None:
    made.frame("forward", 0, 50, thread=4711)
    made.op("mm", 10, 20, thread=4711, Sequence_number=3)
    made.op("MmBackward", 65, 90, thread=4712, Sequence_number=3, Fwd_thread_id=1, Record_scope=1)
    trace = made.build(torch_thread_numbers={"4711": 1, "4712": 2})
    assert stacks(trace)["MmBackward"] == ["forward"]


def test_a_thread_without_python_shows_what_ran_on_the_thread_that_it_works_for(made: Any) -> None:
    made.frame("backward()", 0, 100, thread=1)
    made.op("evaluate first", 10, 20, thread=2, Fwd_thread_id=1)
    made.op("inside first", 12, 14, thread=2)
    made.op("evaluate second", 30, 40, thread=2)
    made.op("of another thread", 30, 40, thread=3)
    found = stacks(made.build())
    assert [found[name] for name in ("evaluate first", "inside first", "evaluate second", "of another thread")] == [
        ["backward()"],
        ["backward()"],
        ["backward()"],
        [],
    ]


def test_rows_are_told_apart_by_their_innermost_functions_when_asked(made: Any) -> None:
    made.frame("main", 0, 100)
    for begin, caller in ((10, "a"), (30, "b"), (50, "a")):
        made.frame(caller, begin, begin + 15)
        made.frame("shared", begin + 1, begin + 14)
        made.op("op", begin + 2, begin + 10)
    trace = made.build()

    def rows(depth: int) -> list[tuple[int, list[str]]]:
        found = key_averages(trace, group_by_stack_n=depth)
        return [(row.count, row.stack) for row in found if row.key == "op"]

    assert rows(0) == [(3, [])]
    assert rows(1) == [(3, ["shared"])]
    assert rows(2) == [(2, ["shared", "a"]), (1, ["shared", "b"])]
    assert rows(9) == [(2, ["shared", "a", "main"]), (1, ["shared", "b", "main"])]


def test_without_functions_all_stacks_are_empty(made: Any) -> None:
    made.op("op", 0, 10)
    trace = made.build()
    assert stacks(trace) == {"op": []}
    assert [(row.count, row.stack) for row in key_averages(trace, group_by_stack_n=3)] == [(1, [])]
