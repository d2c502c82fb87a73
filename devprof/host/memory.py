"""Memory reports: one packed row each, in the queue of the reporting thread.

Source: c10::reportMemoryUsageToProfiler and c10::reportOutOfMemoryToProfiler.
"""

from __future__ import annotations

import struct

from devprof.errors import UsageError
from devprof.host.gate import GATE, current_range

__all__ = ["MEMORY_WORDS", "RangeMemoryReporter", "report_memory", "report_out_of_memory"]

MEMORY_WORDS = 8
"""int64 per row: ticks, range id, address, bytes, total allocated, total reserved, number of the device, 1 where it failed."""

_row = struct.Struct("qqQqqqqq").pack


def report_memory(
    address: int,
    delta_bytes: int,
    total_allocated_bytes: int,
    total_reserved_bytes: int,
    device: str | int,
    backend: str = "",
) -> None:
    """Report one allocation (positive delta) or release (negative delta). Does nothing where memory is not profiled.

    Callable from any thread. The event belongs to the innermost range of the calling thread or task.

    Args:
        address: where the memory is.
        delta_bytes: how much more of it is allocated.
        total_allocated_bytes: how much of the device is allocated now, this included.
        total_reserved_bytes: how much of it the allocator holds.
        device: such as "cpu" or "openreg:0", or a device's index.
        backend: of a device that is given as an index, such as "openreg".

    Raises:
        UsageError: a number does not fit 64 bits, or the device is none.
    """
    if GATE.memory is not None:
        _report(address, delta_bytes, total_allocated_bytes, total_reserved_bytes, device, backend, 0)


def report_out_of_memory(
    requested_bytes: int,
    total_allocated_bytes: int,
    total_reserved_bytes: int,
    device: str | int,
    backend: str = "",
) -> None:
    """Report a failed allocation, as `report_memory` does one that succeeded.

    Args:
        requested_bytes: how much was asked for.
        total_allocated_bytes, total_reserved_bytes, device, backend: as of `report_memory`.

    Raises:
        UsageError: as `report_memory`.
    """
    if GATE.memory is not None:
        _report(0, requested_bytes, total_allocated_bytes, total_reserved_bytes, device, backend, 1)


class RangeMemoryReporter:
    """Reports the memory of one backend's devices. Implements `devprof.contract.MemoryReporter`; callable from any thread."""

    def __init__(self, backend: str) -> None:
        """Make a reporter for devices of `backend`, such as "openreg"."""
        self._backend = backend

    def report_memory_usage(
        self, address: int, delta_bytes: int, total_allocated_bytes: int, total_reserved_bytes: int, device: int
    ) -> None:
        """Report one allocation or release; see `report_memory`."""
        report_memory(address, delta_bytes, total_allocated_bytes, total_reserved_bytes, device, self._backend)

    def report_out_of_memory(
        self, requested_bytes: int, total_allocated_bytes: int, total_reserved_bytes: int, device: int
    ) -> None:
        """Report a failed allocation; see `report_out_of_memory`."""
        report_out_of_memory(requested_bytes, total_allocated_bytes, total_reserved_bytes, device, self._backend)


def _report(
    address: int,
    delta_bytes: int,
    allocated_bytes: int,
    reserved_bytes: int,
    device: str | int,
    backend: str,
    failed: int,
) -> None:
    queues = GATE.memory
    if queues is None:  # stopped meanwhile
        return
    queue = queues.here()
    key = (device, backend)
    try:
        number = queue.devices.numbers.get(key)
    except TypeError:  # it has no hash, so it is neither text nor number
        number = None
    if number is None:
        number = queue.devices.number(_checked(device, backend))
    entered = current_range()
    try:
        queue.memory += _row(
            queue.clock(), entered.id, address, delta_bytes, allocated_bytes, reserved_bytes, number, failed
        )
    except struct.error as error:
        raise UsageError(
            f"a memory report holds whole numbers of 64 bits; found address={address!r}, bytes={delta_bytes!r}, "
            f"allocated={allocated_bytes!r}, reserved={reserved_bytes!r}"
        ) from error


def _checked(device: object, backend: str) -> tuple[object, str]:
    # called for a device that this thread has not reported before
    if isinstance(backend, str) and isinstance(device, int if backend else str) and not isinstance(device, bool):
        return device, backend
    raise UsageError(
        f'a device is a text such as "openreg:0", or an index with its backend; found device={device!r}, backend={backend!r}'
    )
