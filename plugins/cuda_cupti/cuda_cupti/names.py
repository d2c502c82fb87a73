"""Names of kernels as people write them.

By the C++ runtime's own demangler, ``abi::__cxa_demangle``: the function that Kineto calls too, in a library that every process
with a C++ extension has. Where there is none, a name stays as it is.

Source: libkineto/src/Demangle.cpp.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache, lru_cache

__all__ = ["LONGEST", "demangled"]

LONGEST = 8192
"""Longer names stay as they are, in Kineto too."""

_LIBRARIES = ("libstdc++.so.6", "libc++abi.so.1")
_Demangle = Callable[[bytes], str | None]


@lru_cache(maxsize=1 << 14)
def demangled(name: str) -> str:
    """Return ``void axpy<float>(float*, float, int)`` for ``_Z4axpyIfEvPT_S0_i``; what is no mangled name comes back as it is.

    Any thread.
    """
    if not name.startswith("_Z") or len(name) > LONGEST or not name.isascii():
        return name
    demangle = _demangler()
    return (demangle(name.encode()) if demangle else None) or name


@cache
def _demangler() -> _Demangle | None:
    for library in _LIBRARIES:
        try:
            function = ctypes.CDLL(library).__getattr__("__cxa_demangle")
        except (OSError, AttributeError):
            continue
        return _wrapped(function)
    return None


def _wrapped(function: ctypes._NamedFuncPointer) -> _Demangle:
    free = ctypes.CDLL(None).free
    free.argtypes, free.restype = (ctypes.c_void_p,), None
    function.argtypes = (ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int))
    function.restype = ctypes.c_void_p

    def demangle(name: bytes) -> str | None:
        status = ctypes.c_int()
        text = function(name, None, None, ctypes.byref(status))
        if not text:
            return None
        try:
            return ctypes.string_at(text).decode("utf-8", "replace")
        finally:
            free(text)

    return demangle
