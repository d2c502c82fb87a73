"""A plugin's memory reports, into torch's profiler (``profile_memory=True``)."""

from __future__ import annotations

from devprof.contract import MemoryReporter
from devprof.torch.bridge import Bridge

__all__ = ["TorchMemoryReporter"]


class TorchMemoryReporter(MemoryReporter):
    """Reports to c10. Call it on the thread that allocates: torch drops reports of threads that it does not profile."""

    def __init__(self, bridge: Bridge) -> None:
        self._lib = bridge.lib

    def report_memory_usage(
        self, address: int, delta_bytes: int, total_allocated_bytes: int, total_reserved_bytes: int, device: int
    ) -> None:
        """Report one allocation (positive delta) or release (negative delta)."""
        self._lib.devprof_report_memory(address, delta_bytes, total_allocated_bytes, total_reserved_bytes, device)

    def report_out_of_memory(
        self, requested_bytes: int, total_allocated_bytes: int, total_reserved_bytes: int, device: int
    ) -> None:
        """Report a failed allocation; the trace shows it as ``[OutOfMemory]``."""
        self._lib.devprof_report_out_of_memory(requested_bytes, total_allocated_bytes, total_reserved_bytes, device)
