"""Work that is handed to another thread keeps the range that it was submitted in.

asyncio does this by itself: a task inherits the context variables of whoever made it. A thread pool does not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from devprof.host.gate import CURRENT, GATE, OUTSIDE, OpenRange, current_range

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

__all__ = ["carry", "unwrap_pools", "wrap_pools"]

P = ParamSpec("P")
R = TypeVar("R")


class _Carried:
    """A callable that runs in somebody's range, and otherwise in the context of the thread that runs it."""

    __slots__ = ("_function", "_range")

    def __init__(self, function: Callable[..., Any], entered: OpenRange) -> None:
        self._function = function
        self._range = entered

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        token = CURRENT.set(self._range)
        try:
            return self._function(*args, **kwargs)
        finally:
            CURRENT.reset(token)

    def __repr__(self) -> str:
        return repr(self._function)


def carry(function: Callable[P, R]) -> Callable[P, R]:
    """Return `function` so that, wherever it is called, its ranges and launches belong to the calling code's range.

    While recording, `concurrent.futures.ThreadPoolExecutor` does this for what is submitted; this is for other pools and for
    threads. Where nobody records, or no range is open, the function itself is returned.

    Example:
        >>> carry(len) is len
        True
    """
    entered = OUTSIDE if GATE.queues is None else current_range()
    return function if entered is OUTSIDE else _Carried(function, entered)


class _Wrap:
    """`ThreadPoolExecutor.submit` while somebody records. Others may wrap it too, before or after, and undo that or not."""

    def __init__(self) -> None:
        self._original: Callable[..., Any] | None = None
        self._submit: Callable[..., Any] | None = None

    def on(self) -> None:
        """Wrap, unless our wrap is there or may be there under somebody else's."""
        pool = _pool()
        present = pool.submit
        if self._submit is not None and present is not self._original:
            return
        self._original, self._submit = present, _carrying(present)
        pool.submit = self._submit  # type: ignore[method-assign]

    def off(self) -> None:
        """Unwrap; under somebody else's wrap ours stays, and does nothing while nobody records."""
        pool = _pool()
        if self._submit is not None and pool.submit is self._submit:
            pool.submit = self._original  # type: ignore[method-assign,assignment]
            self._original = self._submit = None


def _pool() -> type[ThreadPoolExecutor]:
    from concurrent.futures import ThreadPoolExecutor  # loaded where a session starts

    return ThreadPoolExecutor


def _carrying(submit: Callable[..., Any]) -> Callable[..., Any]:
    def submit_in_range(self: Any, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        return submit(self, carry(fn), *args, **kwargs)

    submit_in_range.__name__, submit_in_range.__doc__ = "submit", submit.__doc__
    submit_in_range.__wrapped__ = submit  # type: ignore[attr-defined]  # so that `inspect.signature` shows the original's
    return submit_in_range


_wrap = _Wrap()
wrap_pools, unwrap_pools = _wrap.on, _wrap.off
