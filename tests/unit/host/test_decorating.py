"""`record_function` as a decorator: one range per call, per coroutine, per stretch of a generator."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from devprof.host import RecordFunction, record_function
from tests.unit.host.recordings import Range, recording


@record_function("double")
def double(number: int, *, plus: int = 0) -> int:
    """Return twice the number."""
    return 2 * number + plus


@record_function("factorial")
def factorial(number: int) -> int:
    return 1 if number == 0 else number * factorial(number - 1)


def test_a_function_that_was_decorated_long_before_is_recorded_once_somebody_records() -> None:
    before = double(1)
    with recording() as session:
        during = double(2, plus=1)
    assert (before, during, double(3)) == (2, 5, 6)
    assert session.ranges == [Range("double", 2, 3)]


def test_a_decorated_function_looks_like_itself() -> None:
    assert (double.__name__, double.__doc__) == ("double", "Return twice the number.")
    assert str(inspect.signature(double)) == "(number: 'int', *, plus: 'int' = 0) -> 'int'"


def test_every_call_of_a_recursion_is_a_range() -> None:
    with recording() as session:
        assert factorial(2) == 2
    assert session.ranges == [
        Range("factorial", 2, 7),
        Range("factorial", 3, 6, "factorial", "factorial"),
        Range("factorial", 4, 5, "factorial", "factorial"),
    ]


def test_what_a_decorated_function_raises_goes_through() -> None:
    @record_function("fails")
    def fails() -> None:
        raise ValueError("no")

    with recording() as session, pytest.raises(ValueError, match="no"):
        fails()
    assert session.ranges == [Range("fails", 2, 3)]


def test_a_coroutine_is_one_range_from_its_start_to_its_end() -> None:
    @record_function("waits")
    async def waits() -> str:
        await asyncio.sleep(0)
        with RecordFunction("op"):
            return "done"

    assert inspect.iscoroutinefunction(waits)
    with recording() as session:
        assert asyncio.run(waits()) == "done"
    assert session.ranges == [Range("waits", 2, 5), Range("op", 3, 4, "waits", "waits")]


def test_a_generator_is_a_range_for_each_stretch_and_none_while_it_waits() -> None:
    @record_function("numbers")
    def numbers() -> Iterator[int]:
        with RecordFunction("first"):
            pass
        got = yield 1
        assert got is None
        yield 2

    assert inspect.isgeneratorfunction(numbers)
    with recording() as session:
        for _ in numbers():
            with record_function("consumer"):
                pass
    assert session.ranges == [
        Range("numbers", 2, 5),
        Range("first", 3, 4, "numbers", "numbers"),
        Range("consumer", 6, 7),
        Range("numbers", 8, 9),
        Range("consumer", 10, 11),
        Range("numbers", 12, 13),
    ]


def test_a_generator_gets_what_is_sent_and_thrown_and_gives_what_it_returns() -> None:
    said: list[object] = []

    @record_function("echo")
    def echo() -> Iterator[object]:
        value: object = "first"
        while value != "enough":
            try:
                value = yield value
            except KeyError as error:
                value = f"caught {error.args[0]}"
        return "returned"

    def outer() -> Iterator[object]:
        said.append((yield from echo()))

    generator = outer()
    assert next(generator) == "first"
    assert generator.send("sent") == "sent"  # type: ignore[attr-defined]
    assert generator.throw(KeyError("thrown")) == "caught thrown"  # type: ignore[attr-defined]
    with pytest.raises(StopIteration):
        generator.send("enough")  # type: ignore[attr-defined]
    assert said == ["returned"]


def test_a_generator_that_is_abandoned_is_closed_inside_a_range() -> None:
    closed: list[str] = []

    @record_function("numbers")
    def numbers() -> Iterator[int]:
        try:
            yield 1
        finally:
            closed.append("closed")

    with recording() as session:
        generator = numbers()
        next(generator)
        del generator
        with record_function("after"):
            pass
    assert closed == ["closed"]
    assert session.ranges == [Range("numbers", 2, 3), Range("numbers", 4, 5), Range("after", 6, 7)]


def test_a_generator_that_catches_what_is_thrown_at_its_close_is_refused_as_ever() -> None:
    @record_function("stubborn")
    def stubborn() -> Iterator[int]:
        with contextlib.suppress(GeneratorExit):
            yield 1
        yield 2

    generator = stubborn()
    next(generator)
    with pytest.raises(RuntimeError, match="ignored GeneratorExit"):
        generator.close()  # type: ignore[attr-defined]


def test_an_asynchronous_generator_is_a_range_for_each_stretch() -> None:
    @record_function("numbers")
    async def numbers() -> AsyncIterator[int]:
        yield 1
        await asyncio.sleep(0)
        with RecordFunction("second"):
            pass
        yield 2

    async def consume() -> list[int]:
        got = []
        async for number in numbers():
            with record_function("consumer"):
                got.append(number)
        return got

    assert inspect.isasyncgenfunction(numbers)
    with recording() as session:
        assert asyncio.run(consume()) == [1, 2]
    assert session.ranges == [
        Range("numbers", 2, 3),
        Range("consumer", 4, 5),
        Range("numbers", 6, 9),
        Range("second", 7, 8, "numbers", "numbers"),
        Range("consumer", 10, 11),
        Range("numbers", 12, 13),
    ]


def test_an_asynchronous_generator_gets_what_is_sent_and_thrown() -> None:
    @record_function("echo")
    async def echo() -> AsyncIterator[object]:
        value: object = "first"
        while True:
            try:
                value = yield value
            except KeyError as error:
                value = f"caught {error.args[0]}"

    async def talk() -> list[object]:
        generator = echo()
        said = [
            await generator.asend(None),  # type: ignore[attr-defined]
            await generator.asend("sent"),  # type: ignore[attr-defined]
            await generator.athrow(KeyError("thrown")),  # type: ignore[attr-defined]
        ]
        await generator.aclose()  # type: ignore[attr-defined]
        return said

    assert asyncio.run(talk()) == ["first", "sent", "caught thrown"]


def test_where_devprof_is_disabled_a_function_is_returned_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def function() -> None:
        pass

    monkeypatch.setenv("DEVPROF_DISABLE", "1")
    assert record_function("function")(function) is function


def test_a_method_and_what_is_no_function_can_be_decorated() -> None:
    class Model:
        @record_function("forward")
        def forward(self, number: int) -> int:
            return number + 1

    with recording() as session:
        assert (Model().forward(1), record_function("length")(len)("abc")) == (2, 3)
    assert session.ranges == [Range("forward", 2, 3), Range("length", 4, 5)]


def test_an_asynchronous_generator_that_is_left_open_is_closed_once_at_the_end_of_the_loop() -> None:
    complaints: list[object] = []

    @record_function("numbers")
    async def numbers() -> AsyncIterator[int]:
        try:
            yield 1
        finally:
            await asyncio.sleep(0)
            closed.append("closed")

    async def program() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
        left.append(numbers())
        assert await anext(left[0]) == 1

    closed: list[str] = []
    left: list[AsyncIterator[int]] = []
    with recording() as session:
        asyncio.run(program())
    assert (complaints, closed) == ([], ["closed"])
    assert session.ranges == [Range("numbers", 2, 3), Range("numbers", 4, 5)]


@pytest.mark.skipif(sys.version_info < (3, 13), reason="close() returns a value since 3.13")
def test_the_close_of_a_generator_returns_what_it_returns() -> None:
    @record_function("numbers")
    def numbers() -> Iterator[int]:
        try:
            yield 1
        except GeneratorExit:
            return 5  # type: ignore[return-value]

    generator: Any = numbers()
    next(generator)
    assert generator.close() == 5
