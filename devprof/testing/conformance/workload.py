"""`Workload`: how a plugin's author makes the device do work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

__all__ = ["Device", "Workload"]


class Workload(Protocol):
    """What the kit asks of a device. `launch` and `synchronize` are required, the rest is used where it is there.

    Any object will do; nothing has to be inherited. Optional members, by name:

    * ``copy(n_bytes)`` and ``set(n_bytes)``: one copy, one set of device memory.
    * ``graph(name, n)``: one launch that makes the device run n kernels.
    * ``allocate(n_bytes)``, which returns a handle, and ``free(handle)``: device memory.
    * ``devices`` and ``streams``: how many may be used; `launch` then takes ``device=`` and ``stream=``, both from 0.
    * ``exact_names = True``: a kernel is called as `launch` was told.
    * ``serial_streams = False``: work on one stream may overlap.
    * ``device_calls()``: how many calls the device or its driver has had so far, in this process.
    * ``lose(n)``: let the device lose the records of the next n kernels, as it does when it is overrun.
    * ``fail()``: let the device's next call fail; the kit then launches and synchronizes, and takes what is raised.
    * ``begin_check(number, host)``: is told which check begins, such as ``"C301"`` under ``"python"``; a text
      that it returns says what it lacks for that check, which is then skipped.
    * ``on_torch()``: the workload for torch sessions, where kernels come from torch ops.
    """

    def launch(self, name: str, n: int) -> None:
        """Launch `n` kernels from the calling thread, called `name` where the device lets you choose."""

    def synchronize(self) -> None:
        """Wait until all devices have done all their work."""


class Device:
    """The kit's side of a workload: what it can do, and what it lacks."""

    def __init__(self, workload: object) -> None:
        """Take a workload, or None."""
        self._workload = workload

    def __bool__(self) -> bool:
        return self._workload is not None

    def has(self, method: str) -> bool:
        """Say whether the workload has an optional method."""
        return callable(getattr(self._workload, method, None))

    def fact(self, name: str, default: Any) -> Any:
        """Return an optional attribute."""
        return getattr(self._workload, name, default)

    def call(self, method: str, *args: Any) -> Any:
        """Call an optional method."""
        function: Callable[..., Any] = getattr(self._workload, method)
        return function(*args)

    def launch(self, n: int = 1, name: str = "conformance", *, device: int = 0, stream: int = 0) -> None:
        """Launch kernels; only a place other than the first is named."""
        place = {key: value for key, value in (("device", device), ("stream", stream)) if value}
        launch: Callable[..., None] = self._workload.launch  # type: ignore[attr-defined]
        launch(name, n, **place)

    def synchronize(self) -> None:
        """Wait for the device."""
        self.call("synchronize")

    def for_host(self, host: str) -> Device:
        """Return the device as it is used under a host."""
        return Device(self.call("on_torch")) if host == "torch" and self.has("on_torch") else self
