"""The sink's C ABI, typed: a finished result of torch's profiler as arrays, and saved as a file once more.

Every function may be called from any thread. The native side runs without the GIL and calls nothing of Python; the result that
is passed in stays alive for the length of the call, which is all that the pointers into it need.
"""

from __future__ import annotations

import ctypes
import functools
import os
from ctypes import POINTER, c_char_p, c_int, c_int32, c_int64, c_uint8, c_uint32, c_uint64, c_void_p
from typing import Any

from devprof.errors import BuildError, UsageError
from devprof.native import build, load
from devprof.torch.sink_build import SINK
from devprof.torch.sink_columns import Columns, columns_of

__all__ = ["read", "save"]

_ERROR_SIZE = 1024
_NO_TRACE = 0
_REFUSED = -1


class Items(ctypes.Structure):
    """Values of one key, by type."""

    _fields_ = (
        ("key", c_void_p),
        ("key_size", c_uint64),
        ("nulls", c_uint64),
        ("counts", c_uint64 * 5),
        ("events", POINTER(c_uint32) * 5),
        ("values", c_void_p * 5),
    )


class RowEntry(ctypes.Structure):
    """A row that an activity stands on."""

    _fields_ = (("device", c_int64), ("resource", c_int64), ("on_device", c_int64), ("torch_thread", c_int64))


class DeviceEntry(ctypes.Structure):
    """What Kineto calls a process: `libkineto::DeviceInfo`."""

    _fields_ = (("id", c_int64), ("sort", c_int64), ("name", c_char_p), ("label", c_char_p))


class ResourceEntry(ctypes.Structure):
    """What Kineto calls a thread: `libkineto::ResourceInfo`."""

    _fields_ = (("device", c_int64), ("id", c_int64), ("sort", c_int64), ("name", c_char_p))


class SpanEntry(ctypes.Structure):
    """A window in which a buffer was recorded: `libkineto::TraceSpan`."""

    _fields_ = (
        ("start_ns", c_int64),
        ("end_ns", c_int64),
        ("op_count", c_int64),
        ("iteration", c_int64),
        ("name", c_char_p),
        ("prefix", c_char_p),
    )


class FactEntry(ctypes.Structure):
    """A key and a text."""

    _fields_ = (("key", c_char_p), ("value", c_char_p))


class ColumnsView(ctypes.Structure):
    """Everything about one trace; the pointers are the reader's."""

    _fields_ = (
        ("n", c_uint64),
        ("type", POINTER(c_uint8)),
        ("flow_type", POINTER(c_uint8)),
        ("flow_start", POINTER(c_uint8)),
        ("name", POINTER(c_int32)),
        ("row", POINTER(c_int32)),
        ("linked_event", POINTER(c_int32)),
        ("start", POINTER(c_int64)),
        ("end", POINTER(c_int64)),
        ("id", POINTER(c_int64)),
        ("linked", POINTER(c_int64)),
        ("flow_id", POINTER(c_int64)),
        ("text", c_void_p),
        ("text_offsets", POINTER(c_uint64)),
        ("n_texts", c_uint64),
        ("items", POINTER(Items)),
        ("counters", POINTER(Items)),
        ("n_items", c_uint64),
        ("n_counters", c_uint64),
        ("rows", POINTER(RowEntry)),
        ("n_rows", c_uint64),
        ("devices", POINTER(DeviceEntry)),
        ("n_devices", c_uint64),
        ("resources", POINTER(ResourceEntry)),
        ("n_resources", c_uint64),
        ("spans", POINTER(SpanEntry)),
        ("n_spans", c_uint64),
        ("facts", POINTER(FactEntry)),
        ("lines", POINTER(FactEntry)),
        ("n_facts", c_uint64),
        ("n_lines", c_uint64),
        ("device_properties", c_char_p),
        ("window_start_ns", c_int64),
        ("window_end_ns", c_int64),
    )


