"""Ranges of asyncio tasks and of work handed to threads: each has the range that it was started in, and no other's."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from devprof import correlation
from devprof.host import RecordFunction, carry, record_function
from tests.unit.host.recordings import Range, recording, run_in_thread


def test_interleaved_tasks_each_have_their_own_current_range() -> None:
    seen: dict[str, list[bool]] = {"left": [], "right": []}

    async def work(name: str, turns: asyncio.Barrier) -> None:
        with record_function(name) as entered:
            for _ in range(3):
                await turns.wait()
                seen[name].append(correlation.current_op_id() == entered.id)
                with RecordFunction(f"op of {name}"):
                    await turns.wait()

    async def main() -> None:
        turns = asyncio.Barrier(2)
        with record_function("main"):
            await asyncio.gather(work("left", turns), work("right", turns))

    with recording() as session:
        asyncio.run(main())
    assert seen == {"left": [True] * 3, "right": [True] * 3}
    relatives = {(r.name, r.parent, r.user) for r in session.ranges}
    assert relatives == {
        ("main", "", ""),
        ("left", "main", "main"),
        ("right", "main", "main"),
        ("op of left", "left", "left"),
        ("op of right", "right", "right"),
    }


def test_interleaved_tasks_keep_their_times_and_the_order_of_entering() -> None:
    async def work(name: str, started: asyncio.Event, go_on: asyncio.Event) -> None:
        with record_function(name):
            started.set()
            await go_on.wait()

    async def main() -> None:
        events = [asyncio.Event() for _ in range(4)]
        first = asyncio.create_task(work("first", events[0], events[1]))
        await events[0].wait()
        second = asyncio.create_task(work("second", events[2], events[3]))
        await events[2].wait()
        events[1].set()
        await first
        events[3].set()
        await second

    with recording() as session:
        asyncio.run(main())
    assert session.ranges == [Range("first", 2, 4), Range("second", 3, 5)]


def test_a_task_keeps_the_range_that_it_was_made_in_when_that_has_ended() -> None:
    async def later(go_on: asyncio.Event) -> None:
        await go_on.wait()
        with record_function("later"):
            pass

    async def main() -> None:
        go_on = asyncio.Event()
        with record_function("maker"):
            task = asyncio.create_task(later(go_on))
        with record_function("other"):
            go_on.set()
            await task

    with recording() as session:
        asyncio.run(main())
    assert session.ranges == [Range("maker", 2, 3), Range("other", 4, 7), Range("later", 5, 6, "maker", "maker")]


def test_a_range_that_a_task_inherited_and_ends_is_not_current_for_its_maker_any_more() -> None:
    async def main() -> None:
        entered = record_function("given away")
        entered.__enter__()

        async def end() -> None:
            entered.__exit__(None, None, None)
            with RecordFunction("in the task"):
                pass

        await asyncio.create_task(end())
        with RecordFunction("in the maker"):
            pass

    with recording() as session:
        asyncio.run(main())
    assert [(r.name, r.parent) for r in session.ranges] == [
        ("given away", ""),
        ("in the task", ""),
        ("in the maker", ""),
    ]


def test_to_thread_keeps_the_range() -> None:
    def work() -> None:
        with record_function("work"):
            pass

    async def main() -> None:
        with record_function("main"):
            await asyncio.to_thread(work)
            await asyncio.get_running_loop().run_in_executor(None, work)

    with recording() as session:
        asyncio.run(main())
    assert sorted((r.name, r.parent) for r in session.ranges) == [("main", ""), ("work", "main"), ("work", "main")]


def test_work_in_a_thread_pool_keeps_the_range_that_it_was_submitted_in() -> None:
    seen: list[correlation.Correlation] = []

    def work() -> None:
        seen.append(correlation.current())
        with record_function("work"):
            pass

    with ThreadPoolExecutor(1) as pool, recording() as session:
        with record_function("submitter") as outer, RecordFunction("op") as op:
            future = pool.submit(work)
        future.result(60)
        pool.submit(work).result(60)
        list(pool.map(lambda _: work(), [0]))
    assert seen == [
        correlation.Correlation(op.id, outer.id),
        correlation.Correlation(0, 0),
        correlation.Correlation(0, 0),
    ]
    assert [(r.name, r.parent, r.user) for r in session.ranges] == [
        ("submitter", "", ""),
        ("op", "submitter", "submitter"),
        ("work", "op", "submitter"),
        ("work", "", ""),
        ("work", "", ""),
    ]


def test_a_pool_gets_arguments_gives_results_and_raises_as_ever() -> None:
    def divide(number: int, *, by: int) -> float:
        return number / by

    with ThreadPoolExecutor(1) as pool, recording(), record_function("submitter"):
        assert pool.submit(divide, 6, by=3).result(60) == 2
        with pytest.raises(ZeroDivisionError):
            pool.submit(divide, 6, by=0).result(60)
        with pytest.raises(TypeError, match="missing 1 required positional argument"):
            pool.submit()  # type: ignore[call-arg]


def test_only_the_range_is_carried_and_not_the_whole_context() -> None:
    variable = contextvars.ContextVar("variable", default="the pool's own")
    with ThreadPoolExecutor(1) as pool, recording(), record_function("submitter"):
        variable.set("the submitter's")
        assert pool.submit(variable.get).result(60) == "the pool's own"


def test_carry_takes_the_range_to_any_thread() -> None:
    def work(number: int) -> int:
        with record_function("work"):
            return number + 1

    results: list[int] = []
    with recording() as session, record_function("starter"):
        carried = carry(work)
        run_in_thread(lambda: results.append(carried(1)))
        run_in_thread(lambda: results.append(work(2)))
    assert results == [2, 3]
    assert [(r.name, r.parent) for r in session.ranges] == [("starter", ""), ("work", "starter"), ("work", "")]


def test_carry_returns_the_function_itself_where_there_is_nothing_to_carry() -> None:
    outside = carry(len)
    with recording():
        no_range = carry(len)
    assert (outside, no_range) == (len, len)


def test_a_submit_that_others_wrap_too_is_theirs_again_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def wrapped_by(name: str, submit: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(submit)
        def outer(*args: Any, **kwargs: Any) -> Any:
            calls.append(name)
            return submit(*args, **kwargs)

        return outer

    original = ThreadPoolExecutor.submit
    theirs = wrapped_by("before", original)
    monkeypatch.setattr(ThreadPoolExecutor, "submit", theirs)
    with ThreadPoolExecutor(1) as pool:
        with recording():
            pool.submit(len, "").result(60)
        assert ThreadPoolExecutor.submit is theirs
    assert calls == ["before"]
    monkeypatch.undo()


def test_a_wrap_that_others_have_wrapped_is_not_made_twice() -> None:
    original = ThreadPoolExecutor.submit

    def parents() -> list[str]:
        with ThreadPoolExecutor(1) as pool, recording() as session, record_function("submitter"):
            pool.submit(record_function("work")(int)).result(60)
        return [r.parent for r in session.ranges]

    found = []
    try:
        with recording():
            ours = ThreadPoolExecutor.submit
            ThreadPoolExecutor.submit = lambda *args, **kwargs: ours(*args, **kwargs)  # type: ignore[method-assign]
            over = ThreadPoolExecutor.submit
        for _ in range(2):
            found.append(parents())
            assert ThreadPoolExecutor.submit is over
        ThreadPoolExecutor.submit = ours  # type: ignore[method-assign]  # they take theirs away
        found.append(parents())
        assert ThreadPoolExecutor.submit is original
    finally:
        ThreadPoolExecutor.submit = original  # type: ignore[method-assign]
    assert found == [["", "submitter"]] * 3


def test_submit_is_the_original_after_the_session_and_while_it_never_was() -> None:
    original = concurrent.futures.ThreadPoolExecutor.submit
    with recording(record_ranges=False):
        assert concurrent.futures.ThreadPoolExecutor.submit is original
    with recording():
        assert concurrent.futures.ThreadPoolExecutor.submit is not original
    assert concurrent.futures.ThreadPoolExecutor.submit is original
