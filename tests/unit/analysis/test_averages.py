"""Rows of events that are alike: what makes them so, in which order they stand, and that asking changes nothing."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devprof.analysis import FunctionEvent, FunctionEventAvg, events, key_averages
from devprof.errors import UsageError

MEMORY = ("cpu_memory_usage", "self_cpu_memory_usage")
FIGURES = (
    "cpu_time_total_ns",
    "self_cpu_time_total_ns",
    "device_time_total_ns",
    "self_device_time_total_ns",
    *MEMORY,
)


def test_events_of_one_name_are_one_row_in_the_order_of_their_first(made: Any) -> None:
    made.op("b", 0, 10, id=1)
    made.op("a", 20, 50, id=2)
    made.op("b", 60, 100, id=3)
    made.kernel("k", 5, 7, linked=1)
    made.kernel("k", 70, 75, linked=3)
    rows = key_averages(made.build())
    assert [(r.key, r.count, r.cpu_time_total, r.cpu_time, r.device_time_total, r.device_time) for r in rows] == [
        ("b", 2, 0.050, 0.025, 0.007, 0.0035),
        ("k", 2, 0.0, 0.0, 0.007, 0.0035),
        ("a", 1, 0.030, 0.030, 0.0, 0.0),
    ]


def test_the_longer_of_two_that_begin_together_comes_first(made: Any) -> None:
    made.kernel("short", 0, 5)
    made.op("long", 0, 10)
    trace = made.build()
    assert [row.key for row in key_averages(trace)] == [one.name for one in events(trace)] == ["long", "short"]


def test_a_range_and_an_op_of_one_name_are_two_rows(made: Any) -> None:
    made.op("x", 0, 10)
    made.range("x", 20, 30)
    made.kernel("x", 40, 50)
    rows = [(row.key, row.device_type, row.is_user_annotation, row.scope) for row in key_averages(made.build())]
    assert rows == [("x", "cpu", False, 0), ("x", "cpu", True, 7), ("x", "toy", False, 0)]


def test_rows_are_told_apart_by_shapes_when_asked(made: Any) -> None:
    made.op("mm", 0, 1, Input_Dims=[[2, 3], [3, 4]])
    made.op("mm", 2, 4, Input_Dims=[[2, 3], [3, 4]])
    made.op("mm", 5, 9, Input_Dims=[[8, 8], [8, 8]])
    made.op("mm", 10, 18)
    made.op("mm", 20, 36, Input_Dims=[])
    trace = made.build()
    assert [(r.key, r.count, r.input_shapes) for r in key_averages(trace)] == [("mm", 5, "")]
    by_shape = key_averages(trace, group_by_input_shape=True)
    assert [(r.count, r.cpu_time_total_ns, r.input_shapes) for r in by_shape] == [
        (2, 3, [[2, 3], [3, 4]]),
        (1, 4, [[8, 8], [8, 8]]),
        (2, 24, []),
    ]


def test_the_shapes_of_a_list_of_tensors_are_empty_in_rows_and_whole_in_the_event(made: Any) -> None:
    made.op("cat", 0, 1, Input_Dims=[[[2, 4], [2, 4]], []])
    made.op("cat", 2, 3, Input_Dims=[[[9, 9]], []])
    trace = made.build()
    assert [(r.count, r.input_shapes) for r in key_averages(trace, group_by_input_shape=True)] == [(2, [[], []])]
    assert events(trace)[0].structured_input_shapes == [[[2, 4], [2, 4]], []]


def test_asking_for_averages_changes_no_number(made: Any) -> None:
    made.op("outer", 0, 100, id=1)
    made.op("inner", 10, 60, id=2)
    made.kernel("k", 200, 220, linked=2)
    made.memory(20, 8)
    listed = events(made.build())

    def numbers() -> list[tuple[object, ...]]:
        return [
            (e.name, e.cpu_time_total, e.self_cpu_time_total, e.device_time_total, e.cpu_memory_usage, e.count)
            for e in listed
        ]

    before = numbers()
    first = [(row.key, row.self_cpu_time_total, row.count) for row in listed.key_averages()]
    listed.key_averages(group_by_input_shapes=True).table(sort_by="count")
    listed.total_average()
    assert numbers() == before
    assert [(row.key, row.self_cpu_time_total, row.count) for row in listed.key_averages()] == first


def test_the_total_is_the_sum_over_all_events(made: Any) -> None:
    made.op("outer", 0, 100, id=1)
    made.op("inner", 10, 60, id=2)
    made.kernel("k", 200, 220, linked=2)
    listed = events(made.build())
    total = listed.total_average()
    assert (total.key, total.count, total.cpu_time_total_ns, total.self_cpu_time_total_ns) == ("Total", 3, 150, 100)
    assert (total.device_time_total_ns, total.self_device_time_total_ns) == (60, 40)
    again = listed.key_averages().total_average()
    assert (again.key, again.count, again.cpu_time_total_ns) == ("Total", 3, 150)
    assert listed.self_cpu_time_total == listed.key_averages().self_cpu_time_total == 0.1


def test_old_spellings_of_figures_are_still_read(made: Any) -> None:
    made.op("op", 0, 4000, id=1)
    made.kernel("k", 5000, 7000, linked=1)
    (op, _) = key_averages(made.build())
    assert (op.cuda_time_total, op.self_cuda_time_total, op.xpu_time, op.self_privateuse1_time_total) == (2, 2, 2, 2)
    assert (op.cpu_time_total_str, op.self_cpu_time_total_str, op.device_time_str) == ("4.000us", "4.000us", "2.000us")
    with pytest.raises(AttributeError, match="has no attribute 'self_cpu_time'"):
        _ = op.self_cpu_time


def test_a_list_is_indexed_as_lists_are(made: Any) -> None:
    for number in range(4):
        made.op(f"op {number}", 10 * number, 10 * number + 5)
    listed = events(made.build())
    assert [listed[0].name, listed[-1].name, *(one.name for one in listed[1:3])] == ["op 0", "op 3", "op 1", "op 2"]
    assert listed[1] == list(listed)[1]
    assert listed[1] != listed[2]
    assert len({listed[0], listed[0], listed[1]}) == 2
    with pytest.raises(IndexError):
        _ = listed[4]


def test_no_object_is_made_per_event(made: Any) -> None:
    for number in range(50):
        made.op("op", 10 * number, 10 * number + 5)
    listed = events(made.build())
    averages = listed.key_averages()
    averages.table()
    gc.collect()
    assert [one for one in gc.get_objects() if type(one) in (FunctionEvent, FunctionEventAvg)] == []


EVENTS = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(0, 30), st.integers(0, 15), st.integers(1, 2), st.integers(0, 9)),
    max_size=10,
)


@given(hosts=EVENTS, kernels=EVENTS, allocations=EVENTS)
def test_every_row_is_the_sum_of_its_events_and_every_total_that_of_what_is_inside(
    new_trace: Callable[[], Any], hosts: list[Any], kernels: list[Any], allocations: list[Any]
) -> None:
    made = new_trace()
    for op_id, (name, start, length, thread, _) in enumerate(hosts, 1):
        made.op(name, start, start + length, thread=thread, id=op_id)
    for name, start, length, stream, owner in kernels:
        made.kernel(name, start, start + length, stream=made.stream(stream), linked=owner)
    for _, at, size, thread, _ in allocations:
        made.memory(at, size - 7, thread=thread)
    trace = made.build()
    listed, averages = list(events(trace)), key_averages(trace)
    for row in averages:
        alike = [one for one in listed if (one.name, one.device_type) == (row.key, row.device_type)]
        assert row.count == len(alike)
        for figure in FIGURES:
            assert getattr(row, figure) == sum(getattr(one, figure) for one in alike)
    for one in listed:
        if one.device_type == "cpu":
            for total, own in (("device_time_total_ns", "self_device_time_total_ns"), MEMORY):
                inside = sum(getattr(child, total) for child in one.cpu_children)
                assert getattr(one, total) == getattr(one, own) + inside
            own_ns = sum(round(kernel.duration * 1000) for kernel in one.kernels)
            assert one.self_device_time_total_ns == own_ns
    assert sum(one.self_cpu_memory_usage for one in listed) == sum(size - 7 for _, _, size, _, _ in allocations)
    assert averages.total_average().count == len(listed)


def test_a_depth_of_stacks_below_zero_is_refused(made: Any) -> None:
    with pytest.raises(UsageError, match="group_by_stack_n is -1; expected a number of functions, 0 for none"):
        key_averages(made.build(), group_by_stack_n=-1)


def test_times_of_an_event_are_microseconds_since_the_window_began(made: Any) -> None:
    made.op("op", 1500, 4000, id=3, Sequence_number=9, Fwd_thread_id=4, Record_scope=1)
    (op,) = events(made.build())
    assert (op.time_range.start, op.time_range.end, op.time_range.elapsed_us()) == (1.5, 4.0, 2.5)
    assert (op.start_ns, op.end_ns, op.id, op.thread) == (1500, 4000, 3, 1)
    assert (op.sequence_nr, op.fwd_thread, op.scope, op.activity_type) == (9, 4, 1, "cpu_op")
    assert op.metadata == {"Sequence number": 9, "Fwd thread id": 4, "Record scope": 1}


def test_operations_are_counted_from_shapes_as_torch_counts_them(made: Any) -> None:
    concrete = ["", "", "", "[1, 1]", "[1, 1]", "[1, 1]", "1"]
    made.op("aten::mm", 0, 1, Input_Dims=[[2, 3], [3, 5]])
    made.op("aten::addmm", 2, 3, Input_Dims=[[5], [2, 3], [3, 5], [], []])
    made.op("aten::bmm", 4, 5, Input_Dims=[[4, 2, 3], [4, 3, 5]])
    made.op("aten::mul", 6, 7, Input_Dims=[[2, 3], []])
    made.op("aten::conv2d", 8, 9, Input_Dims=[[2, 3, 8, 8], [4, 3, 3, 3], [], [], [], [], []], Concrete_Inputs=concrete)
    made.op("aten::mm", 10, 11, Input_Dims=[])
    made.op("aten::relu", 12, 13, Input_Dims=[[2, 3]])
    assert [one.flops for one in events(made.build(with_flops=True))] == [60, 60, 240, 6, 27648, 0, 0]


def test_operations_that_a_host_counted_itself_are_taken(made: Any) -> None:
    made.op("mine", 0, 1, Flops=12)
    made.op("mine", 2, 3, Flops=30)
    assert [(row.key, row.flops) for row in key_averages(made.build())] == [("mine", 42)]
