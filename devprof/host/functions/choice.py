"""Which core records, and why not a faster one."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

from devprof.errors import BuildError, UsageError
from devprof.host.functions.events import Core
from devprof.host.functions.native_core import NativeCore, native_library

__all__ = ["chosen_core"]

_SWITCH = "DEVPROF_FUNCTION_TRACER"


def chosen_core(max_events: int, ticks: Callable[[], int]) -> Core:
    """Return the native core where it is built or can be built now, else the one in Python, with a note that says why.

    ``DEVPROF_FUNCTION_TRACER=native`` makes it an error that there is no native core, ``python`` asks for none.

    Raises:
        UsageError: the switch holds another text.
        BuildError: the native core is asked for and cannot be had.
    """
    wanted = os.environ.get(_SWITCH, "")
    if wanted not in ("", "native", "python"):
        raise UsageError(f"{_SWITCH} is {wanted!r}; expected 'native', 'python' or nothing")
    if wanted == "python":
        return _python_core(max_events, ticks)
    try:
        if ticks is not time.perf_counter_ns:
            raise BuildError("the native tracer reads time.perf_counter_ns, and another clock was given")
        return NativeCore(native_library(), max_events)
    except BuildError as error:
        if wanted == "native":
            raise
        core = _python_core(max_events, ticks)
        if ticks is time.perf_counter_ns:
            core.notes.append(f"Function calls are recorded in Python, which takes longer: {error}")
        return core


def _python_core(max_events: int, ticks: Callable[[], int]) -> Core:
    if sys.version_info >= (3, 12):
        from devprof.host.functions.monitoring import MonitoringCore

        return MonitoringCore(max_events, ticks)
    from devprof.host.functions.setprofile import SetprofileCore

    return SetprofileCore(max_events, ticks)
