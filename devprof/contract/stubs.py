"""`ProfilerStubs`: device time per op for torch's legacy profiler.

Source: torch/csrc/profiler/stubs/base.h. Used by ``torch.autograd.profiler.profile(use_device=NAME)`` with its default
``use_kineto=False``; torch.profiler.profile never calls it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

__all__ = ["ProfilerStubs"]


class ProfilerStubs(Protocol):
    """Event recording on a device, for torch's legacy profiler.

    An exception in any method is caught: the event counts as not recorded, one warning names the plugin and the method.
    """

    torch_device: str
    """Name of the renamed PrivateUse1 backend that these stubs serve."""

    def record(self) -> Any:
        """Record an event on the current device and stream, and return a handle for it.

        Called twice per op (enter, exit), on the thread that runs the op, with the GIL taken for the call. Must not run torch
        ops. The handle is kept alive until the profile's result is freed.
        """

    def elapsed(self, start: Any, end: Any) -> float:
        """Return the time between two recorded events in microseconds.

        Called once per op when results are first read, on the reading thread. May wait for the device.
        """

    def mark(self, name: str) -> None:
        """Mark an instant on the device's timeline. torch 2.13 does not call it; other tools of torch do."""

    def range_push(self, name: str) -> None:
        """Open a named range on the device's timeline. As `mark`."""

    def range_pop(self) -> None:
        """Close the innermost open range. As `mark`."""

    def enabled(self) -> bool:
        """Say whether the device can be used now."""

    def on_each_device(self, visit: Callable[[int], None]) -> None:
        """Call `visit` with each device's index, that device being current during the call."""

    def synchronize(self) -> None:
        """Wait until the current device has finished all its work."""
