"""Trees and arrows of host events, for any events: against a stack and a table, one event at a time."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from devprof.link import IdTable, forward_backward, nest
from devprof.model import ActivityBatch, ActivityType, GenericTraceActivity
from devprof.pipeline.host_tree import host_parents

Event = tuple[int, int, int]
Op = tuple[int, int, int, int, int]

far = st.sampled_from([-(2**61), 2**61])
events = st.lists(
    st.tuples(st.integers(0, 12) | far, st.integers(-2, 12), st.sampled_from([0, 7, -3, 2**60])), max_size=40
)


def by_stack(spans: list[Event], *, entered_in_order: bool) -> list[int]:
    """One stack per row; the words of the rule."""
    parent = [-1] * len(spans)
    stacks: dict[int, list[int]] = {}

    def entered(event: int) -> tuple[int, int]:
        start, end, _ = spans[event]
        return start, 0 if entered_in_order else -max(start, end)

    for event in sorted(range(len(spans)), key=entered):
        start, end, row = spans[event]
        end = max(start, end)
        stack = stacks.setdefault(row, [])
        reaching = [outer for outer in stack if spans[outer][1] >= end]
        parent[event] = reaching[-1] if reaching else -1
        if end > start:
            stacks[row] = [*reaching, event]
    return parent


@given(events, st.booleans())
def test_parents_are_those_of_a_stack(given_events: list[Event], entered_in_order: bool) -> None:
    spans = [(start, start + length, row) for start, length, row in given_events]
    start, end, row = np.array(spans, dtype=np.int64).reshape(-1, 3).T
    found = nest(start, end, row, entered_in_order=entered_in_order)
    assert found.tolist() == by_stack(spans, entered_in_order=entered_in_order)


@given(st.lists(st.sampled_from("()."), max_size=200), st.integers(1, 3))
def test_calls_and_returns_give_the_call_tree(steps: list[str], ticks_per_step: int) -> None:
    """Real code enters and leaves in order; the clock may be too coarse to tell."""
    start: list[int] = []
    end: list[int] = []
    parent: list[int] = []
    stack: list[int] = []
    for tick, step in enumerate(steps):
        if step == "(":
            parent.append(stack[-1] if stack else -1)
            stack.append(len(start))
            start.append(tick * ticks_per_step)
            end.append(len(steps) * ticks_per_step)
        elif step == ")" and stack:
            end[stack.pop()] = tick * ticks_per_step
    rows = np.zeros(len(start), dtype=np.int64)
    assert nest(np.array(start, dtype=np.int64), np.array(end, dtype=np.int64), rows).tolist() == parent


def by_table(ops: list[Op]) -> list[tuple[int, int]]:
    """One op at a time, as torch does it: a table of forward ops, from which a backward op takes away its entry."""
    waiting: dict[tuple[int, int], int] = {}
    found = []
    for op in sorted(range(len(ops)), key=lambda op: (ops[op][1], -op)):
        start, _, thread, number, forward_thread = ops[op]
        if number < 0:
            continue
        if forward_thread > 0:
            forward = waiting.pop((forward_thread, number), None)
            if forward is not None:
                found.append((forward, op))
        elif (thread, number) not in waiting or start >= ops[waiting[thread, number]][0]:
            waiting[thread, number] = op
    return found


ops = st.lists(
    st.tuples(
        st.integers(0, 10), st.integers(0, 10), st.integers(1, 3), st.integers(-1, 3), st.sampled_from([0, 0, 1, 2])
    ),
    max_size=30,
)


@given(ops)
def test_arrows_are_those_of_a_table(given_ops: list[Op]) -> None:
    rows = [(start, start + length, thread, number, forward) for start, length, thread, number, forward in given_ops]
    found = forward_backward(*np.array(rows, dtype=np.int64).reshape(-1, 5).T)
    assert list(zip(found.forward.tolist(), found.backward.tolist(), strict=True)) == by_table(rows)


@st.composite
def host_events(draw: st.DrawFn) -> list[GenericTraceActivity]:
    """Ranges with any earlier range as context, functions and instants, on three threads, in the order of entering."""
    events = []
    kinds = (ActivityType.CPU_OP, ActivityType.PYTHON_FUNCTION, ActivityType.CPU_INSTANT_EVENT)
    for number, start in enumerate(sorted(draw(st.lists(st.integers(0, 30), max_size=25))), start=1):
        kind = draw(st.sampled_from(kinds))
        end = start if kind is ActivityType.CPU_INSTANT_EVENT else start + draw(st.integers(0, 20))
        thread = draw(st.integers(1, 3))
        linked = 0 if kind is ActivityType.PYTHON_FUNCTION else draw(st.integers(0, max(number - 1, 0)))
        elsewhere = {"End thread": 9} if kind is ActivityType.CPU_OP and draw(st.integers(0, 5)) == 0 else {}
        range_id = number if kind is ActivityType.CPU_OP else 0
        events.append(
            GenericTraceActivity(
                kind, "x", start, end, id=range_id, linked=linked, thread_id=thread, metadata=elsewhere
            )
        )
    return events


def slow_parents(events: list[GenericTraceActivity]) -> list[int]:
    """The words of the rule, one event at a time."""
    by_id = {event.id: index for index, event in enumerate(events) if event.id}
    on_stack = [index for index, event in enumerate(events) if not event.metadata]
    spans = [(events[index].start_ns, events[index].end_ns, events[index].thread_id) for index in on_stack]
    nested = by_stack(spans, entered_in_order=True)
    above = {index: on_stack[outer] if outer >= 0 else -1 for index, outer in zip(on_stack, nested, strict=True)}

    def is_function(index: int) -> bool:
        return events[index].activity_type is ActivityType.PYTHON_FUNCTION

    parents = []
    for index, event in enumerate(events):
        context = by_id.get(event.linked, -1)
        caller = above.get(index, -1)
        around = caller
        while around >= 0 and is_function(around):
            around = above[around]
        called_in_context = caller >= 0 and is_function(caller) and around == context
        parents.append(caller if is_function(index) or called_in_context else context)
    return parents


@given(host_events())
def test_the_tree_of_the_host_is_that_of_the_rule(events: list[GenericTraceActivity]) -> None:
    batch = ActivityBatch.from_activities(events)
    assert host_parents(batch, IdTable(batch.id)).tolist() == slow_parents(events)
