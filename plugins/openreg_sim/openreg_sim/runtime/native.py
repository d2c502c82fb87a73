"""The native device's library, if this process has loaded it; the runtime itself never loads it."""

from __future__ import annotations

import ctypes
import sys

__all__ = ["native_library"]


def native_library() -> ctypes.CDLL | None:
    """Return the native device's library, with the prototypes of its functions set, or None while it is not installed."""
    device = sys.modules.get("openreg_sim.device")  # not imported here: that would import torch
    library: ctypes.CDLL | None = device.native() if device is not None else None
    return library
