"""What a vendor's SDK may look like: queues, and a trace of when each job ran. It knows of no profiler and of no ops."""

import threading
import time
from typing import NamedTuple


class Job(NamedTuple):
    """A finished job: its queue, its ticket there, and when it ran, in Unix ns."""

    queue: int
    ticket: int
    kernel: str
    start_ns: int
    end_ns: int


_trace: list[Job] | None = None
_queues: list["Queue"] = []


class Queue:
    """Runs one job after another."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.free_at_ns = 0
        self._tickets = 0
        self._lock = threading.Lock()
        _queues.append(self)

    def submit(self, kernel: str, duration_us: int) -> int:
        """Start a job and return its ticket; each queue counts from 0."""
        with self._lock:
            ticket, self._tickets = self._tickets, self._tickets + 1
            start_ns = max(time.time_ns() + 5_000, self.free_at_ns)
            self.free_at_ns = start_ns + duration_us * 1000
            if _trace is not None:
                _trace.append(Job(self.number, ticket, kernel, start_ns, self.free_at_ns))
            return ticket


def synchronize() -> None:
    """Wait for the jobs of all queues."""
    while any(time.time_ns() < queue.free_at_ns for queue in _queues):
        pass


def trace_begin() -> None:
    """Begin to keep jobs."""
    global _trace
    _trace = []


def trace_end() -> list[Job]:
    """Keep no more jobs, and return those that were kept."""
    global _trace
    jobs, _trace = _trace or [], None
    return jobs
