"""Memory of the devices, as `torch.openreg` reports it. All figures are bytes."""

from __future__ import annotations

import ctypes

from openreg_sim.device.indices import DeviceLike, index_of
from openreg_sim.device.installed import library
from openreg_sim.device.library import MemoryFigure

__all__ = [
    "empty_cache",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "reset_peak_memory_stats",
    "set_memory_limit",
]


def memory_allocated(device: DeviceLike = None) -> int:
    """Return how much memory tensors hold now."""
    return _figure(device, MemoryFigure.ALLOCATED)


def max_memory_allocated(device: DeviceLike = None) -> int:
    """Return the most memory that tensors have held since the start or the last reset."""
    return _figure(device, MemoryFigure.PEAK_ALLOCATED)


def memory_reserved(device: DeviceLike = None) -> int:
    """Return how much memory the allocator holds, in use or kept for later; it grows in segments of 2 MiB."""
    return _figure(device, MemoryFigure.RESERVED)


def max_memory_reserved(device: DeviceLike = None) -> int:
    """Return the most memory that the allocator has held since the start or the last reset."""
    return _figure(device, MemoryFigure.PEAK_RESERVED)


def reset_peak_memory_stats(device: DeviceLike = None) -> None:
    """Let the peaks start anew at what is held now."""
    library().orResetPeakMemory(index_of(device))


def empty_cache() -> None:
    """Give back what the allocators of all devices keep for later."""
    library().orEmptyCache()


def mem_get_info(device: DeviceLike = None) -> tuple[int, int]:
    """Return free and total memory."""
    free, total = ctypes.c_uint64(), ctypes.c_uint64()
    library().orMemoryInfo(index_of(device), ctypes.byref(free), ctypes.byref(total))
    return free.value, total.value


def set_memory_limit(size_bytes: int | None, device: DeviceLike = None) -> None:
    """Let a device have less memory than the 16 GiB it has, to try out what a program does when it runs out.

    An allocation beyond the limit raises `torch.OutOfMemoryError`; what is in use already stays.

    Args:
        size_bytes: the limit; None means all of the device's memory.
        device: the current one if None.

    Raises:
        ValueError: the limit is negative.
    """
    if size_bytes is not None and size_bytes < 0:
        raise ValueError(f"a memory limit of {size_bytes} bytes; expected 0 or more, or None for no limit")
    library().orSetMemoryLimit(index_of(device), -1 if size_bytes is None else size_bytes)


def _figure(device: DeviceLike, figure: MemoryFigure) -> int:
    return int(library().orMemory(index_of(device), figure))
