"""C++ names as people write them, where the C++ library of this system can tell.

Source: `__cxa_demangle` of the Itanium C++ ABI, as torch uses it for nvprof's kernel names.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterable
from functools import cache

__all__ = ["demangled"]

_MANGLED = re.compile(r"_Z[A-Za-z0-9_.$]{1,2000}")
"""Names that the library is shown; longer ones, or with other letters, come from no compiler."""


def demangled(names: Iterable[str]) -> dict[str, str]:
    """Return the readable form of those names that have one."""
    mangled = [name for name in names if _MANGLED.fullmatch(name)]
    demangle = _demangler() if mangled else None
    if demangle is None:
        return {}
    readable = ((name, demangle(name)) for name in mangled)
    return {name: text for name, text in readable if text}


@cache
def _demangler() -> Callable[[str], str | None] | None:
    for library in ("libstdc++.so.6", "libc++abi.so.1", "libc++abi.dylib"):
        try:
            loaded = ctypes.CDLL(library)
            function, free = loaded.__cxa_demangle, ctypes.CDLL(None).free
        except (OSError, AttributeError):
            continue
        function.restype = ctypes.c_void_p
        function.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int)]
        free.argtypes = [ctypes.c_void_p]
        return lambda name: _called(function, free, name)
    return None


def _called(function: Callable[..., int | None], free: Callable[[int], None], name: str) -> str | None:
    status = ctypes.c_int(-1)
    address = function(name.encode(), None, None, ctypes.byref(status))
    if not address:
        return None
    try:
        return ctypes.string_at(address).decode("utf-8", "replace") if status.value == 0 else None
    finally:
        free(address)
