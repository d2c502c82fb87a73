"""Accounting of device memory: what is in use, how much there is, and when it runs out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from openreg_sim.runtime.errors import ErrorCode, OpenRegError, OpenRegOutOfMemoryError

__all__ = ["DeviceMemory", "MemoryInfo", "MemoryListener", "device_of_address"]

ALIGNMENT_BYTES = 512
FIRST_ADDRESS = 0x7000_0000_0000
DEVICE_SPAN = 1 << 44


@dataclass(frozen=True, slots=True)
class MemoryInfo:
    """Memory of one device.

    Attributes:
        allocated_bytes: in use.
        reserved_bytes: in use, rounded up as the device allocates it.
        peak_bytes: most that was in use.
        limit_bytes: what the device has.
    """

    allocated_bytes: int
    reserved_bytes: int
    peak_bytes: int
    limit_bytes: int


class MemoryListener(Protocol):
    """Hears of every allocation, release and failed allocation, on the thread that makes it. Must not raise."""

    def report_memory_usage(
        self, address: int, delta_bytes: int, total_allocated_bytes: int, total_reserved_bytes: int, device: int
    ) -> None:
        """Memory was taken (positive delta) or given back (negative delta)."""

    def report_out_of_memory(
        self, requested_bytes: int, total_allocated_bytes: int, total_reserved_bytes: int, device: int
    ) -> None:
        """An allocation failed."""


class DeviceMemory:
    """One device's memory. Addresses are never used twice, so that a stale one is told from a live one."""

    def __init__(self, device: int, limit_bytes: int) -> None:
        self._device = device
        self._limit_bytes = limit_bytes
        self._next_address = FIRST_ADDRESS + device * DEVICE_SPAN
        self._sizes: dict[int, int] = {}
        self._allocated_bytes = self._reserved_bytes = self._peak_bytes = 0

    def allocate(self, size_bytes: int) -> int:
        """Take memory and return its address.

        Raises:
            OpenRegOutOfMemoryError: not so much is left.
            OpenRegError: the size is negative.
        """
        if size_bytes < 0:
            raise OpenRegError(ErrorCode.INVALID_VALUE, "orMalloc", f"{size_bytes} bytes cannot be allocated")
        reserved = _rounded(size_bytes)
        if self._reserved_bytes + reserved > self._limit_bytes:
            raise OpenRegOutOfMemoryError(self._device, size_bytes, self._reserved_bytes, self._limit_bytes)
        address = self._next_address
        self._next_address += max(reserved, ALIGNMENT_BYTES)
        self._sizes[address] = size_bytes
        self._count(size_bytes, reserved)
        return address

    def free(self, address: int) -> int:
        """Give memory back and return its size.

        Raises:
            OpenRegError: nothing is allocated at that address.
        """
        size_bytes = self._sizes.pop(address, None)
        if size_bytes is None:
            raise OpenRegError(
                ErrorCode.INVALID_VALUE,
                "orFree",
                f"nothing is allocated at {address:#x}; freed twice, or never allocated",
            )
        self._count(-size_bytes, -_rounded(size_bytes))
        return size_bytes

    def _count(self, size_bytes: int, reserved_bytes: int) -> None:
        self._allocated_bytes += size_bytes
        self._reserved_bytes += reserved_bytes
        self._peak_bytes = max(self._peak_bytes, self._allocated_bytes)

    def info(self) -> MemoryInfo:
        """Return the figures of now."""
        return MemoryInfo(self._allocated_bytes, self._reserved_bytes, self._peak_bytes, self._limit_bytes)


def device_of_address(address: int) -> int:
    """Return the index of the device that an address belongs to; may be no real device for a wrong address."""
    return (address - FIRST_ADDRESS) // DEVICE_SPAN


def _rounded(size_bytes: int) -> int:
    return -(-size_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
