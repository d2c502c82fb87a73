"""Which objects are modules, and what their calls are called: ``nn.Module: Linear_0``.

Source: torch/csrc/autograd/profiler_python.cpp numbers the instances of a class in the order in which they are first
called. No framework is imported here: a class is a module where it has a method `forward` or descends from a class that
is called `Module` or `Layer`.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterator
from types import CodeType, FrameType

__all__ = ["MODULE_CALLS", "Modules", "is_own", "may_be_module"]

MODULE_CALLS = frozenset({"__call__", "_wrapped_call_impl"})
"""Names of functions that may be the call of a module: Python's, and the one that torch has behind it."""

_BASES = frozenset({"Module", "Layer"})


def may_be_module(code: CodeType) -> bool:
    """Say whether calls of this code are worth asking `Modules.index` about."""
    return code.co_name in MODULE_CALLS and code.co_argcount > 0


def is_own(module: object) -> bool:
    """Say whether the name of a class's module is devprof's."""
    return isinstance(module, str) and (module == "devprof" or module.startswith("devprof."))


class Modules:
    """The modules seen so far. Called by hooks, on any thread, while the interpreter does not trace that thread."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, int]] = []
        self._lock = threading.Lock()
        self._index_of: dict[int, tuple[int, Callable[[], object]]] = {}
        self._numbers: defaultdict[type, Iterator[int]] = defaultdict(itertools.count)

    def index(self, frame: FrameType) -> int:
        """Return the index of the module whose call `frame` is, or -1 where its first argument is no module."""
        module = frame.f_locals.get(frame.f_code.co_varnames[0])
        known = self._index_of.get(id(module))
        if known is not None and known[1]() is module:
            return known[0]
        return self._first_seen(module) if _is_module(type(module)) else -1

    def _first_seen(self, module: object) -> int:
        with self._lock:
            index = len(self.seen)
            self.seen.append((type(module).__name__, next(self._numbers[type(module)])))
            self._index_of[id(module)] = index, _reference(module)
        return index


def _is_module(cls: type) -> bool:
    return any("forward" in vars(base) or base.__name__ in _BASES for base in cls.__mro__)


def _reference(module: object) -> Callable[[], object]:
    try:
        return weakref.ref(module)
    except TypeError:  # a class with slots and no __weakref__; kept until the end, so that its id stays its own
        return lambda: module
