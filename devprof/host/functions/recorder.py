"""`Recorder`: what the two cores written in Python share: tables of functions, a block of events per thread, the limit.

An event is three numbers in its thread's list; the lists are turned into arrays while recording goes on.
"""

from __future__ import annotations

import itertools
import sys
import threading
from collections.abc import Callable
from types import BuiltinFunctionType, CodeType, FrameType, MethodDescriptorType, ModuleType
from typing import Any, NamedTuple, TypeVar

import numpy as np

from devprof.host.functions.events import (
    CALL_OF_C,
    EVENT,
    INDEX_SHIFT,
    LEAVE,
    MODULE,
    Captured,
    EventArray,
    ThreadEvents,
)
from devprof.host.functions.modules import Modules, is_own, may_be_module
from devprof.host.functions.threads import name_here, native_id_and_name, open_frames

__all__ = ["Hooks", "Recorder"]

_BETWEEN_SEALS = (1 << 14) - 1  # calls
_T = TypeVar("_T")
_Add = Callable[[tuple[int, int, int]], None]


class Hooks(NamedTuple):
    """Functions for a hook to call, on the thread that is traced.

    Attributes:
        enter: a frame of ``code`` begins or goes on at ``offset``.
        leave: a frame of ``code`` ends, yields or raises.
        enter_c: a C function is called, with its first argument; other callables are passed over.
        leave_c: the C function ends or raises.
    """

    enter: Callable[..., None]
    leave: Callable[..., None]
    enter_c: Callable[..., None]
    leave_c: Callable[..., None]


class _Block:
    """Events of one thread: `numbers` holds tick, what and extra of each, `sealed` those that are arrays already.

    `open` holds the frames that were open at the start; they come first.
    """

    def __init__(self, native_id: int, name: str) -> None:
        self.native_id = native_id
        self.name = name
        self.numbers: list[int] = []
        self.open: list[int] = []
        self.sealed: list[EventArray] = []

    def seal(self) -> None:
        numbers = self.numbers[:]
        del self.numbers[: len(numbers)]  # its thread may go on appending meanwhile
        self.sealed.append(_as_array(numbers))

    def events(self) -> EventArray:
        self.seal()
        return np.concatenate([_as_array(self.open), *self.sealed])


def _as_array(numbers: list[int]) -> EventArray:
    table = np.fromiter(numbers, np.int64, len(numbers)).reshape(-1, 3)
    events = np.empty(len(table), EVENT)
    events["tick"], events["what"], events["extra"] = table.T
    return events


class _Here(threading.local):
    """What the hooks need on their thread; `add` is missing until the thread is registered."""

    add: _Add
    skipped: int = 0


