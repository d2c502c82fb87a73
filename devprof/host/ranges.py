"""`record_function`: a range that the user names, as a context manager or decorator.

Source: torch.autograd.profiler.record_function. While nobody records or watches, entering looks at one global and returns.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from types import TracebackType
from typing import Any, TypeVar

from devprof.errors import UsageError
from devprof.host.callbacks import RangeEvent
from devprof.host.decorating import decorated
from devprof.host.entering import begin, note_inputs, text_of
from devprof.host.gate import BLOCK_SIZE, CURRENT, GATE
from devprof.host.leaving import SPENT, extra_of, finish, leave
from devprof.host.queues import OPEN, Block, ThreadQueues
from devprof.host.scopes import RecordScope
from devprof.host.watching import Watchable, Watched

__all__ = ["record_function"]

F = TypeVar("F", bound=Callable[..., Any])

# names of this module: a range looks at no attribute of another object than its own block
_current, _set_current, _reset_current = CURRENT.get, CURRENT.set, CURRENT.reset


class record_function(Watchable):
    """A named range: user code between enter and exit, as a row in the trace and the owner of what is launched inside.

    As a context manager it may be used again, also within itself and on several threads at a time. It may be left on another
    thread or in another order than entered: it ends then, and what is inside stays inside.

    As a decorator it makes a range of each call; of an `async def` from the call to its end, with the time that it waits; of a
    generator, also an asynchronous one, each stretch from one `yield` to the next, as the caller's own time is not its.

    Attributes:
        name: what the range is called.
        args: recorded as the range's only input where shapes are recorded, or None.

    Args:
        name: what the range is called.
        args: as above.

    Raises:
        UsageError: `name` is not text.

    Example:
        >>> with record_function("load"):
        ...     pass
    """

    __slots__ = ("again", "args", "name")

    again: list[record_function]  # further entries while it is entered; only there once there was one

    def __init__(self, name: str, args: str | None = None) -> None:
        if name.__class__ is not str:
            name = text_of(name, "a range's name")
        self.name = name
        self.args = args
        self.block = None

    def __enter__(self) -> record_function:
        queues = GATE.queues
        if queues is None:
            return self
        block = queues.block
        if block is None or self.block is not None or self.args is not None:
            return self._enter_rarely(queues)
        at = block.next
        while at == BLOCK_SIZE:
            block = queues.next_block()  # type: ignore[union-attr]  # no `Watched`: that has no block
            at = block.next  # a signal handler may have entered ranges meanwhile
        block.next = at + 1
        self.block = block
        self.at = at
        self.id = self.user_id = block.first_id + at
        self.gone = False
        outer = _current()
        while outer.gone:
            outer = outer.outer
        block.parents[at] = outer.id
        try:
            block.labels[at] = block.names[self.name]
        except KeyError:
            block.labels[at] = block.queue.labels.number(self.name)
        self.token = _set_current(self)
        clock = block.clock
        block.starts[at] = clock()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        block = self.block
        if block is None:
            if GATE.queues is not None:
                self._leave_again(OPEN)
            return
        clock = block.clock
        end = clock()
        if _current() is self:
            try:
                _reset_current(self.token)
                block.ends[self.at] = end
            except (TypeError, ValueError):
                pass  # there is more to leave, the range is only inherited here, or the session is over
            else:
                self.block = self.token = None
                return
        elif self._leave_again(end):
            return
        leave(self, end)

    def __call__(self, function: F) -> F:
        """Return the function with a range around each call.

        Where ``DEVPROF_DISABLE=1`` is set when it is decorated, the function itself is returned and nothing is ever recorded.
        """
        return decorated(function, functools.partial(record_function, self.name, self.args))

    def end_on(self, future: Any) -> Any:
        """Let a future's completion end the range, not the end of the `with` statement; return the future.

        Source: record_function._call_end_callbacks_on_future.

        Args:
            future: has ``add_done_callback(function)``, as those of concurrent.futures, asyncio and torch have.

        Raises:
            UsageError: `future` is none, or the range has one already.
        """
        if not callable(getattr(future, "add_done_callback", None)):
            raise UsageError(
                f"range {self.name!r} cannot end on a {type(future).__name__}: it has no add_done_callback"
            )
        block, at = self.block, self.at if self.block is not None else 0
        if block is not None:
            extra = extra_of(self)
            if extra.is_deferred:
                raise UsageError(f"range {self.name!r} ends on another future already; a range has one end")
            extra.is_deferred = True
            future.add_done_callback(lambda _: finish(block, at, block.clock()))
        return future

    @property
    def scope(self) -> RecordScope:
        """Always `RecordScope.USER_SCOPE`."""
        return RecordScope.USER_SCOPE

    @property
    def label(self) -> Hashable:
        """The name."""
        return self.name

    def event(self) -> RangeEvent:
        """Return what a callback learns of it; `args` is its only input."""
        inputs = () if self.args is None else (self.args,)
        return RangeEvent(self.name, RecordScope.USER_SCOPE, self.id, inputs=inputs)

    def note(self, block: Block) -> None:
        """Put down the argument, where inputs are recorded."""
        if self.args is not None:
            note_inputs(block, self.id, (self.args,))

    def _enter_rarely(self, queues: ThreadQueues | Watched) -> record_function:
        if self.block is not None:
            again = record_function(self.name, self.args)
            again.__enter__()
            self._again(again)
        elif isinstance(queues, Watched):
            try:
                queues.enter(self)
            except BaseException:
                # the keyboard, in a callback: the `with` statement will not leave what was not entered
                self.__exit__(None, None, None)
                raise
        else:
            block = begin(self, queues, self.name, True)
            self.note(block)
            block.starts[self.at] = block.clock()
        return self

    def _again(self, again: record_function) -> None:
        try:
            self.again.append(again)
        except AttributeError:
            self.again = [again]

    def _leave_again(self, end_ticks: int) -> bool:
        # which of several entries of one object is left: the one that is current here, else the last
        entries = getattr(self, "again", None)
        if not entries:
            return False
        here = _current()
        inner = entries.pop(next((at for at, entry in enumerate(entries) if entry is here), -1))
        if inner.block is not None:
            is_read = end_ticks != OPEN and self.block is not SPENT
            leave(inner, end_ticks if is_read else inner.block.clock())
        return True
