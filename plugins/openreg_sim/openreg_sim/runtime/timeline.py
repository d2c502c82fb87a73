"""The timeline: when work runs, by arithmetic on a few numbers per stream, engine and event.

There is no event loop. Work is placed when its call is processed, in the order of the calls, at
``max(earliest start, end of the stream's last work, end of the engine's last work)``; each call costs O(1).
Kernels of different streams overlap freely and do not slow each other down. An engine serves copies in the order of their
calls, so one that waits for its stream holds up the next.
"""

from __future__ import annotations

from enum import Enum

from openreg_sim.ring import CopyKind

__all__ = ["Engine", "Event", "Stream", "Timeline"]

DEFAULT_STREAM = 0


class Engine(Enum):
    """A copy engine of a device; one copy at a time."""

    HOST_TO_DEVICE = "h2d"
    DEVICE_TO_HOST = "d2h"
    PEER = "p2p"


_ENGINES = {
    CopyKind.HOST_TO_DEVICE: Engine.HOST_TO_DEVICE,
    CopyKind.DEVICE_TO_HOST: Engine.DEVICE_TO_HOST,
    CopyKind.PEER_TO_PEER: Engine.PEER,
}


class Stream:
    """A queue of a device: its work runs in order."""

    __slots__ = ("device", "id", "priority", "tail_ns")

    def __init__(self, device: int, id: int, priority: int) -> None:
        self.device = device
        self.id = id
        self.priority = priority
        self.tail_ns = 0
        """End of the last work, host clock; 0 before the first."""


class Event:
    """A recorded point of a stream."""

    __slots__ = ("correlation", "device", "reached_ns", "stream")

    def __init__(self, reached_ns: int, device: int, stream: int, correlation: int) -> None:
        self.reached_ns = reached_ns
        """When all work before it has ended, host clock."""
        self.device = device
        self.stream = stream
        self.correlation = correlation
        """Number of the call that recorded it."""


class Timeline:
    """Streams, copy engines and events of all devices. Not thread-safe; the runtime holds its lock."""

    def __init__(self, device_count: int) -> None:
        self.device_count = device_count
        self.streams: dict[tuple[int, int], Stream] = {}
        self.events: dict[int, Event | None] = {}
        self._engines: dict[tuple[int, Engine], int] = {}
        for device in range(device_count):
            self.add_stream(device, DEFAULT_STREAM, 0)

    def add_stream(self, device: int, id: int, priority: int) -> Stream:
        """Add a stream and return it."""
        stream = self.streams[device, id] = Stream(device, id, priority)
        return stream

    def stream(self, device: int, id: int) -> Stream:
        """Return a stream; the native device's streams become known at their first call."""
        found = self.streams.get((device, id))
        return found if found is not None else self.add_stream(device, id, 0)

    def run(self, stream: Stream, earliest_ns: int, duration_ns: int) -> tuple[int, int]:
        """Place work on a stream and return its start and end."""
        start_ns = max(earliest_ns, stream.tail_ns)
        stream.tail_ns = end_ns = start_ns + duration_ns
        return start_ns, end_ns

    def copy(self, stream: Stream, earliest_ns: int, duration_ns: int, kind: CopyKind, peer: int) -> tuple[int, int]:
        """Place a copy on a stream and on the engines it needs, and return its start and end.

        A copy between devices needs the peer engine of both; one within a device needs none.
        """
        engine = _ENGINES.get(kind)
        if engine is None:
            return self.run(stream, earliest_ns, duration_ns)
        needed = {(stream.device, engine)} | ({(peer, engine)} if engine is Engine.PEER else set())
        free_ns = max(self._engines.get(key, 0) for key in needed)
        start_ns, end_ns = self.run(stream, max(earliest_ns, free_ns), duration_ns)
        self._engines.update(dict.fromkeys(needed, end_ns))
        return start_ns, end_ns

    def record(self, event: int, stream: Stream, now_ns: int, correlation: int) -> int:
        """Record an event behind the stream's work so far, and return when it is reached."""
        reached_ns = max(now_ns, stream.tail_ns)
        self.events[event] = Event(reached_ns, stream.device, stream.id, correlation)
        return reached_ns

    def wait(self, event: Event | None, stream: Stream, now_ns: int) -> tuple[int, int]:
        """Let a stream's further work wait for an event, and return from when to when it waits.

        An event that was never recorded holds nothing up.
        """
        start_ns = max(now_ns, stream.tail_ns)
        end_ns = max(start_ns, event.reached_ns) if event is not None else start_ns
        if end_ns > start_ns:
            stream.tail_ns = end_ns
        return start_ns, end_ns

    def device_tail_ns(self, device: int) -> int:
        """Return the end of a device's last work."""
        return max(stream.tail_ns for stream in self.streams.values() if stream.device == device)