class Recorder:
    """Tables and blocks behind the hooks. The hooks run on every thread, the rest on those that start and stop."""

    def __init__(self, max_events: int, ticks: Callable[[], int]) -> None:
        self._codes: dict[int, CodeType] = {}
        self._c_names: dict[int, str] = {}
        self._own_c: set[int] = set()
        self._numbers, self._c_numbers = itertools.count(), itertools.count()
        self._what_of_code: dict[int, int] = {}
        self._leave_of_code: dict[int, int] = {}
        self._what_of_module: dict[int, int] = {}
        self._what_of_function: dict[object, int] = {}
        self._what_of_c: dict[tuple[str, object], int] = {}
        self._modules = Modules()
        self._blocks: list[_Block] = []
        self._unseen: dict[int, _Block] = {}
        self._block_of: dict[int, _Block] = {}
        self._here = _Here()
        self._ticks = ticks
        self._budget = iter(range(max_events))
        self._beyond = itertools.count()
        self._full: list[bool] = []
        self._sealing = threading.Lock()

    def opened(self, frame: FrameType | None, ident: int, start_ticks: int) -> None:
        """Take the frames that are open on a thread as entered at `start_ticks`."""
        block = self._block_of.get(ident)  # events may have come meanwhile
        if block is None:
            block = _Block(*native_id_and_name(ident))
            self._blocks.append(block)
            self._unseen[ident] = block
        for one in open_frames(frame):
            block.open.extend((start_ticks, self._what_of(one.f_code) & ~MODULE, one.f_lasti))

    def hooks(self, frames_between: int) -> Hooks:
        """Return the functions that record.

        Args:
            frames_between: frames of hooks between the traced frame and ``enter``.
        """
        enter, leave = self._hook_of_enter(frames_between), self._hook_of_leave()
        return Hooks(enter, leave, self._hook_of_enter_c(), self._hook_of_leave_c())

    def captured(self) -> Captured:
        """Return everything that was recorded."""
        with self._sealing:
            threads = [ThreadEvents(block.native_id, block.name, block.events()) for block in self._blocks]
        return Captured(
            threads,
            _by_number(self._codes),
            _by_number(self._c_names),
            self._modules.seen,
            frozenset(self._own_c),
            next(self._beyond),
        )

    # The hooks repeat themselves where a function between them would be: each call costs as much as what it does.

    def _hook_of_enter(self, frames_between: int) -> Callable[..., None]:
        known, budget, here, ticks = self._what_of_code, self._budget, self._here, self._ticks
        depth = frames_between + 2

        def enter(code: CodeType, offset: int, _: object = None) -> None:
            what = known.get(id(code))
            if what is None:
                what, offset = self._new_or_module(code, offset, depth)
            number = next(budget, None)
            if (number is None or not number & _BETWEEN_SEALS) and self._stops(number):
                return
            try:
                add = here.add
            except AttributeError:
                add = self._register()
            add((ticks(), what, offset))

        return enter

    def _hook_of_leave(self) -> Callable[..., None]:
        known, full, here, ticks = self._leave_of_code, self._full, self._here, self._ticks

        def leave(code: CodeType, _: int = 0, __: object = None) -> None:
            tick = ticks()
            if full and self._skips():
                return
            what = known.get(id(code))
            if what is None:
                what = self._what_of(code) & ~MODULE | LEAVE
            try:
                add = here.add
            except AttributeError:
                add = self._register()
            add((tick, what, 0))

        return leave

    def _hook_of_enter_c(self) -> Callable[..., None]:
        known, budget, here, ticks = self._what_of_function, self._budget, self._here, self._ticks

        def enter_c(_: object, __: int, function: Any, argument: object) -> None:
            what = (known.get(function) if type(function) is BuiltinFunctionType else None) or self._what_c(
                function, argument
            )
            if not what:
                return
            number = next(budget, None)
            if (number is None or not number & _BETWEEN_SEALS) and self._stops(number):
                return
            try:
                add = here.add
            except AttributeError:
                add = self._register()
            add((ticks(), what, 0))

        return enter_c

    def _hook_of_leave_c(self) -> Callable[..., None]:
        known, full, here, ticks = self._what_of_function, self._full, self._here, self._ticks

        def leave_c(_: object, __: int, function: Any, argument: object) -> None:
            tick = ticks()
            what = (known.get(function) if type(function) is BuiltinFunctionType else None) or self._what_c(
                function, argument
            )
            if not what or (full and self._skips()):
                return
            try:
                add = here.add
            except AttributeError:
                add = self._register()
            add((tick, what | LEAVE, 0))

        return leave_c

    def _stops(self, number: int | None) -> bool:
        """Seal from time to time; say whether the limit is reached, and then remember to skip the leave."""
        if number is not None:
            self._seal()
            return False
        next(self._beyond)
        self._full[:] = (True,)
        self._here.skipped += 1
        return True

    def _skips(self) -> bool:
        if not self._here.skipped:
            return False
        self._here.skipped -= 1
        return True

    def _register(self) -> _Add:
        ident = threading.get_ident()
        block = self._unseen.pop(ident, None)
        if block is None:
            block = _Block(0, name_here())
            self._blocks.append(block)
            self._block_of.setdefault(ident, block)  # an id may be used again; the first is the one that was open
        block.native_id = threading.get_native_id()
        self._here.add = block.numbers.extend
        return self._here.add

    def _seal(self) -> None:
        if self._sealing.acquire(blocking=False):
            try:
                for block in list(self._blocks):
                    block.seal()
            finally:
                self._sealing.release()

    # Entries are made without a lock: a hook may come in between, on this thread or another, and make the same one.

    def _what_of(self, code: CodeType) -> int:
        for table in (self._what_of_code, self._what_of_module):
            what = table.get(id(code))
            if what is not None:
                return what
        return self._new_code(code)

    def _new_code(self, code: CodeType) -> int:
        index = next(self._numbers)
        self._codes[index] = code  # kept, so that its id stays its own
        if may_be_module(code):
            return self._what_of_module.setdefault(id(code), index << INDEX_SHIFT | MODULE)
        what = self._what_of_code.setdefault(id(code), index << INDEX_SHIFT)
        self._leave_of_code[id(code)] = what | LEAVE
        return what

    def _new_or_module(self, code: CodeType, offset: int, depth: int) -> tuple[int, int]:
        what = self._what_of(code)
        index = self._modules.index(sys._getframe(depth)) if what & MODULE else -1
        return (what & ~MODULE, offset) if index < 0 else (what, index)

    def _what_c(self, function: Any, argument: object) -> int:
        """Return 0 for a callable that the interpreter's profile function would not report."""
        if isinstance(function, BuiltinFunctionType):
            owner = function.__self__
        elif isinstance(function, MethodDescriptorType) and argument is not _MISSING:
            owner = argument
        else:
            return 0
        key = function.__name__, owner if isinstance(owner, type) else type(owner)
        what = self._what_of_c.get(key) or self._new_c(key, function, argument)
        if isinstance(owner, ModuleType):  # lives as long as its module; a bound one may be gone the next moment
            self._what_of_function[function] = what
        return what

    def _new_c(self, key: tuple[str, object], function: Any, argument: object) -> int:
        # without the type, CPython crashes on a method that is defined with METH_METHOD
        bound = function if isinstance(function, BuiltinFunctionType) else function.__get__(argument, type(argument))
        index = next(self._c_numbers)
        self._c_names[index] = repr(bound)
        if is_own(vars(type(bound.__self__)).get("__module__")):
            self._own_c.add(index)
        return self._what_of_c.setdefault(key, index << INDEX_SHIFT | CALL_OF_C)


def _by_number(table: dict[int, _T]) -> list[_T]:
    return [table[number] for number in sorted(table)]


_MISSING: object = getattr(vars(sys).get("monitoring"), "MISSING", object())
