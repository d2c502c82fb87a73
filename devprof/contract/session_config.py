"""`SessionConfig`: what a session was asked for."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

__all__ = ["MemoryReporter", "SessionConfig"]


class MemoryReporter(Protocol):
    """Reports a device's memory to the host profiler. Callable from any thread; dropped where memory is not profiled.

    Source: c10::reportMemoryUsageToProfiler and c10::reportOutOfMemoryToProfiler.
    """

    def report_memory_usage(
        self, address: int, delta_bytes: int, total_allocated_bytes: int, total_reserved_bytes: int, device: int
    ) -> None:
        """Report one allocation (positive delta) or release (negative delta)."""

    def report_out_of_memory(
        self, requested_bytes: int, total_allocated_bytes: int, total_reserved_bytes: int, device: int
    ) -> None:
        """Report a failed allocation."""


@dataclass(frozen=True, slots=True)
class SessionConfig:
    """Facts about the session that a plugin is configured for.

    Attributes:
        host: ``"torch"`` or ``"python"``: who records the host side.
        trace_id: id of the trace, as the host writes it; empty where the host has none.
        record_shapes, profile_memory, with_stack, with_flops, with_modules: as given to the profiler.
        custom: text of torch's ``_ExperimentalConfig(custom_profiler_config=...)``, or empty.
        memory: reports memory to the host profiler, or None where the host takes no such reports.
        correlation_api: address of the ``devprof_correlation_api`` table of devprof's C header, 0 where the host has none.
        now_ns: the host clock for this session, Unix ns; use it instead of reading another clock.
        named: True where the user named the devices to record; False where every plugin is asked, and one without its device
            had better return None than raise.
    """

    host: str
    trace_id: str = ""
    record_shapes: bool = False
    profile_memory: bool = False
    with_stack: bool = False
    with_flops: bool = False
    with_modules: bool = False
    custom: str = ""
    memory: MemoryReporter | None = None
    correlation_api: int = 0
    now_ns: Callable[[], int] = time.time_ns
    named: bool = False
