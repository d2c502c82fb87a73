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

    An exception in any method is caught: one warning names the plugin and the method, the caller gets a neutral value,
    and later calls are still made.
    """

    torch_device: str
    """Name of the renamed PrivateUse1 backend that these stubs serve."""

    def record(self) -> Any:
        """Record an event on the current device and stream, and return a handle for it.

        The handle is kept alive until the profile's result is freed, and let go of soon after, on the main thread.

        Thread: the one that runs the op, with the GIL taken for the call, several threads in turn. Called: twice per op
        (enter, exit) of a legacy profile. Never: run torch ops or block. If it raises: one warning per plugin and
        process; the event counts as not recorded.
        """

    def elapsed(self, start: Any, end: Any) -> float:
        """Return the time between two recorded events in microseconds.

        Thread: the one that reads the results first, with the GIL taken for the call. Called: once per op, then. Never:
        run torch ops. It may wait for the device. If it raises: one warning per plugin and process; the time is 0.
        """

    def mark(self, name: str) -> None:
        """Mark an instant on the device's timeline.

        Thread: the caller's, with the GIL taken for the call. Called: by no profile of torch 2.13; by other native code
        that asks torch for its PrivateUse1 stubs. Never: run torch ops or block. If it raises: one warning per plugin
        and process; there is no mark.
        """

    def range_push(self, name: str) -> None:
        """Open a named range on the device's timeline.

        Thread: the caller's, with the GIL taken for the call. Called: by no profile of torch 2.13; by other native code
        that asks torch for its PrivateUse1 stubs. Never: run torch ops or block. If it raises: one warning per plugin
        and process; there is no range.
        """

    def range_pop(self) -> None:
        """Close the innermost open range; may come without a push.

        Thread: the caller's, with the GIL taken for the call. Called: by no profile of torch 2.13; by other native code
        that asks torch for its PrivateUse1 stubs. Never: run torch ops or block. If it raises: one warning per plugin
        and process; the range stays as it is.
        """

    def enabled(self) -> bool:
        """Say whether the device can be used now.

        Thread: the caller's, with the GIL taken for the call. Called: by no profile of torch 2.13; by other native code
        that asks torch for its PrivateUse1 stubs. Never: run torch ops or block. If it raises: one warning per plugin
        and process; the answer is no.
        """

    def on_each_device(self, visit: Callable[[int], None]) -> None:
        """Call `visit` with each device's index, that device being current during the call.

        Thread: the caller's, with the GIL taken for the call. Called: by no profile of torch 2.13; by other native code
        that asks torch for its PrivateUse1 stubs. Never: keep `visit`: it raises `UsageError` after the call. If it
        raises: one warning per plugin and process; the devices not visited yet are left out.
        """

    def synchronize(self) -> None:
        """Wait until the current device has finished all its work.

        Thread: the caller's, with the GIL taken for the call. Called: by no profile of torch 2.13; by other native code
        that asks torch for its PrivateUse1 stubs. Never: run torch ops. It may wait for the device. If it raises: one
        warning per plugin and process; the caller goes on.
        """
