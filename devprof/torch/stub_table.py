"""A plugin's `ProfilerStubs`, behind torch's legacy profiler.

torch calls `record` on op threads, mostly without the GIL; ctypes takes it for each call. Whatever a stub raises stays here:
the event counts as not recorded, and one warning names plugin and method.
"""

from __future__ import annotations

import ctypes
import itertools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from devprof.capture import tell
from devprof.errors import PluginWarning, UsageError
from devprof.registry import STUBS_RETURNS, Guard, RegisteredStubs
from devprof.torch.bridge import Bridge
from devprof.torch.interrupts import called_natively
from devprof.torch.native_types import StubTable

__all__ = ["StubForwarder", "install_stubs"]

_AT_ONCE = 1024

# of all stubs together: native code keeps one list of freed handles, so a handle must be unique in the process
_EVENTS: dict[int, Any] = {}
_HANDLES = itertools.count(1)


def _device_of(event: object) -> int:
    """Return the number of an event's device: its `device`, which is a number or, as that of a `torch.Event`, has an index."""
    device = getattr(event, "device", 0)
    try:
        return operator.index(getattr(device, "index", device))
    except TypeError:  # it means something else by the word
        return 0


class StubForwarder:
    """Turns torch's calls into calls of one plugin's stubs, and keeps the events that results refer to."""

    def __init__(self, bridge: Bridge, registered: RegisteredStubs) -> None:
        self._lib = bridge.lib
        self._stubs: Any = registered.stubs
        self._guard = Guard(registered.name, consequence="Its events count as not recorded; the profile goes on.")
        self._registered = registered
        self.table = StubTable(**{name: _callback(name, getattr(self, name)) for name, _ in StubTable._fields_})

    def serves(self, registered: RegisteredStubs) -> bool:
        """Say whether this forwarder is the one of these stubs."""
        return self._registered == registered

    @called_natively
    def record(self, device: Any) -> int:
        """Record an event; returns its handle, 0 where the plugin failed."""
        event = self._call("record", self._stubs.record)
        if event is None:
            return 0
        device[0] = _device_of(event)
        handle = next(_HANDLES)
        _EVENTS[handle] = event
        return handle

    @called_natively
    def elapsed_us(self, start: int, end: int) -> float:
        """Return the time between two events, microseconds; 0 where the plugin failed."""
        first, second = _EVENTS.get(start), _EVENTS.get(end)
        return float(self._call("elapsed", self._stubs.elapsed, first, second) or 0.0)

    @called_natively
    def mark(self, name: bytes) -> None:
        """Forward a mark."""
        self._call("mark", self._stubs.mark, name.decode("utf-8", "replace"))

    @called_natively
    def range_push(self, name: bytes) -> None:
        """Forward the start of a range."""
        self._call("range_push", self._stubs.range_push, name.decode("utf-8", "replace"))

    @called_natively
    def range_pop(self) -> None:
        """Forward the end of a range."""
        self._call("range_pop", self._stubs.range_pop)

    @called_natively
    def enabled(self) -> int:
        """Say whether the plugin's device can be used."""
        return int(bool(self._call("enabled", self._stubs.enabled)))

    @called_natively
    def on_each_device(self, visit: Callable[[Any, int], None], context: Any) -> None:
        """Have the plugin call torch's function once per device."""
        open_visits = [visit]

        def forward(device: int) -> None:
            if not open_visits:
                raise UsageError("on_each_device is over; torch's function may be called only during it")
            visit(context, device)

        try:
            self._call("on_each_device", self._stubs.on_each_device, forward)
        finally:
            open_visits.clear()

    @called_natively
    def synchronize(self) -> None:
        """Wait for the plugin's current device."""
        self._call("synchronize", self._stubs.synchronize)

    @called_natively
    def collect(self) -> None:
        """Let go of the events whose results were freed.

        Results are freed on any thread, also without the GIL; so native code keeps the list, and calls this on the main thread
        soon after. A plugin's events may do anything when they are freed, such as free another result.
        """
        freed = np.zeros(_AT_ONCE, dtype=np.uint64)
        try:
            while count := int(self._lib.devprof_stubs_freed(freed.ctypes.data, len(freed))):
                for handle in freed[:count].tolist():
                    _EVENTS.pop(handle, None)
        except KeyboardInterrupt:
            self._lib.devprof_interrupt_later()

    def _call(self, method: str, *call: Any) -> Any:
        function, *args = call
        try:
            return self._guard.call(f"stubs.{method}", function, *args, expect=STUBS_RETURNS[method])
        except KeyboardInterrupt:
            # mostly the user's: results are read long after the profile's own handler is gone
            self._lib.devprof_interrupt_later()
            return None


def _callback(name: str, method: Callable[..., Any]) -> Any:
    kind = dict(StubTable._fields_)[name]
    return kind(method)


_INSTALLED: list[StubForwarder] = []  # torch keeps the pointer for ever, so the forwarder must live as long


def install_stubs(bridge: Bridge, registered: RegisteredStubs) -> None:
    """Put a plugin's stubs behind torch's legacy profiler; another backend's stubs are left in place, with a warning."""
    other = ctypes.create_string_buffer(256)
    if not bridge.lib.devprof_stubs_register(other, len(other)):
        tell(
            f"torch's legacy profiler already uses the stubs of another backend ({other.value.decode()}); those of plugin "
            f"{registered.name!r} are not installed, because torch keeps only one",
            PluginWarning,
        )
        return
    forwarder = next((one for one in _INSTALLED if one.serves(registered)), None)
    if forwarder is None:
        _INSTALLED.append(forwarder := StubForwarder(bridge, registered))
    bridge.lib.devprof_stubs_set(ctypes.addressof(forwarder.table))
    forwarder.collect()  # what the main thread had no turn for
