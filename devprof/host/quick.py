"""`record_function` with its short way compiled, where that has been built; the rare ways stay in Python.

The compiled methods work on the same objects as those in Python, so the two are exchanged without a trace, at any time.
"""

from __future__ import annotations

import ctypes
import os
import time
from typing import Any

from devprof.errors import BuildError, UsageError
from devprof.host.gate import BLOCK_SIZE, CURRENT, GATE
from devprof.host.leaving import leave
from devprof.host.queues import Block, Queue
from devprof.host.ranges import record_function

__all__ = ["is_quick", "quicken", "slow_down", "with_choice"]

SWITCH = "DEVPROF_RANGES"
"""Environment variable: ``python`` or ``native``; by default native where it is built."""

_in_python = (record_function.__enter__, record_function.__exit__)
_library: ctypes.PyDLL | None = None
_is_quick = False
_is_chosen = False


def is_quick() -> bool:
    """Say whether the compiled methods are in use."""
    return _is_quick


def with_choice() -> None:
    """Use the compiled methods if they are built and wanted. Decided once per process, under the gate's lock.

    Raises:
        UsageError: the switch holds another text.
        BuildError: the switch asks for them, and they are not built.
    """
    global _is_chosen
    if _is_chosen:
        return
    wanted = os.environ.get(SWITCH, "")
    if wanted not in ("", "python", "native"):
        raise UsageError(f"{SWITCH} is {wanted!r}, expected 'python' or 'native'")
    if wanted != "python":
        try:
            quicken()
        except BuildError:
            if wanted == "native":
                raise
    _is_chosen = True


def quicken() -> None:
    """Use the compiled methods.

    Raises:
        BuildError: they are not built, or cannot be loaded.
    """
    global _library, _is_quick
    if _library is None:
        from devprof.host.build_spec import RANGES
        from devprof.native import load

        library = ctypes.PyDLL(load(RANGES)._name)  # these calls keep the GIL
        library.devprof_ranges_methods.restype = ctypes.py_object
        library.devprof_ranges_methods.argtypes = [ctypes.py_object]
        _library = library
    parts = (record_function, GATE, Block, Queue, CURRENT, time.perf_counter_ns, leave, BLOCK_SIZE)
    _use(*_library.devprof_ranges_methods(parts))
    _library.devprof_ranges_construct(1)
    _is_quick = True


def slow_down() -> None:
    """Use the methods in Python again."""
    global _is_quick
    if _library is not None:
        _library.devprof_ranges_construct(0)
    _use(*_in_python)
    _is_quick = False


def _use(enter: Any, leave_range: Any) -> None:
    record_function.__enter__ = enter  # type: ignore[method-assign]
    record_function.__exit__ = leave_range  # type: ignore[method-assign]
