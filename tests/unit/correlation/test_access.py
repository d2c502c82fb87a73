"""The functions that everybody calls: which ids they take, and where they go."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from devprof import correlation
from devprof.correlation import MAX_ID, Correlation, StackDepths
from devprof.errors import UsageError

PUSHES = [correlation.push_correlation_id, correlation.push_user_correlation_id]
Push = Callable[[int], None]


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    correlation.new_generation()
    yield
    correlation.set_provider(None)
    correlation.new_generation()


class Recorder:
    """A provider that notes each call and answers with fixed values."""

    def __init__(self) -> None:
        self.calls: list[tuple[object, ...]] = []

    def current_op_id(self) -> int:
        return 41

    def current_user_id(self) -> int:
        return 42

    def current(self) -> Correlation:
        return Correlation(41, 42)

    def push_correlation_id(self, id: int) -> None:
        self.calls.append(("push op", id))

    def pop_correlation_id(self) -> None:
        self.calls.append(("pop op",))

    def push_user_correlation_id(self, id: int) -> None:
        self.calls.append(("push user", id))

    def pop_user_correlation_id(self) -> None:
        self.calls.append(("pop user",))

    def new_generation(self) -> int:
        self.calls.append(("new generation",))
        return 43

    def unbalanced_pops(self) -> int:
        return 44

    def depths(self) -> StackDepths:
        return StackDepths(45, 46)


def test_without_a_provider_the_stacks_in_python_answer() -> None:
    correlation.push_correlation_id(7)
    correlation.push_user_correlation_id(8)
    inside = (correlation.current(), correlation.current_op_id(), correlation.current_user_id(), correlation.depths())
    correlation.pop_correlation_id()
    correlation.pop_user_correlation_id()
    correlation.pop_user_correlation_id()
    assert inside == (Correlation(7, 8), 7, 8, StackDepths(1, 1))
    assert (correlation.current(), correlation.unbalanced_pops()) == (Correlation(0, 0), 1)


def test_with_a_provider_every_call_goes_there_and_none_to_python() -> None:
    recorder = Recorder()
    correlation.set_provider(recorder)
    correlation.push_correlation_id(1)
    correlation.pop_correlation_id()
    correlation.push_user_correlation_id(2)
    correlation.pop_user_correlation_id()
    answers = (
        correlation.current_op_id(),
        correlation.current_user_id(),
        correlation.current(),
        correlation.new_generation(),
        correlation.unbalanced_pops(),
        correlation.depths(),
    )
    assert answers == (41, 42, Correlation(41, 42), 43, 44, StackDepths(45, 46))
    assert recorder.calls == [("push op", 1), ("pop op",), ("push user", 2), ("pop user",), ("new generation",)]
    correlation.set_provider(None)
    assert (correlation.depths(), correlation.unbalanced_pops()) == (StackDepths(0, 0), 0)


def test_setting_a_provider_gives_back_the_one_before() -> None:
    first, second = Recorder(), Recorder()
    assert [correlation.set_provider(p) for p in (first, second, None, None)] == [None, first, second, None]


def test_a_function_that_was_imported_earlier_follows_the_provider_too() -> None:
    read = correlation.current_op_id
    correlation.set_provider(Recorder())
    assert read() == 41


@pytest.mark.parametrize("push", PUSHES)
@pytest.mark.parametrize("id", [0, -1, MAX_ID + 1])
def test_an_id_that_is_out_of_range_is_refused(push: Push, id: int) -> None:
    with pytest.raises(UsageError, match=rf"correlation id {id} is out of range: expected 1 to 2\*\*64 - 1"):
        push(id)
    assert correlation.depths() == StackDepths(0, 0)


@pytest.mark.parametrize("push", PUSHES)
@pytest.mark.parametrize("id", ["7", 7.0, None])
def test_an_id_that_is_no_whole_number_is_refused(push: Push, id: int) -> None:
    with pytest.raises(UsageError, match=f"is a whole number, found {type(id).__name__}"):
        push(id)
    assert correlation.depths() == StackDepths(0, 0)


def test_ids_from_numpy_become_plain_numbers() -> None:
    correlation.push_correlation_id(np.uint64(2**63 + 5))  # type: ignore[arg-type]  # an integer that is no int
    assert (correlation.current_op_id(), type(correlation.current_op_id())) == (2**63 + 5, int)


def test_a_coroutine_that_awaits_with_an_entry_shows_it_to_the_other_tasks_of_its_thread() -> None:
    # documented, not wished for: ids belong to threads
    async def program() -> list[int]:
        entered, seen = asyncio.Event(), asyncio.Event()

        async def holder() -> None:
            correlation.push_correlation_id(5)
            entered.set()
            await seen.wait()
            correlation.pop_correlation_id()

        async def other() -> int:
            await entered.wait()
            read = correlation.current_op_id()
            seen.set()
            return read

        _, read = await asyncio.gather(holder(), other())
        return [read, correlation.current_op_id()]

    assert asyncio.run(program()) == [5, 0]
