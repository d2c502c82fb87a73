"""Stands for a vendor's SDK, in the words of an SDK: nothing here knows of profilers, ops or devprof.

The device has a clock of its own, runs its queues in order, and can trace into a ring that holds the latest entries.
"""

import threading
import time
from collections import deque

GEMM, RELU, MEMCPY = 1, 2, 3
RING_ENTRIES = 50_000
CLOCK_HZ = 24_000_000

_lock = threading.Lock()
_booted_ns = time.monotonic_ns()
_queues = {}  # queue -> the tick at which it is free
_ring = deque()
_tracing = False
_overwritten = 0
_sequence = 0


def read_clock():
    """Ticks since the device was switched on."""
    return (time.monotonic_ns() - _booted_ns) * CLOCK_HZ // 1_000_000_000


def submit(opcode, queue, cycles, size=0):
    """Put work into a queue; returns its sequence number at once."""
    global _sequence, _overwritten
    with _lock:
        _sequence += 1
        begin = max(read_clock() + CLOCK_HZ // 100_000, _queues.get(queue, 0))
        _queues[queue] = end = begin + cycles
        if _tracing:
            if len(_ring) == RING_ENTRIES:
                _ring.popleft()
                _overwritten += 1
            _ring.append((opcode, begin, end, queue, _sequence, size))
        return _sequence


def drain():
    """Wait until all queues are empty."""
    while (left := max(_queues.values(), default=0) - read_clock()) > 0:
        time.sleep(left / CLOCK_HZ)


def trace(on):
    """Switch tracing on or off."""
    global _tracing
    _tracing = on


def trace_read():
    """Return the entries of the ring, (opcode, begin, end, queue, sequence, size), and how many were overwritten; empty it."""
    global _overwritten
    with _lock:
        entries, lost = list(_ring), _overwritten
        _ring.clear()
        _overwritten = 0
    return entries, lost
