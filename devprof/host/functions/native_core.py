"""`NativeCore`: the core in C++, on every thread. Python is asked only about new threads and about modules."""

from __future__ import annotations

import ctypes
import functools
import os
import sysconfig
import threading
import time
from collections.abc import Callable
from ctypes import c_char_p, c_int64, c_uint64, c_void_p, py_object

import numpy as np

from devprof.errors import BuildError
from devprof.host.functions.build_spec import FUNCTIONS
from devprof.host.functions.events import EVENT, Captured, ThreadEvents
from devprof.host.functions.modules import Modules
from devprof.host.functions.monitoring import ENTERS, LEAVES, MONITORING, Tool
from devprof.host.functions.threads import HOOK_FILES, ThreadNames
from devprof.native import build, load

__all__ = ["NativeCore", "native_library"]

# name -> (result, arguments)
_SIGNATURES: dict[str, tuple[object, tuple[object, ...]]] = {
    "devprof_functions_now": (c_int64, ()),
    "devprof_functions_start": (c_int64, (c_int64, *[py_object] * 5, c_int64)),
    "devprof_functions_stop": (c_int64, ()),
    "devprof_functions_drop": (None, ()),
    "devprof_functions_callback": (py_object, (c_char_p,)),
    "devprof_functions_beyond": (c_int64, ()),
    "devprof_functions_lost": (c_int64, ()),
    "devprof_functions_threads": (c_uint64, ()),
    "devprof_functions_native_id": (c_uint64, (c_uint64,)),
    "devprof_functions_events": (c_uint64, (c_uint64,)),
    "devprof_functions_copy": (None, (c_uint64, c_void_p)),
    "devprof_functions_codes": (py_object, ()),
    "devprof_functions_names": (py_object, ()),
    "devprof_functions_own": (py_object, ()),
}


@functools.cache
def _build_failure() -> str:
    """Build the library, and return why it cannot be; a compiler that failed is not asked again at every session."""
    try:
        build(FUNCTIONS)
    except BuildError as error:
        return str(error)
    return ""


@functools.cache
def native_library() -> ctypes.PyDLL:
    """Return the library, built on first use unless ``DEVPROF_BUILD=never``.

    Raises:
        BuildError: it cannot be built or loaded, or its clock is not that of `time.perf_counter_ns`; one sentence says why.
    """
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise BuildError("the native tracer relies on the GIL, and this Python has none")
    if os.environ.get("DEVPROF_BUILD") != "never" and _build_failure():
        raise BuildError(_build_failure())
    loaded = load(FUNCTIONS)
    library = ctypes.PyDLL(loaded._name, handle=loaded._handle)
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    before, native, after = time.perf_counter_ns(), library.devprof_functions_now(), time.perf_counter_ns()
    if not before <= native <= after:
        raise BuildError(
            f"time.perf_counter_ns does not read CLOCK_MONOTONIC here: {native} is not in {before}..{after}"
        )
    return library


class NativeCore:
    """Records in C++: the profile function of every thread on 3.11, `sys.monitoring` on 3.12; implements `Core`."""

    name = "native"

    def __init__(self, library: ctypes.PyDLL, max_events: int) -> None:
        self._library = library
        self._max_events = max_events
        self._modules = Modules()
        self._tool = Tool()
        self.notes = self._tool.notes
        self._names = ThreadNames()  # by index of the thread
        self._names_at_start: dict[int, str] = {}  # by native id
        self._began = False

    def start(self, start_ticks: int) -> None:
        """Switch the hooks on, and take the frames that are open on every thread."""
        switch_on: Callable[[], None] | None = None
        if MONITORING is not None:
            events = (*ENTERS, *LEAVES, "CALL", "C_RETURN", "C_RAISE")
            callback = self._library.devprof_functions_callback
            switch_on = self._tool.claim({event: callback(event.encode()) for event in events})
            if switch_on is None:
                return
        active = list(threading._active.values())  # type: ignore[attr-defined]  # `enumerate` takes a lock
        self._names_at_start = {thread.native_id: thread.name for thread in active}
        self._switch_on(switch_on, start_ticks)

    def stop(self) -> Captured:
        """Take the hooks out, and return what was recorded."""
        if not self._began:
            return Captured((), (), (), ())
        self._unhook()
        library = self._library
        if lost := library.devprof_functions_lost():
            self.notes.append(f"There was no memory for {lost} events of function calls.")
        captured = Captured(
            [self._thread(index) for index in range(library.devprof_functions_threads())],
            library.devprof_functions_codes(),
            library.devprof_functions_names(),
            self._modules.seen,
            frozenset(library.devprof_functions_own()),
            library.devprof_functions_beyond(),
        )
        library.devprof_functions_drop()
        return captured

    def forget(self) -> None:
        """Take the hooks out, and drop what was recorded."""
        if self._began:
            self._began = False  # a stop that comes later, as when the program ends, finds nothing
            self._unhook()
            self._library.devprof_functions_drop()

    def _switch_on(self, switch_on: Callable[[], None] | None, start_ticks: int) -> None:
        missing = getattr(MONITORING, "MISSING", None)
        others = self._library.devprof_functions_start(
            self._max_events, self._modules.index, self._names.seen, HOOK_FILES, missing, switch_on, start_ticks
        )
        self._began = True
        if others:
            self.notes.append(
                f"Another profiler holds the profile function of {others} thread(s); their function calls are not recorded."
            )

    def _unhook(self) -> None:
        self._tool.release()
        if replaced := self._library.devprof_functions_stop():
            self.notes.append(
                f"Another profiler replaced the profile function of {replaced} thread(s); calls after that are not recorded."
            )

    def _thread(self, index: int) -> ThreadEvents:
        events = np.empty(self._library.devprof_functions_events(index), EVENT)
        self._library.devprof_functions_copy(index, events.ctypes.data)
        native_id = self._library.devprof_functions_native_id(index)
        name = self._names.name_of.get(index)
        return ThreadEvents(native_id, self._names_at_start.get(native_id, "") if name is None else name, events)
