"""The functions of libcupti that devprof calls, as ctypes sees them.

Every call drops the GIL: a call may wait for a lock that CUPTI holds on another thread while it calls back into Python there.

Source: ``cupti_activity.h``, ``cupti_callbacks.h``, ``cupti_result.h`` and ``cupti_version.h`` of the nvidia-cuda-cupti wheels.
"""

from __future__ import annotations

import ctypes as c
from collections.abc import Callable, Mapping
from typing import Any

from cuda_cupti.errors import CuptiError

__all__ = ["PROTOTYPES", "BufferCompleted", "BufferRequested", "Cupti", "functions_of"]

_Result = c.c_int

BufferRequested = c.CFUNCTYPE(None, c.POINTER(c.c_void_p), c.POINTER(c.c_size_t), c.POINTER(c.c_size_t))
"""``(buffer, size in bytes, most records)``, to be filled; a buffer of NULL declines."""

BufferCompleted = c.CFUNCTYPE(None, c.c_void_p, c.c_uint32, c.c_void_p, c.c_size_t, c.c_size_t)
"""``(context, stream, buffer, size in bytes, valid bytes)``; context and stream are unused since CUDA 6."""

_u8, _u32, _u64, _size, _text = c.c_uint8, c.c_uint32, c.c_uint64, c.c_size_t, c.c_char_p

_prototype: Callable[..., Any] = c.CFUNCTYPE

PROTOTYPES: Mapping[str, Any] = {
    name: _prototype(_Result, *arguments)
    for name, arguments in {
        "cuptiGetVersion": (c.POINTER(_u32),),
        "cuptiGetTimestamp": (c.POINTER(_u64),),
        "cuptiGetResultString": (_Result, c.POINTER(_text)),
        "cuptiGetContextId": (c.c_void_p, c.POINTER(_u32)),
        "cuptiSetThreadIdType": (c.c_int,),
        "cuptiGetThreadIdType": (c.POINTER(c.c_int),),
        "cuptiSubscribe": (c.POINTER(c.c_void_p), c.c_void_p, c.c_void_p),
        "cuptiUnsubscribe": (c.c_void_p,),
        "cuptiActivityRegisterCallbacks": (BufferRequested, BufferCompleted),
        "cuptiActivityEnable": (c.c_int,),
        "cuptiActivityDisable": (c.c_int,),
        "cuptiActivityEnableRuntimeApi": (_u32, _u8),
        "cuptiActivityEnableDriverApi": (_u32, _u8),
        "cuptiActivityEnableAllSyncRecords": (_u8,),
        "cuptiActivityEnableCudaEventDeviceTimestamps": (_u8,),
        "cuptiActivityFlushAll": (_u32,),
        "cuptiActivityGetNextRecord": (c.c_void_p, _size, c.POINTER(c.c_void_p)),
        "cuptiActivityGetNumDroppedRecords": (c.c_void_p, _u32, c.POINTER(_size)),
        "cuptiActivityGetAttribute": (c.c_int, c.POINTER(_size), c.c_void_p),
        "cuptiActivitySetAttribute": (c.c_int, c.POINTER(_size), c.c_void_p),
        "cuptiActivityPushExternalCorrelationId": (c.c_int, _u64),
        "cuptiActivityPopExternalCorrelationId": (c.c_int, c.POINTER(_u64)),
    }.items()
}
"""Prototypes by name."""

_ABSENT = 11  # CUPTI_ERROR_API_NOT_IMPLEMENTED: what a library says of a function that it only declares
_Function = Callable[..., int]


def functions_of(library: c.CDLL) -> dict[str, _Function]:
    """Return a loaded libcupti's functions, without those that its release lacks. Calls none of them."""
    return {
        name: prototype((name, library))
        for name, prototype in PROTOTYPES.items()
        if getattr(library, name, None) is not None
    }


class Cupti:
    """One loaded libcupti. Its methods may be called on any thread; CUPTI asks for one caller at a time to enable and disable.

    Attributes:
        path: the file it was loaded from.
        version: what ``cuptiGetVersion`` says: 130001 for 13.0.85, 26 for 12.8.
    """

    def __init__(self, functions: Mapping[str, _Function], path: str = "") -> None:
        """Take a library's functions, and ask its version.

        Raises:
            CuptiError: the library does not answer.
        """
        self._functions = dict(functions)
        self.path = path
        self.version = 0
        found = _u32()
        self.call("cuptiGetVersion", c.byref(found))
        self.version = found.value

    def attempt(self, function: str, *arguments: Any) -> int:
        """Call a function and return its result, 0 for success."""
        return self._functions[function](*arguments) if function in self._functions else _ABSENT

    def call(self, function: str, *arguments: Any) -> None:
        """Call a function.

        Raises:
            CuptiError: it failed.
        """
        if code := self.attempt(function, *arguments):
            raise CuptiError(code, function, self.describe(code))

    def describe(self, code: int) -> str:
        """Return CUPTI's own name of a result."""
        text = _text()
        known = code != _ABSENT and self.attempt("cuptiGetResultString", code, c.byref(text)) == 0
        return (text.value or b"").decode("utf-8", "replace") if known else ""

    def timestamp_ns(self) -> int:
        """Read the clock that CUPTI stamps records with; Unix ns on Linux.

        Raises:
            CuptiError: it cannot be read.
        """
        found = _u64()
        self.call("cuptiGetTimestamp", c.byref(found))
        return found.value

    def thread_id_type(self) -> int:
        """Return how threads are numbered now: 0 by pthread, 1 by the system's ids."""
        found = c.c_int()
        self.call("cuptiGetThreadIdType", c.byref(found))
        return found.value

    def byte_attribute(self, attribute: int) -> int | None:
        """Return an activity attribute of one byte, None where the library has none of that number."""
        size, value = _size(1), _u8()
        code = self.attempt("cuptiActivityGetAttribute", attribute, c.byref(size), c.cast(c.byref(value), c.c_void_p))
        return None if code else value.value

    def set_byte_attribute(self, attribute: int, value: int) -> bool:
        """Set an activity attribute of one byte; False where the library refuses."""
        size, held = _size(1), _u8(value)
        return (
            self.attempt("cuptiActivitySetAttribute", attribute, c.byref(size), c.cast(c.byref(held), c.c_void_p)) == 0
        )

    def dropped_records(self) -> int | None:
        """Return how many records CUPTI had no room for since it was last asked; None where it cannot say."""
        found = _size()
        code = self.attempt("cuptiActivityGetNumDroppedRecords", None, 0, c.byref(found))
        return None if code else found.value

    def context_id(self, context: int) -> int | None:
        """Return the number that records give a ``CUcontext``; None where CUPTI does not know it."""
        found = _u32()
        return None if self.attempt("cuptiGetContextId", context, c.byref(found)) else found.value

    def stride(self, kind: int) -> int:
        """Return how long the library takes a record of a kind to be, in bytes; 0 where it has no such kind.

        Asks the library to step through memory in which every word is the kind: the distance between two steps is the length.
        """
        words = (_u32 * (_PROBE_BYTES // 4))(*([kind] * (_PROBE_BYTES // 4)))
        at = c.c_void_p()
        places = []
        for _ in range(2):
            if (
                self.attempt("cuptiActivityGetNextRecord", c.addressof(words), _PROBE_BYTES, c.byref(at))
                or not at.value
            ):
                return 0
            places.append(at.value)
        return places[1] - places[0]


_PROBE_BYTES = 4096
