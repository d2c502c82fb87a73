"""Events of the simulated device for torch's legacy profiler, which times each op with a pair of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from openreg_sim.runtime import runtime
from openreg_sim.runtime.native import native_library

__all__ = ["Mark", "OpenRegStubs", "RecordedEvent"]

MARKS_KEPT = 65_536


class RecordedEvent:
    """An event recorded on a stream; the device forgets it when this object goes.

    Attributes:
        id: number of the event.
    """

    __slots__ = ("_destroy", "id")

    def __init__(self, id: int, destroy: Callable[[int], object]) -> None:
        self.id = id
        self._destroy = destroy

    def __del__(self) -> None:
        self._destroy(self.id)


class Mark(NamedTuple):
    """What `mark`, `range_push` and `range_pop` left.

    Attributes:
        kind: ``"mark"``, ``"push"`` or ``"pop"``.
        name: the text; of a pop, that of the range it closed, or empty where none was open.
        event: the point on the device's timeline; see `OpenRegStubs.elapsed`.
    """

    kind: str
    name: str
    event: RecordedEvent


class OpenRegStubs:
    """`devprof.contract.ProfilerStubs` for torch's device `openreg`.

    Source: torch/csrc/profiler/stubs/cuda.cpp, whose order of calls it follows: `record` only queues, `elapsed` waits.
    """

    torch_device = "openreg"

    def __init__(self) -> None:
        self._open: list[str] = []
        self._marks: deque[Mark] = deque(maxlen=MARKS_KEPT)

    def record(self) -> RecordedEvent:
        """Queue an event on the current device and stream; nothing is waited for or brought in."""
        library = native_library()
        if library is None:
            current = runtime()
            event = current.event_create()
            current.event_record(event)
            return RecordedEvent(event, current.event_destroy)
        event = library.orEventCreate()
        device = library.orCurrentDevice()
        library.orEventRecord(event, device, library.orCurrentStream(device))
        return RecordedEvent(event, library.orEventDestroy)

    def elapsed(self, start: RecordedEvent, end: RecordedEvent) -> float:
        """Return the microseconds between two events, after waiting for both."""
        current = runtime()
        current.event_synchronize(start.id)
        current.event_synchronize(end.id)
        return current.event_elapsed_ms(start.id, end.id) * 1e3

    def mark(self, name: str) -> None:
        """Mark a point on the current stream; read it from `marks`."""
        self._marks.append(Mark("mark", name, self.record()))

    def range_push(self, name: str) -> None:
        """Open a range on the current stream."""
        self._open.append(name)
        self._marks.append(Mark("push", name, self.record()))

    def range_pop(self) -> None:
        """Close the innermost range."""
        self._marks.append(Mark("pop", self._open.pop() if self._open else "", self.record()))

    def marks(self) -> list[Mark]:
        """Return the latest marks, oldest first."""
        return list(self._marks)

    def enabled(self) -> bool:
        """Say that the device can be used; a simulated one always can."""
        return True

    def on_each_device(self, visit: Callable[[int], None]) -> None:
        """Call `visit` with each device's index, that device being current during the call."""
        before = self._current_device()
        try:
            for device in range(runtime().device_count):
                self._set_device(device)
                visit(device)
        finally:
            self._set_device(before)

    def synchronize(self) -> None:
        """Wait until the current device has finished all its work."""
        runtime().device_synchronize(self._current_device())

    def _current_device(self) -> int:
        library = native_library()
        return runtime().current_device() if library is None else int(library.orCurrentDevice())

    def _set_device(self, device: int) -> None:
        library = native_library()
        if library is None:
            runtime().set_device(device)
        else:
            library.orSetDevice(device)
