"""The native device's library, if this process has loaded it; the runtime itself never loads it."""

from __future__ import annotations

import ctypes
import sys

__all__ = ["native_library"]

_PROTOTYPES: dict[str, tuple[type[ctypes.c_uint64 | ctypes.c_int] | None, tuple[object, ...]]] = {
    "orTracerPush": (None, (ctypes.c_uint32, ctypes.c_uint64)),
    "orTracerPop": (None, (ctypes.c_uint32,)),
    "orTracerTop": (ctypes.c_uint64, (ctypes.c_uint32,)),
    "orTracerUnbalancedPops": (ctypes.c_uint64, ()),
    "orActivityEnableTracing_native": (None, (ctypes.c_uint32,)),
    "orEventCreate": (ctypes.c_uint64, ()),
    "orEventRecord": (None, (ctypes.c_uint64, ctypes.c_int, ctypes.c_int)),
    "orEventDestroy": (None, (ctypes.c_uint64,)),
    "orCurrentDevice": (ctypes.c_int, ()),
    "orSetDevice": (ctypes.c_int, (ctypes.c_int,)),
    "orCurrentStream": (ctypes.c_int, (ctypes.c_int,)),
}
"""Functions of the library that the runtime's side calls: result and arguments."""


def native_library() -> ctypes.CDLL | None:
    """Return the native device's library, with the prototypes of the functions used here, or None if it is not loaded."""
    device = sys.modules.get("openreg_sim.device")  # not imported here: that would import torch
    library: ctypes.CDLL | None = device.native() if device is not None else None
    if library is not None:
        for name, (result, arguments) in _PROTOTYPES.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
    return library
