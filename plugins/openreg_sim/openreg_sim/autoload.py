"""The `torch.backends` entry point: makes the device `openreg` known at the end of `import torch`.

torch calls `arm` and turns anything that it raises into a failed ``import torch``. So it never raises, never builds, and
always leaves a reason behind: `status`.
"""

from __future__ import annotations

import os
import sys
import threading
import warnings
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import Any

__all__ = ["State", "Status", "arm", "status"]

NAME = "openreg"


class State(Enum):
    """What became of the device."""

    NOT_ASKED = "not asked"
    """`arm` has not run: torch is not imported, or its autoload is off (``TORCH_DEVICE_BACKEND_AUTOLOAD=0``)."""
    ARMED = "armed"
    OFF = "off"
    """Something speaks against it, such as a CUDA device; the reason says what."""
    NOT_BUILT = "not built"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Status:
    """What became of the device, and why.

    Attributes:
        state: one word.
        reason: one sentence; empty if armed.
    """

    state: State
    reason: str = ""


_status = Status(State.NOT_ASKED, "torch has not asked for its backends yet")
_lock = threading.Lock()


def status() -> Status:
    """Return what became of the device in this process."""
    return _status


def arm() -> None:
    """Make the device `openreg` known to torch, unless something speaks against it. Does nothing the second time."""
    global _status
    with _lock:
        if _status.state is State.ARMED:
            return
        try:
            _status = _arm()
        except Exception as error:  # noqa: BLE001  # import torch must go on, whatever is wrong here
            _status = Status(State.FAILED, f"{type(error).__name__}: {error}")
        problem = _status.reason if _status.state in (State.NOT_BUILT, State.FAILED) else ""
    if problem:
        _warn(f"the simulated device {NAME!r} is not available: {problem}")


def _arm() -> Status:
    import torch

    reason = _objection(torch)
    if reason:
        return Status(State.OFF, reason)
    from devprof.native import find
    from openreg_sim.build_spec import openreg_build

    if find(openreg_build()) is None:
        return Status(
            State.NOT_BUILT, f"its native library has not been built for this torch, run `devprof build {NAME}`"
        )
    from openreg_sim.device.install import install

    install()
    return Status(State.ARMED)


def _objection(torch: Any) -> str:
    """Say what speaks against the device, or nothing."""
    if os.environ.get("DEVPROF_DISABLE") == "1":
        return "DEVPROF_DISABLE=1 is set"
    wish = os.environ.get("DEVPROF_OPENREG")
    if wish == "0":
        return "DEVPROF_OPENREG=0 is set"
    taken = torch._C._get_privateuse1_backend_name()
    if taken != "privateuseone" or hasattr(torch, NAME):
        return f"another backend has taken torch's PrivateUse1 device and named it {taken!r}"
    accelerator = _real_accelerator(torch)
    if accelerator and wish != "1":
        return (
            f"this machine has a {accelerator} device, and {NAME} would take its place in torch.accelerator; "
            "set DEVPROF_OPENREG=1 to have it all the same"
        )
    return ""


def _real_accelerator(torch: Any) -> str:
    """Return the name of an accelerator that is really there, or nothing.

    CUDA is not initialized to find out, since a process that has done so cannot fork any more.
    """
    if torch.backends.cuda.is_built():
        nvml_count = getattr(torch.cuda, "_device_count_nvml", None)
        count = nvml_count() if nvml_count is not None and torch.version.cuda else -1
        if count > 0 or (count < 0 and _has_gpu_node()):
            return "CUDA" if torch.version.cuda else "ROCm"
    for name in ("xpu", "mps", "mtia"):
        module = getattr(torch, name, None)
        if module is not None and module.is_available():
            return name.upper()
    return ""


def _has_gpu_node() -> bool:
    return sys.platform == "linux" and any(map(os.path.exists, ("/dev/nvidiactl", "/dev/kfd")))


def _warn(message: str) -> None:
    """Warn, or do nothing where that cannot be done: import torch must go on, and `status` has the reason."""
    category: type[Warning] = RuntimeWarning
    with suppress(Exception):  # devprof may be what is missing
        from devprof.errors import DevprofWarning

        category = DevprofWarning
    with suppress(Exception):  # warnings may be errors here, and a program may have put anything behind `showwarning`
        warnings.warn(message, category, stacklevel=2)
