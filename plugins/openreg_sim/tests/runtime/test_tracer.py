"""Each thread has its own stacks of ids, whatever the outer framework does to them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from openreg_sim.runtime.records import ActivityKind
from openreg_sim.runtime.tracer import OpenRegTracer, TracerCounts

OP, USER = 0, 1
ALL_KINDS = sum(kind.bit for kind in ActivityKind)


@pytest.fixture
def tracer() -> OpenRegTracer:
    enabled = OpenRegTracer()
    enabled.enable()
    return enabled


def _in_thread(function: Callable[[], Any]) -> Any:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found[0]


def test_the_innermost_id_of_each_kind_is_current(tracer: OpenRegTracer) -> None:
    tracer.push(OP, 2)
    tracer.push(USER, 9)
    tracer.push(OP, 3)
    assert tracer.current() == (3, 9)
    assert (tracer.pop(OP), tracer.current()) == (3, (2, 9))
    assert (tracer.pop(OP), tracer.current()) == (2, (0, 9))


def test_a_thread_does_not_see_the_ids_of_another(tracer: OpenRegTracer) -> None:
    tracer.push(OP, 2)
    assert _in_thread(tracer.current) == (0, 0)
    assert _in_thread(lambda: (tracer.push(OP, 5), tracer.current())[1]) == (5, 0)
    assert tracer.current() == (2, 0)


def test_pops_on_an_empty_stack_are_counted_and_do_no_harm(tracer: OpenRegTracer) -> None:
    assert (tracer.pop(OP), tracer.pop(USER)) == (0, 0)
    tracer.push(OP, 4)
    assert tracer.current() == (4, 0)
    assert tracer.counts() == TracerCounts(unbalanced_pops=2, pushes=1, pops=0, stale=0)


def test_ids_left_on_a_stack_do_not_leak_into_the_next_capture(tracer: OpenRegTracer) -> None:
    tracer.push(OP, 1)
    tracer.push(OP, 2)
    tracer.disable()
    tracer.enable()
    assert (tracer.current(), tracer.pop(OP)) == ((0, 0), 0)
    assert tracer.counts() == TracerCounts(unbalanced_pops=1, pushes=0, pops=0, stale=2)


def test_ids_of_another_threads_stack_do_not_leak_either(tracer: OpenRegTracer) -> None:
    asked, answered, answers = threading.Event(), threading.Event(), []

    def worker() -> None:
        tracer.push(OP, 7)
        answered.set()
        asked.wait(timeout=60)
        answers.append(tracer.current())

    thread = threading.Thread(target=worker)
    thread.start()
    answered.wait(timeout=60)
    tracer.disable()
    tracer.enable()
    asked.set()
    thread.join()
    assert answers == [(0, 0)]


def test_while_disabled_nothing_is_pushed_popped_or_counted(tracer: OpenRegTracer) -> None:
    tracer.push(OP, 1)
    tracer.disable()
    tracer.push(OP, 2)
    assert (tracer.pop(OP), tracer.current()) == (0, (0, 0))
    assert tracer.counts() == TracerCounts(unbalanced_pops=0, pushes=1, pops=0, stale=0)


def test_enabling_what_is_enabled_keeps_the_stacks(tracer: OpenRegTracer) -> None:
    tracer.push(OP, 1)
    tracer.enable()
    assert tracer.current() == (1, 0)


def test_threads_that_are_gone_are_counted_until_the_next_capture(tracer: OpenRegTracer) -> None:
    for _ in range(3):
        _in_thread(lambda: tracer.push(OP, 1))
    assert tracer.counts().pushes == 3
    tracer.disable()
    tracer.enable()
    assert tracer.counts().pushes == 0


class _Library:
    """A native device's tracer, as far as it is called: one stack per kind."""

    def __init__(self) -> None:
        self.stacks: tuple[list[int], list[int]] = ([], [])
        self.switched: list[int] = []
        self.unbalanced = 5

    def orActivityEnableTracing(self, kinds: int) -> None:
        self.switched.append(kinds)

    def orActivityDisableTracing(self, kinds: int) -> None:
        self.switched.append(-kinds)

    def orTracerPush(self, kind: int, id: int) -> None:
        self.stacks[kind].append(id)

    def orTracerPop(self, kind: int) -> None:
        if self.stacks[kind]:
            self.stacks[kind].pop()
        else:
            self.unbalanced += 1

    def orTracerTop(self, kind: int) -> int:
        return self.stacks[kind][-1] if self.stacks[kind] else 0

    def orTracerUnbalancedPops(self) -> int:
        return self.unbalanced


def test_with_a_native_device_its_stacks_are_the_ones() -> None:
    library: Any = _Library()
    tracer = OpenRegTracer(lambda: library)
    tracer.enable()
    tracer.enable()
    library.stacks[OP].append(40)  # a torch op, pushed without Python
    tracer.push(USER, 8)
    assert (tracer.current(), library.stacks) == ((40, 8), ([40], [8]))
    assert (tracer.pop(USER), tracer.pop(USER)) == (8, 0)
    assert tracer.counts() == TracerCounts(unbalanced_pops=1, pushes=None, pops=None, stale=None)
    tracer.disable()
    assert library.switched == [-ALL_KINDS, ALL_KINDS, -ALL_KINDS]


def test_who_can_be_asked_goes_before_the_stacks_which_are_for_what_it_does_not_know() -> None:
    tracer = OpenRegTracer()
    tracer.enable()
    tracer.push(OP, 7)
    known = [(3, 4), (0, 0)]
    tracer.ask = lambda: known[0]
    assert tracer.current() == (3, 4)
    known.pop(0)
    assert tracer.current() == (7, 0)
    tracer.disable()
    assert tracer.current() == (0, 0)
