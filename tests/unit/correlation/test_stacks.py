"""The stacks in Python: two per thread, emptied by a new generation, tolerant of pops that nobody pushed."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from devprof.correlation import MAX_ID, Correlation, PythonStacks, StackDepths

Ask = Callable[[PythonStacks], object]


def _on_another_thread(ask: Callable[[], object]) -> object:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(ask).result(timeout=10)


def test_a_thread_without_entries_has_no_ids() -> None:
    stacks = PythonStacks()
    assert (stacks.current_op_id(), stacks.current_user_id(), stacks.current()) == (0, 0, Correlation(0, 0))


def test_the_innermost_entry_is_current_and_ops_and_ranges_do_not_mix() -> None:
    stacks = PythonStacks()
    seen = []
    for step in (
        lambda: stacks.push_user_correlation_id(1),
        lambda: stacks.push_correlation_id(10),
        lambda: stacks.push_correlation_id(11),
        lambda: stacks.push_user_correlation_id(2),
        stacks.pop_correlation_id,
        stacks.pop_user_correlation_id,
        stacks.pop_correlation_id,
        stacks.pop_user_correlation_id,
    ):
        step()
        seen.append((*stacks.current(), stacks.current_op_id(), stacks.current_user_id()))
    wanted = [(0, 1), (10, 1), (11, 1), (11, 2), (10, 2), (10, 1), (0, 1), (0, 0)]
    assert seen == [(op, user, op, user) for op, user in wanted]


def test_the_greatest_id_of_kineto_is_kept_whole() -> None:
    stacks = PythonStacks()
    stacks.push_correlation_id(MAX_ID)
    stacks.push_user_correlation_id(MAX_ID)
    assert stacks.current() == Correlation(2**64 - 1, 2**64 - 1)


def test_threads_do_not_see_each_other() -> None:
    stacks = PythonStacks()
    stacks.push_correlation_id(5)
    stacks.push_user_correlation_id(6)
    assert _on_another_thread(stacks.current) == Correlation(0, 0)
    assert stacks.current() == Correlation(5, 6)


@pytest.mark.parametrize(
    ("ask", "answer"),
    [
        (PythonStacks.current_op_id, 0),
        (PythonStacks.current_user_id, 0),
        (PythonStacks.current, Correlation(0, 0)),
        (PythonStacks.depths, StackDepths(0, 0)),
    ],
)
def test_reading_in_a_new_generation_never_gives_an_entry_of_the_old_one(ask: Ask, answer: object) -> None:
    stacks = PythonStacks()
    stacks.push_correlation_id(5)
    stacks.push_user_correlation_id(6)
    stacks.new_generation()
    assert ask(stacks) == answer


@pytest.mark.parametrize(
    ("push", "depths"),
    [
        (PythonStacks.push_correlation_id, StackDepths(1, 0)),
        (PythonStacks.push_user_correlation_id, StackDepths(0, 1)),
    ],
)
def test_a_push_in_a_new_generation_starts_from_empty_stacks(
    push: Callable[[PythonStacks, int], None], depths: StackDepths
) -> None:
    stacks = PythonStacks()
    stacks.push_correlation_id(5)
    stacks.push_user_correlation_id(6)
    stacks.new_generation()
    push(stacks, 9)
    assert stacks.depths() == depths


@pytest.mark.parametrize("pop", [PythonStacks.pop_correlation_id, PythonStacks.pop_user_correlation_id])
def test_a_pop_whose_push_was_in_an_earlier_generation_is_counted_and_harmless(
    pop: Callable[[PythonStacks], None],
) -> None:
    stacks = PythonStacks()
    stacks.push_correlation_id(5)
    stacks.push_user_correlation_id(6)
    stacks.new_generation()
    pop(stacks)
    assert (stacks.unbalanced_pops(), stacks.depths()) == (1, StackDepths(0, 0))


def test_unbalanced_pops_are_counted_over_all_threads_and_from_the_start_of_the_generation() -> None:
    stacks = PythonStacks()
    stacks.pop_correlation_id()
    assert stacks.unbalanced_pops() == 1
    stacks.new_generation()
    stacks.pop_user_correlation_id()
    _on_another_thread(stacks.pop_correlation_id)
    assert stacks.unbalanced_pops() == 2


def test_generations_are_numbered_in_order() -> None:
    stacks = PythonStacks()
    assert [stacks.new_generation() for _ in range(3)] == [1, 2, 3]


def test_sixteen_threads_keep_their_own_ids_and_no_count_is_lost() -> None:
    stacks = PythonStacks()
    gate = threading.Barrier(16)

    def work(number: int) -> bool:
        gate.wait(timeout=30)
        own = True
        for round_ in range(500):
            stacks.push_correlation_id(number * 1000 + round_ + 1)
            own &= stacks.current_op_id() == number * 1000 + round_ + 1
            stacks.pop_correlation_id()
            stacks.pop_correlation_id()
        return own and stacks.depths() == (0, 0)

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(work, range(16), timeout=60))
    assert stacks.unbalanced_pops() == 16 * 500


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_child_forked_while_another_thread_counts_can_count_too() -> None:
    stacks = PythonStacks()
    # as if another thread were inside the count at the moment of the fork
    with stacks._lock:
        child = os.fork()
        if child == 0:
            stacks.pop_correlation_id()
            os._exit(stacks.unbalanced_pops())
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 1
