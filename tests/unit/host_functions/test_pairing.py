"""Enters and leaves, paired on arrays, against a plain stack."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from devprof.host.functions.events import CALL_OF_C, EVENT, INDEX_SHIFT, LEAVE, EventArray
from devprof.host.functions.pairing import Calls, paired

STOP = 10_000
Row = tuple[int, int, int, int, int, bool]
moves = st.lists(
    st.one_of(st.integers(0, 4), st.none()), max_size=60
)  # a function to enter, or: leave the innermost one


def events(pairs: list[tuple[int, bool]], first_tick: int = 0) -> EventArray:
    """Pairs of (function, is a leave), one tick apart."""
    rows = [(first_tick + i, f << INDEX_SHIFT | (LEAVE if leave else 0), 0) for i, (f, leave) in enumerate(pairs)]
    return np.array(rows, EVENT)


def rows(calls: Calls) -> list[Row]:
    columns = (calls.thread, calls.what >> INDEX_SHIFT, calls.start, calls.end, calls.parent, calls.finished)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def by_stack(threads: list[EventArray]) -> list[Row]:
    """What a plain stack per thread says; a leave closes what is inside it, one without an enter is left out."""
    out: list[list[object]] = []
    for thread, found in enumerate(threads):
        stack: list[int] = []
        for tick, what, _ in found.tolist():
            function = what >> INDEX_SHIFT
            if not what & LEAVE:
                out.append([thread, function, tick, STOP, stack[-1] if stack else -1, False])
                stack.append(len(out) - 1)
            elif function in [out[i][1] for i in stack]:
                ended = -1
                while ended != function:
                    row = out[stack.pop()]
                    row[3], row[5], ended = tick, True, row[1]  # type: ignore[assignment]
    return [tuple(row) for row in out]  # type: ignore[misc]


def well_formed(steps: list[int | None]) -> list[tuple[int, bool]]:
    stack: list[int] = []
    pairs = []
    for step in steps:
        if step is not None:
            stack.append(step)
            pairs.append((step, False))
        elif stack:
            pairs.append((stack.pop(), True))
    return pairs


@given(st.lists(moves, max_size=5))
def test_calls_are_those_of_a_plain_stack(threads: list[list[int | None]]) -> None:
    streams = [events(well_formed(steps)) for steps in threads]
    calls = paired(streams, stop_ticks=STOP)
    assert rows(calls) == by_stack(streams)
    assert calls.mended == 0


@given(st.lists(moves, max_size=5), st.lists(st.integers(0, 4), max_size=4))
def test_leaves_of_calls_that_began_before_are_left_out(threads: list[list[int | None]], before: list[int]) -> None:
    streams = [events([*well_formed(steps)]) for steps in threads]
    late = [events([*complete(well_formed(steps)), *((function, True) for function in before)]) for steps in threads]
    assert len(streams) == len(late)
    calls = paired(late, stop_ticks=STOP)
    assert rows(calls) == by_stack(late)


def complete(pairs: list[tuple[int, bool]]) -> list[tuple[int, bool]]:
    """End whatever is open."""
    stack: list[int] = []
    for function, leave in pairs:
        stack.pop() if leave else stack.append(function)
    return [*pairs, *((function, True) for function in reversed(stack))]


@given(st.lists(st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=40), max_size=4))
def test_a_stream_that_does_not_pair_up_still_makes_calls_that_nest(threads: list[list[tuple[int, bool]]]) -> None:
    streams = [events(pairs) for pairs in threads]
    calls = paired(streams, stop_ticks=STOP)
    enters = [int(tick) for stream in streams for tick in stream["tick"][(stream["what"] & LEAVE) == 0]]
    assert calls.start.tolist() == enters
    inside = calls.parent >= 0
    parent = calls.parent[inside]
    assert (calls.start <= calls.end).all()
    assert (calls.thread[inside] == calls.thread[parent]).all()
    assert ((calls.start[parent] <= calls.start[inside]) & (calls.end[inside] <= calls.end[parent])).all()


def test_a_missing_leave_is_mended_with_the_call_around_it() -> None:
    stream = events([(1, False), (2, False), (3, False), (2, True), (4, False), (4, True), (1, True)])
    calls = paired([stream], stop_ticks=STOP)
    assert rows(calls) == by_stack([stream])
    assert calls.mended == 1


def test_the_end_of_a_c_function_that_ran_at_the_start_is_left_out() -> None:
    stream = events(
        [(1, False), (2, False), (2, True), (7, True), (3, False), (7, False), (7, True), (3, True), (1, True)]
    )
    stream["what"][[3, 5, 6]] |= CALL_OF_C
    calls = paired([stream, stream], stop_ticks=STOP)
    found = [row[1:] for row in rows(calls)[:4]]
    assert found == [(1, 0, 8, -1, True), (2, 1, 2, 0, True), (3, 4, 7, 0, True), (7, 5, 6, 2, True)]
    assert (len(rows(calls)), calls.mended) == (8, 0)


def test_nothing_makes_no_calls() -> None:
    assert rows(paired([], stop_ticks=STOP)) == []
    assert rows(paired([events([]), events([])], stop_ticks=STOP)) == []


def test_many_threads_as_deep_as_they_are_many_are_told_apart() -> None:
    deep = [(function, False) for function in range(300)]
    streams = [events(complete(deep)) for _ in range(300)]  # more levels than 16 bits hold
    assert rows(paired(streams, stop_ticks=STOP)) == by_stack(streams)
