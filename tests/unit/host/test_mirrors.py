"""Mirrors: a plugin's own stack is what the ranges of the thread are, whatever order they are left in."""

from __future__ import annotations

import logging
import threading
from collections import defaultdict

import pytest

from devprof.host import RecordFunction, record_function
from devprof.host.mirrors import OP, USER
from tests.unit.host.recordings import recording, run_in_thread


class NativeStack:
    """As a runtime in C keeps it: a stack per thread and kind, which knows nothing but push and pop."""

    def __init__(self) -> None:
        self.stacks: dict[tuple[int, int], list[int]] = defaultdict(list)
        self.calls: list[tuple[object, ...]] = []

    def push(self, kind: int, id: int) -> None:
        self.stacks[threading.get_ident(), kind].append(id)
        self.calls.append(("push", kind, id))

    def pop(self, kind: int) -> None:
        self.stacks[threading.get_ident(), kind].pop()
        self.calls.append(("pop", kind))

    @property
    def here(self) -> tuple[list[int], list[int]]:
        return self.stacks[threading.get_ident(), OP], self.stacks[threading.get_ident(), USER]

    @property
    def is_empty(self) -> bool:
        return not any(self.stacks.values())


def test_a_user_range_is_pushed_as_both_kinds_and_an_op_as_an_op() -> None:
    stack = NativeStack()
    with recording(mirrors=[(stack.push, stack.pop)]), record_function("user") as user, RecordFunction("op") as op:
        assert stack.here == ([user.id, op.id], [user.id])
    assert stack.calls == [
        ("push", OP, user.id),
        ("push", USER, user.id),
        ("push", OP, op.id),
        ("pop", OP),
        ("pop", USER),
        ("pop", OP),
    ]


def test_a_range_that_is_left_below_others_is_taken_out_from_under_them() -> None:
    stack = NativeStack()
    with recording(mirrors=[(stack.push, stack.pop)]):
        first, second, op = record_function("first"), record_function("second"), RecordFunction("op")
        for entered in (first, second, op):
            entered.__enter__()
        first.__exit__(None, None, None)
        assert stack.here == ([second.id, op.id], [second.id])
        second.__exit__(None, None, None)
        assert stack.here == ([op.id], [])
        op.__exit__(None, None, None)
    assert stack.is_empty


def test_a_range_that_ends_on_another_thread_leaves_the_stack_of_its_own_when_that_comes_by() -> None:
    stack = NativeStack()
    with recording(mirrors=[(stack.push, stack.pop)]):
        moved = record_function("moved")
        moved.__enter__()
        run_in_thread(lambda: moved.__exit__(None, None, None))
        with RecordFunction("op") as op:
            assert stack.here == ([op.id], [])
    assert stack.is_empty


def test_what_is_open_at_the_stop_is_popped_on_the_stopping_thread() -> None:
    stack = NativeStack()
    open_range = record_function("open")
    with recording(mirrors=[(stack.push, stack.pop)]):
        open_range.__enter__()
    assert stack.is_empty
    open_range.__exit__(None, None, None)
    assert stack.calls[-1] == ("pop", OP)
    assert len(stack.calls) == 4


def test_a_mirror_that_raises_is_dropped_and_noted_and_the_others_go_on(caplog: pytest.LogCaptureFixture) -> None:
    def fails(kind: int, id: int) -> None:
        raise ValueError("full")

    bad, good = NativeStack(), NativeStack()
    mirrors = [(fails, bad.pop), (good.push, good.pop)]
    with caplog.at_level(logging.WARNING, "devprof.host"), recording(mirrors=mirrors) as session:
        for _ in range(2):
            with record_function("range"):
                pass
    assert (bad.calls, len(good.calls), good.is_empty) == ([], 8, True)
    (note,) = session.result.notes
    assert "was dropped" in note
    assert "ValueError: full" in note
    assert [record.message for record in caplog.records] == [note]
    assert [r.name for r in session.ranges] == ["range", "range"]


def test_mirrors_rest_while_collection_is_off() -> None:
    stack = NativeStack()
    with recording(mirrors=[(stack.push, stack.pop)]) as session:
        with record_function("on"):
            session.recorder.toggle(False)
        with record_function("off"):
            pass
        assert stack.is_empty
        session.recorder.toggle(True)
        with record_function("on again") as again:
            assert stack.here == ([again.id], [again.id])
    assert [r.name for r in session.ranges] == ["on", "on again"]
