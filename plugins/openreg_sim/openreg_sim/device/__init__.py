"""The torch device `openreg`: the native library's Python side, and the module `torch.openreg`.

Job: make the device known to torch, hand its calls to the runtime, answer its questions, and leave cleanly.
In: the built native library, the process's runtime (`openreg_sim.runtime.runtime`).
Out: `torch.device("openreg")`, `torch.openreg`, ring records for `Runtime.replay`.
Never: registers a profiler or profiler stubs; computes a time; builds.
"""

from __future__ import annotations

import ctypes

from openreg_sim.device import installed

__all__ = ["native"]


def native() -> ctypes.CDLL | None:
    """Return the native library, or None while the device is not installed in this process."""
    link = installed.link_or_none()
    return link.library if link is not None else None
