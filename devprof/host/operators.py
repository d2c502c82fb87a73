"""`RecordFunction`: a range of a framework's own, with a scope, inputs, and what joins a backward op to its forward op.

Source: at::RecordFunction in torch's ATen/record_function.h.
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Hashable, Sequence
from types import TracebackType

from devprof.errors import UsageError
from devprof.host.callbacks import RangeEvent
from devprof.host.entering import begin, note_inputs, text_of
from devprof.host.gate import BLOCK_SIZE, CURRENT, GATE, current_range
from devprof.host.leaving import leave
from devprof.host.queues import Block, ThreadQueues
from devprof.host.scopes import RecordScope
from devprof.host.watching import Watchable, Watched

__all__ = ["RecordFunction"]

_row = struct.Struct("qqq").pack
_MOST = 2**63 - 1
_NO_NUMBER, _NO_THREAD = -1, 0
_FUNCTION, _USER = RecordScope.FUNCTION, RecordScope.USER_SCOPE


class RecordFunction(Watchable):
    """A range around one op, used once. May be left on another thread.

    Attributes:
        name: what the op is called.
        scope: its kind.
        inputs: its inputs, until it is left.
        sequence_nr: number that a forward op and its backward op share, -1: none.
        forward_thread_id: in a backward op, native id of the thread that ran the forward op; 0: this is no backward op.
        overload_name: which overload of the op it is.

    Args:
        name, scope, inputs, sequence_nr, forward_thread_id, overload_name: as above.

    Raises:
        UsageError: one of them is not what it should be.

    Example:
        >>> with RecordFunction("mylib::add", sequence_nr=3):
        ...     pass
    """

    __slots__ = ("_label", "_scope", "forward_thread_id", "inputs", "name", "overload_name", "sequence_nr")

    def __init__(
        self,
        name: str,
        scope: RecordScope = RecordScope.FUNCTION,
        *,
        inputs: Sequence[object] = (),
        sequence_nr: int = -1,
        forward_thread_id: int = 0,
        overload_name: str = "",
    ) -> None:
        # whatever is wrong is said here: entering must not fail half-way
        if name.__class__ is not str or overload_name.__class__ is not str:
            name, overload_name = text_of(name, "a range's name"), text_of(overload_name, "overload_name")
        if inputs.__class__ is not tuple:
            inputs = _inputs(inputs)
        if sequence_nr is not _NO_NUMBER or forward_thread_id is not _NO_THREAD:
            sequence_nr = _number(sequence_nr, "sequence_nr")
            forward_thread_id = _number(forward_thread_id, "forward_thread_id")
        self.name = name
        self._scope = scope if type(scope) is RecordScope else _scope(scope)
        self.inputs = inputs
        self.sequence_nr = sequence_nr
        self.forward_thread_id = forward_thread_id
        self.overload_name = overload_name
        # a plain number: the hash of an enum's member is a function in Python
        self._label = (name, 0 if scope is _FUNCTION else int(scope), overload_name)
        self.block = None

    def __enter__(self) -> RecordFunction:
        queues = GATE.queues
        if queues is None:
            return self
        block = queues.block
        if block is None:
            return self._enter_rarely(queues)
        at = block.next
        while at == BLOCK_SIZE:
            block = queues.next_block()  # type: ignore[union-attr]  # no `Watched`: that has no block
            at = block.next  # a signal handler may have entered ranges meanwhile
        block.next = at + 1
        outer = current_range()
        self.at, self.gone = at, False
        self.id = range_id = block.first_id + at
        self.user_id = range_id if self._scope is _USER else outer.user_id
        block.parents[at] = outer.id
        try:
            block.labels[at] = block.names[self._label]
        except KeyError:
            block.labels[at] = block.queue.labels.number(self._label)
        self.token = CURRENT.set(self)
        self.block = block
        if self.inputs or self.sequence_nr >= 0 or self.forward_thread_id:
            self.note(block)
        clock = block.clock
        block.starts[at] = clock()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.inputs = ()  # a task that inherited the range must not keep tensors alive
        block = self.block
        if block is None:
            return
        end = block.clock()
        if CURRENT.get() is self:
            try:
                CURRENT.reset(self.token)
                block.ends[self.at] = end
            except (TypeError, ValueError):
                pass  # watched, only inherited here, or the session is over
            else:
                self.block = self.token = None
                return
        leave(self, end)

    def _enter_rarely(self, queues: ThreadQueues | Watched) -> RecordFunction:
        if not isinstance(queues, Watched):  # this thread's queue is being made at this moment
            block = begin(self, queues, self._label, self._scope is _USER)
            self.note(block)
            block.starts[self.at] = block.clock()
            return self
        try:
            queues.enter(self)
        except BaseException:
            # the keyboard, in a callback: the `with` statement will not leave what was not entered
            self.__exit__(None, None, None)
            raise
        return self

    @property
    def scope(self) -> RecordScope:
        """Its kind."""
        return self._scope

    @property
    def label(self) -> Hashable:
        """Name, scope and overload."""
        return self._label

    def event(self) -> RangeEvent:
        """Return what a callback with `needs_inputs` learns of it."""
        return RangeEvent(
            self.name,
            self._scope,
            self.id,
            inputs=tuple(self.inputs),
            sequence_nr=self.sequence_nr,
            forward_thread_id=self.forward_thread_id,
            overload_name=self.overload_name,
        )

    def note(self, block: Block) -> None:
        """Put down inputs and sequence number in the block's queue."""
        if self.inputs:
            note_inputs(block, self.id, self.inputs)
        if self.sequence_nr >= 0 or self.forward_thread_id:
            block.queue.sequences += _row(self.id, self.sequence_nr, self.forward_thread_id)


def _inputs(inputs: object) -> tuple[object, ...]:
    if inputs is None:
        return ()
    if not isinstance(inputs, Sequence):
        raise UsageError(f"inputs is a {type(inputs).__name__}; expected a tuple or list of the op's inputs")
    return tuple(inputs)


def _number(value: object, what: str) -> int:
    try:
        number = operator.index(value)  # type: ignore[arg-type]  # the call is the check
    except TypeError:
        raise UsageError(f"{what} is {value!r}; expected a whole number") from None
    if not -_MOST <= number <= _MOST:
        raise UsageError(f"{what} is {value!r}; expected a whole number of 64 bits")
    return number


def _scope(scope: object) -> RecordScope:
    try:
        return RecordScope(scope)  # type: ignore[arg-type]  # the call is the check
    except ValueError:
        raise UsageError(f"scope is {scope!r}; expected a member of RecordScope") from None
