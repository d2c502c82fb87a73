"""`Bridge`: the bridge's C ABI, typed. One object per process; nothing here decides anything.

Every function of the library may be called from any thread; none takes the GIL back or waits for Python.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import os
from collections.abc import Callable
from ctypes import c_char_p, c_int, c_int64, c_uint32, c_uint64, c_void_p
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from devprof.errors import BuildError
from devprof.native import build, load
from devprof.torch.bridge_build import BRIDGE
from devprof.torch.interrupts import called_natively
from devprof.torch.native_types import Block, DemandEvent, PopFn, PushFn

__all__ = ["Bridge", "Replayed", "bridge"]

# name -> (result, arguments)
_SIGNATURES: dict[str, tuple[object, tuple[object, ...]]] = {
    "devprof_register": (None, ()),
    "devprof_now_ns": (c_int64, ()),
    "devprof_capture_new": (c_uint64, ()),
    "devprof_capture_drop": (None, (c_uint64,)),
    "devprof_arm": (None, (c_uint64,)),
    "devprof_capture_start_ns": (c_int64, (c_uint64,)),
    "devprof_capture_append": (c_int, (c_uint64, ctypes.POINTER(Block))),
    "devprof_capture_span": (None, (c_uint64, c_char_p)),
    "devprof_capture_device": (None, (c_uint64, c_int64, c_int64, c_char_p, c_char_p)),
    "devprof_capture_resource": (None, (c_uint64, c_int64, c_int64, c_int64, c_char_p)),
    "devprof_capture_metadata": (None, (c_uint64, c_char_p, c_char_p)),
    "devprof_capture_device_properties": (None, (c_uint64, c_char_p)),
    "devprof_capture_replayed": (c_int, (c_uint64, ctypes.POINTER(c_uint64))),
    "devprof_capture_outside": (c_uint64, (c_uint64, c_void_p, c_uint64)),
    "devprof_capture_ready": (c_int, (c_uint64,)),
    "devprof_demand_serve": (None, (c_int,)),
    "devprof_demand_wait": (c_int, (c_int64, ctypes.POINTER(DemandEvent))),
    "devprof_demand_wake": (None, ()),
    "devprof_demand_without_data": (c_uint64, ()),
    "devprof_correlation_table": (c_void_p, ()),
    "devprof_correlation_push": (None, (c_uint32, c_uint64)),
    "devprof_correlation_pop": (None, (c_uint32,)),
    "devprof_correlation_current": (c_uint64, (c_uint32,)),
    "devprof_correlation_depth": (c_uint64, (c_uint32,)),
    "devprof_correlation_unbalanced": (c_uint64, ()),
    "devprof_correlation_mirror": (c_int, (c_void_p, c_void_p)),
    "devprof_correlation_clear_mirrors": (None, ()),
    "devprof_known_ops": (None, (c_void_p, c_uint64, c_void_p)),
    "devprof_user_parents": (c_uint64, (c_void_p, c_uint64)),
    "devprof_interrupt_later": (None, ()),
    "devprof_record_function": (c_int, (c_int,)),
    "devprof_report_memory": (c_int, (c_uint64, c_int64, c_uint64, c_uint64, c_int)),
    "devprof_report_out_of_memory": (c_int, (c_int64, c_uint64, c_uint64, c_int)),
    "devprof_demangles": (c_int, (c_char_p,)),
    "devprof_stubs_set": (None, (c_void_p,)),
    "devprof_stubs_register": (c_int, (c_char_p, c_uint64)),
    "devprof_stubs_of_another": (c_int, (c_char_p, c_uint64)),
    "devprof_factory_of_another": (c_int, ()),
    "devprof_stubs_freed": (c_uint64, (c_void_p, c_uint64)),
}


class Replayed(NamedTuple):
    """What became of a capture's records in Kineto.

    Attributes:
        emitted: handed to Kineto.
        unresolved: of those, the ones whose op id the trace does not hold.
        unnamed: annotation spans left out because the trace does not hold their range.
        outside: left out because they started before Kineto's own window.
        calls: host calls that are linked to an op.
        moved: host calls that stuck out of their op by less than torch's own conversion of ticks may be off, and were moved
            into it.
        strangers: host calls that are linked to an op that was not running at the call.
        spent_ns: time that this took inside Kineto's call.
    """

    emitted: int
    unresolved: int
    unnamed: int
    outside: int
    calls: int
    moved: int
    strangers: int
    spent_ns: int


class _PythonMirror:
    """Two C functions that call whatever Python functions are set; used again by later sessions."""

    def __init__(self) -> None:
        self.functions: tuple[Callable[[int, int], object], Callable[[int], object]] | None = None
        self._callbacks = PushFn(self._push), PopFn(self._pop)
        self.addresses = [ctypes.cast(callback, c_void_p).value or 0 for callback in self._callbacks]

    @called_natively
    def _push(self, kind: int, id: int) -> None:
        if (functions := self.functions) is not None:
            functions[0](kind, id)

    @called_natively
    def _pop(self, kind: int) -> None:
        if (functions := self.functions) is not None:
            functions[1](kind)


class Bridge:
    """The loaded library. Registers devprof's child profiler with Kineto when made."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.lib = library
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
        self._python_mirrors: list[_PythonMirror] = []  # never freed: native code may be about to call one
        library.devprof_register()
        atexit.register(self.shut_down)

    def shut_down(self) -> None:
        """Cut every path from native code to Python; the interpreter is about to go."""
        self.lib.devprof_demand_serve(0)
        self.lib.devprof_stubs_set(None)
        self.clear_mirrors()

    def now_ns(self) -> int:
        """Read the clock of Kineto's windows, Unix ns."""
        return int(self.lib.devprof_now_ns())

    def known_ops(self, ids: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Say which op ids the host pushed in the latest session.

        Args:
            ids: shape (n,), int64.
        """
        wanted = np.ascontiguousarray(ids, dtype=np.int64)
        known = np.zeros(len(wanted), dtype=np.bool_)
        self.lib.devprof_known_ops(wanted.ctypes.data, len(wanted), known.ctypes.data)
        return known

    def user_parents(self) -> dict[int, int]:
        """Return, for every user range of the latest session, the id of the range around it (0: none)."""
        capacity = int(self.lib.devprof_user_parents(None, 0))
        pairs = np.zeros((capacity, 2), dtype=np.uint64)
        found = min(capacity, int(self.lib.devprof_user_parents(pairs.ctypes.data, capacity)))
        return {int(user): int(parent) for user, parent in pairs[:found]}

    def replayed(self, generation: int) -> Replayed | None:
        """Return what became of the capture's records, or None where Kineto has not asked for them."""
        counts = (c_uint64 * 8)()
        return Replayed(*counts) if self.lib.devprof_capture_replayed(generation, counts) else None

    def outside(self, generation: int) -> list[int]:
        """Return, for each block of the capture, how many of its records started before Kineto's own window."""
        capacity = int(self.lib.devprof_capture_outside(generation, None, 0))
        counts = np.zeros(capacity, dtype=np.uint64)
        found = int(self.lib.devprof_capture_outside(generation, counts.ctypes.data, capacity))
        return [int(count) for count in counts[:found]]

    def demangles(self, name: str) -> bool:
        """Say whether torch's tables would show `name` as another one."""
        return bool(self.lib.devprof_demangles(name.encode()))

    def stubs_of_another(self) -> str:
        """Return the C++ type of another backend's stubs, which torch's legacy profiler uses; empty: there are none."""
        other = ctypes.create_string_buffer(256)
        found = self.lib.devprof_stubs_of_another(other, len(other))
        return other.value.decode("utf-8", "replace") if found else ""

    def has_factory_of_another(self) -> bool:
        """Say whether another backend registered a profiler with torch, which runs beside devprof's plugins."""
        return bool(self.lib.devprof_factory_of_another())

    def mirror(self, push: int, pop: int) -> bool:
        """Have two C functions called at every push and pop; False when all eight slots are taken."""
        return bool(self.lib.devprof_correlation_mirror(push, pop))

    def mirror_python(self, push: Callable[[int, int], object], pop: Callable[[int], object]) -> bool:
        """As `mirror`, with Python functions; they cost a GIL round trip per op."""
        free = next((mirror for mirror in self._python_mirrors if mirror.functions is None), None)
        if free is None:
            self._python_mirrors.append(free := _PythonMirror())
        free.functions = push, pop
        return self.mirror(*free.addresses)

    def clear_mirrors(self) -> None:
        """Have nobody called any more."""
        self.lib.devprof_correlation_clear_mirrors()
        for mirror in self._python_mirrors:
            mirror.functions = None


@functools.cache
def bridge() -> Bridge:
    """Return the process's bridge, building it first where that is allowed.

    Raises:
        BuildError: it cannot be built or loaded; one sentence says why. ``DEVPROF_BUILD=never`` forbids building.
    """
    if os.environ.get("DEVPROF_BUILD") != "never":
        _build_once()
    return Bridge(load(BRIDGE))


_FAILED: list[str] = []


def _build_once() -> None:
    """Build; what failed in this process is not tried again, since a compiler takes seconds at every profile."""
    if _FAILED:
        raise BuildError(_FAILED[0])
    try:
        build(BRIDGE)
    except BuildError as error:
        _FAILED.append(str(error))
        raise
