"""`decorated`: a function with a range around each call.

A function may be decorated at import and profiled hours later, so a wrapper stays and asks at each call whether anybody
records. Only a process in which devprof is disabled gets the function itself back.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import AbstractContextManager
from typing import Any, TypeVar, cast

from devprof.host.gate import GATE

__all__ = ["decorated"]

F = TypeVar("F", bound=Callable[..., Any])
NewRange = Callable[[], AbstractContextManager[Any]]


def decorated(function: F, new_range: NewRange) -> F:
    """Return `function` with a range around each call, each coroutine, or each stretch of a generator.

    Args:
        function: anything that can be called.
        new_range: makes a range that is entered once.
    """
    if os.environ.get("DEVPROF_DISABLE") == "1":
        return function
    import inspect  # loaded where something is decorated

    if inspect.iscoroutinefunction(function):
        wrapper = _coroutine(function, new_range)
    elif inspect.isasyncgenfunction(function):
        wrapper = _async_generator(function, new_range)
    elif inspect.isgeneratorfunction(function):
        wrapper = _generator(function, new_range)
    else:
        wrapper = _plain(function, new_range)
    return cast("F", functools.wraps(function)(wrapper))


def _plain(function: Callable[..., Any], new_range: NewRange) -> Callable[..., Any]:
    gate = GATE

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if gate.queues is None:
            return function(*args, **kwargs)
        with new_range():
            return function(*args, **kwargs)

    return wrapper


def _coroutine(function: Callable[..., Any], new_range: NewRange) -> Callable[..., Any]:
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        with new_range():
            return await function(*args, **kwargs)

    return wrapper


def _generator(function: Callable[..., Any], new_range: NewRange) -> Callable[..., Any]:
    def wrapper(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        generator = function(*args, **kwargs)
        try:
            with new_range():
                value = next(generator)
            while True:
                try:
                    sent = yield value
                except GeneratorExit:
                    with new_range():
                        return generator.close()
                except BaseException as error:  # noqa: BLE001  # thrown in by the caller; it is the generator's to handle
                    with new_range():
                        value = generator.throw(error)
                else:
                    with new_range():
                        value = generator.send(sent)
        except StopIteration as stop:  # raised by the generator's end only: inside of one it becomes a RuntimeError
            return stop.value

    return wrapper


def _first(generator: AsyncGenerator[Any, Any]) -> Awaitable[Any]:
    """Return what awaits the first value, and keep the generator from the event loop, which knows the one around it.

    A loop that ends closes all generators that it knows at the same time, and the inner one is closed by the outer one.
    """
    hooks = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(None, None)
    try:
        return anext(generator)
    finally:
        sys.set_asyncgen_hooks(*hooks)


def _async_generator(function: Callable[..., Any], new_range: NewRange) -> Callable[..., Any]:
    async def wrapper(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        generator = function(*args, **kwargs)
        try:
            with new_range():
                value = await _first(generator)
            while True:
                try:
                    sent = yield value
                except GeneratorExit:
                    with new_range():
                        await generator.aclose()
                    raise
                except BaseException as error:  # noqa: BLE001  # thrown in by the caller; it is the generator's to handle
                    with new_range():
                        value = await generator.athrow(error)
                else:
                    with new_range():
                        value = await generator.asend(sent)
        except StopAsyncIteration:
            return

    return wrapper
