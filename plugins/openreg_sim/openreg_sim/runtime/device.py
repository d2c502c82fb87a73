"""`Runtime`: the API of the simulated devices."""

from __future__ import annotations

from itertools import count
from typing import NamedTuple

from openreg_sim.ring import CopyKind
from openreg_sim.runtime.clocks import HostClock
from openreg_sim.runtime.config import RuntimeConfig
from openreg_sim.runtime.cost import THREADS_PER_BLOCK, Work
from openreg_sim.runtime.errors import ErrorCode, OpenRegError, OpenRegOutOfMemoryError
from openreg_sim.runtime.machine import Machine
from openreg_sim.runtime.memory import DeviceMemory, MemoryInfo, MemoryListener, device_of_address
from openreg_sim.runtime.records import Call
from openreg_sim.runtime.timeline import Event

__all__ = ["Runtime", "StreamInfo"]

FIRST_OWN_EVENT = 1 << 32
"""The native device counts its events from 1, so those made here never meet them."""


class StreamInfo(NamedTuple):
    """A stream: its device, its number there (0 is the default stream), its priority."""

    device: int
    id: int
    priority: int


class Runtime(Machine):
    """A machine with simulated devices.

    Every method may be called from any thread. Work calls return at once with the number of the call (its correlation).
    `device` and `stream` default to the calling thread's current ones. A blocking call waits, by the host's clock, until the
    modelled work has ended, and then raises the error of an earlier call that had already returned, if there is one.

    Args:
        config: what the machine is made of.
        host_clock: the host's clock; by default real or virtual as `config` says.

    Raises:
        OpenRegError: any call: the device, stream or event does not exist, a number makes no sense, or a fault rule says so.
    """

    def __init__(self, config: RuntimeConfig | None = None, host_clock: HostClock | None = None) -> None:
        super().__init__(config, host_clock)
        self.memory_listener: MemoryListener | None = None
        """Hears of every allocation, release and failed allocation, on the thread that makes it."""
        self._memory = [DeviceMemory(index, self.config.memory_limit_bytes) for index in range(self.device_count)]
        self._event_ids = count(FIRST_OWN_EVENT)

    # --- work ---

    def launch(
        self,
        name: str,
        *,
        device: int | None = None,
        stream: int | None = None,
        flops: float = 0.0,
        bytes: float = 0.0,
        grid: tuple[int, int, int] | None = None,
        block: tuple[int, int, int] = (THREADS_PER_BLOCK, 1, 1),
    ) -> int:
        """Launch a kernel that does `flops` operations and moves `bytes`; `grid` defaults to one thread per 4 bytes."""
        entered_ns = self.host_clock.now_ns()
        work = Work(flops, bytes, grid or (max(1, int(bytes) // (4 * block[0])), 1, 1), block)
        duration_ns = self.config.cost.kernel_ns(flops, bytes)
        names = self._submission.names
        with self._lock:
            target = self._stream(Call.LAUNCH, device, stream)
            shape = names.shape_number(work.grid, block)
            caller = self._caller(entered_ns)
            number = self._submission.launch(caller, target, names.number(name), shape, work, duration_ns)
        self._deliver_if_due()
        return number

    def memcpy(
        self,
        kind: CopyKind,
        bytes: int,
        *,
        device: int | None = None,
        stream: int | None = None,
        peer: int | None = None,
    ) -> int:
        """Start a copy on a stream of the device that does it; a peer copy comes from device `peer`."""
        entered_ns = self.host_clock.now_ns()
        if bytes < 0 or (peer is None) != (kind is not CopyKind.PEER_TO_PEER):
            raise _invalid(Call.MEMCPY, f"{kind.name} of {bytes} bytes from peer {peer}; expected bytes from 0 up, and a peer "
                           "for PEER_TO_PEER only")  # fmt: skip
        source = -1 if peer is None else self._device(Call.MEMCPY, peer)
        with self._lock:
            target = self._stream(Call.MEMCPY, device, stream)
            number = self._submission.copy(self._caller(entered_ns), target, kind, bytes, source)
        self._deliver_if_due()
        return number

    def memset(self, bytes: int, *, device: int | None = None, stream: int | None = None) -> int:
        """Start a set on a stream."""
        entered_ns = self.host_clock.now_ns()
        if bytes < 0:
            raise _invalid(Call.MEMSET, f"{bytes} bytes; expected bytes from 0 up")
        with self._lock:
            target = self._stream(Call.MEMSET, device, stream)
            number = self._submission.fill(self._caller(entered_ns), target, bytes)
        self._deliver_if_due()
        return number

    # --- devices and streams ---

    @property
    def device_count(self) -> int:
        """Number of devices."""
        return self.config.device_count

    def current_device(self) -> int:
        """Return the calling thread's device."""
        return self._here.device

    def set_device(self, device: int) -> None:
        """Change the calling thread's device."""
        self._here.device = self._device(None, device)

    def create_stream(self, device: int | None = None, priority: int = 0) -> int:
        """Make a stream and return its number, which is unique on its device."""
        index = self._device(None, device)
        with self._lock:
            used = [number for owner, number in self._timeline.streams if owner == index]
            return self._timeline.add_stream(index, max(used) + 1, priority).id

    def current_stream(self, device: int | None = None) -> int:
        """Return the calling thread's stream on a device."""
        return self._here.streams.get(self._device(None, device), 0)

    def set_stream(self, stream: int, device: int | None = None) -> None:
        """Change the calling thread's stream on a device."""
        with self._lock:
            found = self._stream(Call.LAUNCH, device, stream)
        self._here.streams[found.device] = found.id

    def streams(self) -> list[StreamInfo]:
        """Return all streams of all devices, by device and number."""
        self.drain()
        with self._lock:
            return sorted(StreamInfo(s.device, s.id, s.priority) for s in self._timeline.streams.values())

    def stream_query(self, device: int | None = None, stream: int | None = None) -> bool:
        """Say whether a stream has finished all its work."""
        self.drain()
        with self._lock:
            return self._native_stream(Call.STREAM_SYNCHRONIZE, device, stream).tail_ns <= self.now_ns()

    def stream_synchronize(self, device: int | None = None, stream: int | None = None) -> None:
        """Wait until a stream has finished all its work."""
        self.drain()
        with self._lock:
            target = self._native_stream(Call.STREAM_SYNCHRONIZE, device, stream)
            until_ns = target.tail_ns
        self._wait(Call.STREAM_SYNCHRONIZE, target, until_ns)

    def device_synchronize(self, device: int | None = None) -> None:
        """Wait until a device has finished all its work."""
        self.drain()
        index = self._device(Call.DEVICE_SYNCHRONIZE, device)
        with self._lock:
            until_ns = self._timeline.device_tail_ns(index)
        self._wait(Call.DEVICE_SYNCHRONIZE, self._timeline.stream(index, 0), until_ns)

    # --- events ---

    def event_create(self) -> int:
        """Make an event and return its number."""
        event = next(self._event_ids)
        with self._lock:
            self._timeline.events[event] = None
        return event

    def event_record(self, event: int, device: int | None = None, stream: int | None = None) -> int:
        """Record an event behind the work that a stream has so far; an earlier recording is forgotten."""
        entered_ns = self.host_clock.now_ns()
        with self._lock:
            self._event(Call.EVENT_RECORD, event)
            target = self._stream(Call.EVENT_RECORD, device, stream)
            number = self._submission.record_event(self._caller(entered_ns), target, event)
        self._deliver_if_due()
        return number

    def stream_wait_event(self, event: int, device: int | None = None, stream: int | None = None) -> int:
        """Let a stream's further work wait for an event, of any device; an event never recorded holds nothing up."""
        entered_ns = self.host_clock.now_ns()
        with self._lock:
            self._event(Call.STREAM_WAIT_EVENT, event)
            target = self._stream(Call.STREAM_WAIT_EVENT, device, stream)
            number = self._submission.wait_event(self._caller(entered_ns), target, event)
        self._deliver_if_due()
        return number

    def event_query(self, event: int) -> bool:
        """Say whether an event has been reached; True for one that was never recorded."""
        self.drain()
        with self._lock:
            found = self._event(Call.EVENT_SYNCHRONIZE, event)
            return found is None or found.reached_ns <= self.now_ns()

    def event_synchronize(self, event: int) -> None:
        """Wait until an event has been reached; not at all for one that was never recorded."""
        self.drain()
        with self._lock:
            found = self._event(Call.EVENT_SYNCHRONIZE, event)
            place = (found.device, found.stream) if found is not None else (self.current_device(), 0)
            stream = self._timeline.stream(*place)
        self._wait(Call.EVENT_SYNCHRONIZE, stream, found.reached_ns if found is not None else 0, event)

    def event_elapsed_ms(self, start: int, end: int) -> float:
        """Return the time from one event to another, both reached.

        Raises:
            OpenRegError: one was never recorded (INVALID_HANDLE) or is not reached yet (NOT_READY).
        """
        self.drain()
        with self._lock:
            first, last = self._reached(start), self._reached(end)
        return (last.reached_ns - first.reached_ns) / 1e6

    def event_destroy(self, event: int) -> None:
        """Forget an event; work that waits for it goes on waiting."""
        with self._lock:
            self._event(Call.EVENT_DESTROY, event)
            self._timeline.events.pop(event, None)

    def _event(self, call: Call, event: int) -> Event | None:
        # an event of the native device is unknown here until its first recording
        found = self._timeline.events.get(event)
        if found is None and event >= FIRST_OWN_EVENT and event not in self._timeline.events:
            raise OpenRegError(
                ErrorCode.INVALID_HANDLE, call.api_name, f"there is no event {event}; it was destroyed or never created"
            )
        return found

    def _reached(self, event: int) -> Event:
        name = "orEventElapsedTime"
        found = self._event(Call.EVENT_SYNCHRONIZE, event)
        if found is None:
            raise OpenRegError(ErrorCode.INVALID_HANDLE, name, f"event {event} was never recorded")
        if found.reached_ns > self.now_ns():
            raise OpenRegError(ErrorCode.NOT_READY, name, f"event {event} is not reached yet; synchronize it first")
        return found

    # --- memory ---

    def allocate(self, bytes: int, device: int | None = None) -> int:
        """Take device memory and return its address.

        Raises:
            OpenRegOutOfMemoryError: not so much is left.
        """
        entered_ns = self.host_clock.now_ns()
        index = self._device(Call.ALLOCATE, device)
        try:
            with self._lock:
                self._submission.check(Call.ALLOCATE, entered_ns)
                address = self._memory[index].allocate(bytes)
                self._log_memory(Call.ALLOCATE, entered_ns, index, address, bytes)
        except OpenRegOutOfMemoryError as error:
            self._report_out_of_memory(error)
            raise
        self._report_memory(index, address, bytes)
        return address

    def free(self, address: int) -> None:
        """Give device memory back.

        Raises:
            OpenRegError: nothing is allocated at that address.
        """
        entered_ns = self.host_clock.now_ns()
        index = device_of_address(address)
        if not 0 <= index < self.device_count:
            raise _invalid(Call.FREE, f"{address:#x} is no address of a device")
        with self._lock:
            self._submission.check(Call.FREE, entered_ns)
            size_bytes = self._memory[index].free(address)
            self._log_memory(Call.FREE, entered_ns, index, address, -size_bytes)
        self._report_memory(index, address, -size_bytes)

    def memory_info(self, device: int | None = None) -> MemoryInfo:
        """Return how much memory of a device is in use."""
        with self._lock:
            return self._memory[self._device(Call.ALLOCATE, device)].info()

    def _log_memory(self, call: Call, entered_ns: int, device: int, address: int, delta_bytes: int) -> None:
        info = self._memory[device].info()
        details = (address, info.allocated_bytes, info.reserved_bytes)
        self._submission.memory(call, self._caller(entered_ns), device, delta_bytes, details)

    def _report_memory(self, device: int, address: int, delta_bytes: int) -> None:
        self._deliver_if_due()
        listener = self.memory_listener
        if listener is not None:
            info = self._memory[device].info()
            listener.report_memory_usage(address, delta_bytes, info.allocated_bytes, info.reserved_bytes, device)

    def _report_out_of_memory(self, error: OpenRegOutOfMemoryError) -> None:
        if self.memory_listener is not None:
            info = self._memory[error.device].info()
            self.memory_listener.report_out_of_memory(
                error.requested_bytes, info.allocated_bytes, info.reserved_bytes, error.device
            )


def _invalid(call: Call, message: str) -> OpenRegError:
    return OpenRegError(ErrorCode.INVALID_VALUE, call.api_name, message)