_SIGNATURES: dict[str, tuple[object, tuple[object, ...]]] = {
    "devprof_sink_type": (c_void_p, ()),
    "devprof_sink_type_name": (c_void_p, ()),
    "devprof_sink_type_info_name": (c_void_p, ()),
    "devprof_sink_platform": (c_char_p, ()),
    "devprof_sink_read": (c_int, (c_void_p, POINTER(c_void_p), POINTER(POINTER(ColumnsView)), c_char_p, c_uint64)),
    "devprof_sink_free": (None, (c_void_p,)),
    "devprof_sink_save": (c_int, (c_void_p, c_char_p, c_char_p, c_uint64)),
}


# names go as addresses of the library's own text: a capsule keeps no copy of its name
_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, c_void_p, c_void_p, c_void_p)(("PyCapsule_New", ctypes.pythonapi))
_capsule_pointer = ctypes.PYFUNCTYPE(c_void_p, ctypes.py_object, c_void_p)(("PyCapsule_GetPointer", ctypes.pythonapi))

_FAILED: list[str] = []
"""Why it could not be built: a compiler takes seconds, so what failed in this process is not tried again."""


@functools.cache
def _library() -> ctypes.CDLL:
    """Return the process's sink, building it first where that is allowed.

    Raises:
        BuildError: it cannot be built or loaded; one sentence says why.
    """
    if _FAILED:
        raise BuildError(_FAILED[0])
    try:
        if os.environ.get("DEVPROF_BUILD") != "never":
            build(SINK)
        library = load(SINK)
    except BuildError as error:
        if os.environ.get("DEVPROF_BUILD") != "never":
            _FAILED.append(str(error))
        raise
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    ctypes.PYFUNCTYPE(None)(("devprof_sink_register", library))()  # with the GIL, as torch's own saves run
    return library


def read(result: Any) -> Columns:
    """Return the whole trace of a result as columns of their own; nothing of them points into the result.

    Args:
        result: a `torch._C._autograd._ProfilerResult`.

    Raises:
        BuildError: the native part cannot be built or loaded here.
        UsageError: the result holds no trace.
    """
    library, pointer = _library(), _pointer(result)
    reader, view = c_void_p(), POINTER(ColumnsView)()
    error = ctypes.create_string_buffer(_ERROR_SIZE)
    done = library.devprof_sink_read(pointer, ctypes.byref(reader), ctypes.byref(view), error, _ERROR_SIZE)
    _check(done, error)
    try:
        return columns_of(view.contents)
    finally:
        library.devprof_sink_free(reader)


def save(result: Any, path: str) -> None:
    """Have Kineto write its file, whether or not it has done so before.

    Args:
        result: a `torch._C._autograd._ProfilerResult`.
        path: as torch's own `save` takes it.

    Raises:
        BuildError, UsageError: as `read`.
    """
    library, pointer = _library(), _pointer(result)
    error = ctypes.create_string_buffer(_ERROR_SIZE)
    _check(library.devprof_sink_save(pointer, os.fsencode(path), error, _ERROR_SIZE), error)


def _check(done: int, error: Any) -> None:
    if done == _NO_TRACE:
        raise UsageError(
            "this profile holds no trace: another profile ended it inside torch, or it was stopped on another thread than it "
            "was started on. Record it again, one profile at a time"
        )
    if done == _REFUSED:
        raise UsageError(f"Kineto could not give out this profile's trace: {error.value.decode(errors='replace')}")


def _pointer(result: Any) -> int:
    """Return the address of the C++ object behind a result, by pybind11's conduit: it checks the type and the ABI itself."""
    library = _library()
    asked = _new_capsule(library.devprof_sink_type(), library.devprof_sink_type_info_name(), None)
    conduit = getattr(result, "_pybind11_conduit_v1_", lambda *asked: None)
    given = conduit(library.devprof_sink_platform(), asked, b"raw_pointer_ephemeral")
    if given is None:
        raise BuildError(
            "this torch was built with another compiler or C++ library than the sink, so the sink cannot read its results; "
            "set CXX to the compiler that built torch and remove the cached library"
        )
    return int(_capsule_pointer(given, library.devprof_sink_type_name()))
