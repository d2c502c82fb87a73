"""What events are called in a table, and which ones it does not list."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from devprof.analysis.columns import Bools
from devprof.store import ItemKind, Trace

__all__ = ["MEMORY", "OUT_OF_MEMORY", "STEP", "Names", "has_demangler", "names_of", "readable"]

MEMORY = "[memory]"
OUT_OF_MEMORY = "[OutOfMemory]"

STEP = "ProfilerStep#"
_ANYSTEP = "ProfilerStep*"

_UNLISTED = {
    MEMORY,
    OUT_OF_MEMORY,
    "profiler::_record_function_enter",
    "profiler::_record_function_enter_new",
    "profiler::_record_function_exit",
    "aten::is_leaf",
    "aten::output_nr",
    "aten::_version",
}
"""What torch's tables leave out: how torch's own ranges work inside, and three accessors of a tensor."""


@dataclass(frozen=True, slots=True, eq=False)
class Names:
    """Names of n events, and what is known by a trace's s text numbers.

    Attributes:
        key: (n,) int32, index into `keys` of what each event is called.
        keys: distinct names.
        listed: (s,) bool; texts that are no event's name too.
        memory: (s,) bool: allocations and frees.
        out_of_memory: (s,) bool.
    """

    key: npt.NDArray[np.int32]
    keys: tuple[str, ...]
    listed: Bools
    memory: Bools
    out_of_memory: Bools


def names_of(trace: Trace) -> Names:
    """Read the names of a trace; as torch's `_rewrite_name` and `_filter_name` (torch/autograd/profiler_util.py)."""
    strings = trace.strings
    occurs = np.zeros(len(strings), dtype=np.bool_)
    occurs[trace.name] = True
    key = np.full(len(strings), -1, dtype=np.int32)
    unlisted, memory, out_of_memory = (np.zeros(len(strings), dtype=np.bool_) for _ in range(3))
    numbers: dict[str, int] = {}
    for number in np.flatnonzero(occurs).tolist():
        text = strings[number]
        key[number] = numbers.setdefault(_ANYSTEP if text.startswith(STEP) else readable(text), len(numbers))
        unlisted[number] = text in _UNLISTED
        memory[number] = text == MEMORY
        out_of_memory[number] = text == OUT_OF_MEMORY
    key_of_event = key[trace.name]
    _drop_overloads(trace, key_of_event, numbers)
    return Names(key_of_event, tuple(numbers), ~unlisted, memory, out_of_memory)


def _drop_overloads(trace: Trace, key: npt.NDArray[np.int32], numbers: dict[str, int]) -> None:
    """Call an op without its overload where its name has it: Kineto's trace says "aten::add.Tensor", torch's tables do not."""
    column = trace.items.get("Overload name")
    if column is None or column.kind is not ItemKind.STRING:
        return
    pairs = np.stack([trace.name[column.events], column.values])
    distinct, place = np.unique(pairs, axis=1, return_inverse=True)
    short = np.empty(distinct.shape[1], dtype=np.int32)
    for index, (name, overload) in enumerate(distinct.T.tolist()):
        text = trace.strings[name].removesuffix(f".{trace.strings[overload]}")
        short[index] = numbers.setdefault(readable(text), len(numbers))
    key[column.events] = short[place.reshape(-1)]


def readable(name: str) -> str:
    """Return a C++ name as people write it; every other name as it is.

    Only what starts like a mangled function ("_Z") is looked at: a kernel may well be called "Pi", which would be "int*".
    """
    if not name.startswith("_Z"):
        return name
    demangle = _demangler()
    return name if demangle is None else demangle(name)


def has_demangler() -> bool:
    """Say whether there is a C++ library here that can read such names."""
    return _demangler() is not None


@cache
def _demangler() -> _Demangler | None:
    """Return the C++ library's own function, if there is such a library here."""
    for library in ("libstdc++.so.6", "libc++abi.so.1", "libc++abi.dylib"):
        try:
            return _Demangler(ctypes.CDLL(library))
        except (OSError, AttributeError):
            continue
    return None


class _Demangler:
    """`__cxa_demangle` of the Itanium C++ ABI."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._function = getattr(library, "__cxa_demangle")
        self._function.restype = ctypes.c_void_p
        self._free = ctypes.CDLL(None).free
        self._free.argtypes = [ctypes.c_void_p]

    def __call__(self, name: str) -> str:
        status = ctypes.c_int()
        text = self._function(name.encode("utf-8", "replace"), None, None, ctypes.byref(status))
        if not text:
            return name
        try:
            return ctypes.string_at(text).decode("utf-8", "replace")
        finally:
            self._free(text)
