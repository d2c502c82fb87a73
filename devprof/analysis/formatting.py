"""Numbers as a table shows them, in the manner of torch's tables."""

from __future__ import annotations

import math

__all__ = ["FLOP_UNITS", "flops_unit", "memory_text", "share_text", "time_text"]

_TIME_UNITS = {"s": 10**9, "ms": 10**6, "us": 10**3}
_SIZE_UNITS = {"GB": 2**30, "MB": 2**20, "KB": 2**10}
FLOP_UNITS = ("FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs")


def time_text(time_ns: float, unit: str | None = None) -> str:
    """Return a time with its unit: the given one, or the greatest in which it is at least 1."""
    if unit is None:
        unit = next((name for name, size in _TIME_UNITS.items() if time_ns >= size), "us")
    return f"{time_ns / _TIME_UNITS[unit]:.3f}{unit}"


def share_text(part: float, whole: float) -> str:
    """Return a share in per cent; of nothing there is none."""
    return f"{part * 100.0 / whole:.2f}%" if whole else "NaN"


def memory_text(size_bytes: int) -> str:
    """Return a number of bytes with its unit: the greatest in which it is at least 1."""
    for unit, size in _SIZE_UNITS.items():
        if abs(size_bytes) >= size:
            return f"{size_bytes / size:.2f} {unit}"
    return f"{size_bytes} B"


def flops_unit(count: int) -> int:
    """Return the index in `FLOP_UNITS` that suits a count of operations, 1 or more."""
    return min(math.floor(math.log10(count) / 3), len(FLOP_UNITS) - 1)
