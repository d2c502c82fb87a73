"""How host events are nested, and what time each of them spent itself: against plain loops."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devprof.analysis import events, key_averages
from devprof.analysis.names import has_demangler, readable
from devprof.model import ActivityBatch, ActivityType, GenericTraceActivity
from devprof.store import Place, PlaceKind, Row, Trace, TraceBuilder


def self_times(trace: Trace) -> dict[str, int]:
    return {one.name: one.self_cpu_time_total_ns for one in events(trace)}


def parents(trace: Trace) -> dict[str, str | None]:
    return {one.name: one.cpu_parent.name if one.cpu_parent else None for one in events(trace)}


def test_an_event_spent_its_duration_less_that_of_its_children(made: Any) -> None:
    made.op("outer", 0, 100)
    made.op("first", 10, 30)
    made.op("inner", 15, 20)
    made.op("second", 40, 90)
    trace = made.build()
    assert parents(trace) == {"outer": None, "first": "outer", "inner": "first", "second": "outer"}
    assert self_times(trace) == {"outer": 30, "first": 15, "inner": 5, "second": 50}
    assert [one.cpu_time_total_ns for one in events(trace)] == [100, 20, 5, 50]


def test_of_equal_spans_the_one_that_was_entered_first_is_outside(made: Any) -> None:
    made.op("outer", 5, 9)
    made.op("inner", 5, 9)
    trace = made.build()
    assert parents(trace) == {"outer": None, "inner": "outer"}
    assert self_times(trace) == {"outer": 0, "inner": 4}


def test_no_self_time_is_negative_where_a_child_ends_after_its_parent(made: Any) -> None:
    made.op("grandparent", 0, 1000)
    made.op("parent", 0, 999)
    made.op("child", 1, 1000)
    trace = made.build()
    assert self_times(trace) == {"grandparent": 0, "parent": 1, "child": 999}
    assert {one.name: one.cpu_time_total_ns for one in events(trace)} == {
        "grandparent": 1000,
        "parent": 999,
        "child": 999,
    }


def test_events_of_two_threads_never_nest(made: Any) -> None:
    made.op("here", 0, 100, thread=1)
    made.op("there", 10, 20, thread=2)
    trace = made.build()
    assert parents(trace) == {"here": None, "there": None}
    assert self_times(trace) == {"here": 100, "there": 10}


def test_an_only_child_of_the_same_name_is_not_listed_beside_its_parent(made: Any) -> None:
    made.op("f", 0, 100)
    made.op("f", 10, 90)
    made.op("f", 20, 80)
    made.op("leaf", 30, 40)
    (f, leaf) = events(made.build())
    assert (f.name, f.cpu_time_total_ns, f.self_cpu_time_total_ns, f.cpu_children) == ("f", 100, 90, [leaf])
    assert (leaf.name, leaf.cpu_parent) == ("leaf", f)


def test_two_children_of_the_same_name_are_both_listed(made: Any) -> None:
    made.op("f", 0, 100)
    made.op("f", 10, 20)
    made.op("f", 30, 50)
    assert [(one.name, one.self_cpu_time_total_ns) for one in events(made.build())] == [("f", 70), ("f", 10), ("f", 20)]


def test_work_of_an_event_that_is_not_listed_is_not_lost(made: Any) -> None:
    made.op("f", 0, 100, id=1)
    made.op("f", 10, 90, id=2)
    made.kernel("outer work", 200, 203, linked=1)
    made.kernel("inner work", 210, 215, linked=2)
    f = events(made.build())[0]
    assert [tuple(kernel) for kernel in f.kernels] == [("outer work", 0, 0.003), ("inner work", 0, 0.005)]
    assert (f.self_device_time_total_ns, f.device_time_total_ns) == (8, 8)


def test_a_range_that_ends_on_another_thread_holds_nothing_and_has_only_a_total(made: Any) -> None:
    made.range("future", 0, 100, End_thread=2)
    made.op("op", 10, 20)
    trace = made.build()
    assert parents(trace) == {"future": None, "op": None}
    assert [(one.is_async, one.cpu_time_total_ns, one.self_cpu_time_total_ns) for one in events(trace)] == [
        (True, 100, 0),
        (False, 10, 10),
    ]


def test_a_launch_counts_to_the_thread_of_its_op(made: Any) -> None:
    made.op("op", 0, 100, thread=1, id=4)
    made.launch(10, 30, thread=9, id=2**30, linked=4)
    op, launch = events(made.build())
    assert (launch.thread, launch.device_resource_id, launch.cpu_parent) == (1, 9, op)
    assert (op.self_cpu_time_total_ns, launch.self_cpu_time_total_ns) == (80, 20)


def test_a_launch_without_an_op_stays_on_its_own_thread(made: Any) -> None:
    made.op("op", 0, 100, thread=1, id=4)
    made.launch(10, 30, thread=9, id=2**30)
    assert parents(made.build()) == {"op": None, "launch": None}


def test_what_torch_does_not_list_is_not_listed(made: Any) -> None:
    made.op("op", 0, 100)
    made.op("aten::is_leaf", 10, 20)
    made.op("profiler::_record_function_enter_new", 30, 40)
    made.op("marked as hidden", 50, 60, hidden=1)
    assert self_times(made.build()) == {"op": 100}


def test_steps_have_one_row_and_keep_their_numbers_as_events(made: Any) -> None:
    made.range("ProfilerStep#3", 0, 10)
    made.range("ProfilerStep#4", 20, 50)
    trace = made.build()
    assert [(one.name, one.trace_name) for one in events(trace)] == [
        ("ProfilerStep*", "ProfilerStep#3"),
        ("ProfilerStep*", "ProfilerStep#4"),
    ]
    assert [(row.key, row.count, row.cpu_time_total_ns) for row in key_averages(trace)] == [("ProfilerStep*", 2, 40)]


def test_an_op_that_is_called_by_its_overload_is_listed_by_its_name(made: Any) -> None:
    made.op("aten::add.Tensor", 0, 10, Overload_name="Tensor")
    made.op("aten::add.Scalar", 20, 30, Overload_name="Scalar")
    trace = made.build()
    assert [(row.key, row.count) for row in key_averages(trace)] == [("aten::add", 2)]
    by_overload = key_averages(trace, group_by_overload_name=True)
    assert [(row.key, row.overload_name, row.count) for row in by_overload] == [
        ("aten::add", "Tensor", 1),
        ("aten::add", "Scalar", 1),
    ]


@pytest.mark.parametrize("name", ["Pi", "Ov", "f", "_Zzz", "kernel_Z1fv"])
def test_a_name_that_only_looks_mangled_stays_as_it_is(name: str) -> None:
    assert readable(name) == name


def test_a_mangled_name_is_made_readable_where_there_is_a_c_plus_plus_library() -> None:
    if not has_demangler():
        pytest.skip("there is no C++ library here")
    assert readable("_Z6kernelPfi") == "kernel(float*, int)"


def test_a_trace_without_events_has_empty_lists(made: Any) -> None:
    trace = made.build()
    assert (list(events(trace)), list(key_averages(trace))) == ([], [])
    assert events(trace).total_average().count == 0


class Span(NamedTuple):
    """A host event of a random trace."""

    name: str
    start: int
    end: int
    thread: int


SPANS = st.lists(
    st.builds(
        lambda name, start, length, thread: Span(name, start, start + length, thread),
        st.sampled_from("ab"),
        st.integers(0, 20),
        st.integers(1, 12),
        st.integers(1, 2),
    ),
    max_size=12,
)


def _trace_of(spans: list[Span]) -> Trace:
    builder = TraceBuilder()
    host = builder.place(Place(7, PlaceKind.HOST))
    activities = [
        GenericTraceActivity(
            activity_type=ActivityType.CPU_OP, activity_name=s.name, start_ns=s.start, end_ns=s.end, id=i
        )
        for i, s in enumerate(spans, 1)
    ]
    rows = [builder.row(Row(host, span.thread)) for span in spans]
    builder.add(ActivityBatch.from_activities(activities), np.array(rows, dtype=np.int64))
    return builder.build()


class Node:
    """A span in a tree grown one span at a time."""

    def __init__(self, span: Span) -> None:
        self.span = span
        self.parent: Node | None = None
        self.children: list[Node] = []


def _grown(spans: list[Span]) -> list[Node]:
    """Nest with a stack per thread, then leave out only children of the same name, until there are none."""
    nodes = []
    for thread in (1, 2):
        stack: list[Node] = []
        for span in sorted((s for s in spans if s.thread == thread), key=lambda s: (s.start, -s.end)):
            node = Node(span)
            while stack and (span.start >= stack[-1].span.end or span.end > stack[-1].span.end):
                stack.pop()
            if stack:
                node.parent = stack[-1]
                stack[-1].children.append(node)
            stack.append(node)
            nodes.append(node)
    while alone := next(
        (n for n in nodes if n.parent and n.parent.span.name == n.span.name and len(n.parent.children) == 1), None
    ):
        assert alone.parent
        alone.parent.children = alone.children
        for child in alone.children:
            child.parent = alone.parent
        nodes.remove(alone)
    return nodes


@given(SPANS)
def test_trees_are_those_of_a_stack_per_thread(spans: list[Span]) -> None:
    listed = events(_trace_of(spans))
    found = sorted(
        (one.thread, *_numbers(one), *(_numbers(one.cpu_parent) if one.cpu_parent else ())) for one in listed
    )
    expected = sorted(
        (n.span.thread, n.span.start, n.span.end, *((n.parent.span.start, n.parent.span.end) if n.parent else ()))
        for n in _grown(spans)
    )
    assert found == expected


def _numbers(one: Any) -> tuple[int, int]:
    return one.start_ns, one.end_ns


@given(SPANS)
def test_each_moment_belongs_to_what_began_last_so_that_self_times_add_up_to_the_time_a_thread_was_busy(
    spans: list[Span],
) -> None:
    listed = events(_trace_of(spans))
    busy = {thread: {t for s in spans if s.thread == thread for t in range(s.start, s.end)} for thread in (1, 2)}
    for thread, moments in busy.items():
        own = [one.self_cpu_time_total_ns for one in listed if one.thread == thread]
        assert all(time >= 0 for time in own)
        assert sum(own) == len(moments)


@given(SPANS)
def test_where_events_nest_self_times_are_totals_less_those_of_children(spans: list[Span]) -> None:
    listed = list(events(_trace_of(spans)))
    for one in listed:
        inside = one.cpu_children
        crossing = any(
            other.thread == one.thread and one.start_ns < other.start_ns < one.end_ns < other.end_ns for other in listed
        )
        if not crossing and not any(a.end_ns > b.start_ns for a, b in itertools.pairwise(inside)):
            assert one.self_cpu_time_total_ns == one.cpu_time_total_ns - sum(c.cpu_time_total_ns for c in inside)


def test_deep_recursion_is_nested_to_the_bottom(new_trace: Callable[[], Any]) -> None:
    made = new_trace()
    for depth in range(1500):
        made.op(f"level {depth}", depth, 4000 - depth, id=depth + 1)
    made.kernel("work", 5000, 5007, linked=1500)
    rows = key_averages(made.build())
    assert [rows[0].device_time_total_ns, rows[1499].self_device_time_total_ns] == [7, 7]
    assert [rows[0].self_cpu_time_total_ns, rows[1499].self_cpu_time_total_ns] == [2, 4000 - 2 * 1499]
