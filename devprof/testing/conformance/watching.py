"""Watch a plugin from inside: what its sessions are called with, and what they hand over.

While a `Watch` is on, the profiler's `configure` gives sessions that note every call and pass it on. Neither the plugin nor
devprof behaves differently, so what is noted is what really happens.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Set
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

from devprof.contract import ActivityLogger, IActivityProfiler, MemoryReporter, SessionConfig
from devprof.model import ActivityBatch, ActivityType, DeviceInfo, GenericTraceActivity, RecordError, ResourceInfo
from devprof.replay.tapping import TappedSession, tapped

__all__ = ["RUNTIME_CALLS", "MemoryReport", "Watch", "Watched"]

RUNTIME_CALLS = (
    ActivityType.PRIVATEUSE1_RUNTIME,
    ActivityType.CUDA_RUNTIME,
    ActivityType.CUDA_DRIVER,
    ActivityType.XPU_RUNTIME,
    ActivityType.MTIA_RUNTIME,
)
"""Calls of a runtime that launch work, whoever made the device."""

_KINDS = frozenset(int(kind) for kind in ActivityType)
_PER_OP = ("push_correlation_id", "pop_correlation_id", "push_user_correlation_id", "pop_user_correlation_id")
_KEPT = ("errors", "get_device_infos", "get_resource_infos", "get_device_properties", "get_metadata", "clock_domain")


class MemoryReport(NamedTuple):
    """One report of a device's memory: bytes more (or less), on which device, whether after `stop`."""

    delta_bytes: int
    total_allocated_bytes: int
    device: int
    after_stop: bool


@dataclass(slots=True)
class Watched:
    """One session, as the kit saw it.

    Attributes:
        kinds: what it was asked for.
        config: what it was told.
        calls: its hooks in the order of their calls.
        batches: what it delivered, as delivered.
        malformed: records that no column can hold, one sentence each.
        dropped: what it said was lost.
        devices, resources: rows that it named.
        said: what its getters returned, by hook.
        memory: its reports of memory.
        flushes: whether it can hand over while it records.
        session: the plugin's object, or None where it cannot be referred to weakly.
    """

    kinds: frozenset[ActivityType]
    config: SessionConfig
    calls: list[str] = field(default_factory=list)
    batches: list[ActivityBatch] = field(default_factory=list)
    malformed: list[str] = field(default_factory=list)
    dropped: list[tuple[int | None, str]] = field(default_factory=list)
    devices: list[DeviceInfo] = field(default_factory=list)
    resources: list[ResourceInfo] = field(default_factory=list)
    said: dict[str, Any] = field(default_factory=dict)
    memory: list[MemoryReport] = field(default_factory=list)
    flushes: bool = False
    session: weakref.ref[Any] | None = None

    def records(self, *kinds: ActivityType) -> list[GenericTraceActivity]:
        """Return the delivered records of these kinds, or all; times on the clock that they came on."""
        found = []
        for batch in self.batches:
            known = [i for i, kind in enumerate(batch.activity_type.tolist()) if kind in _KINDS]
            found += (batch if len(known) == len(batch) else batch.take(_mask(known, len(batch)))).activities()
        return [one for one in found if not kinds or one.activity_type in kinds]

    @property
    def work(self) -> list[GenericTraceActivity]:
        """Kernels, copies and sets, by launch number."""
        return sorted((one for one in self.records() if one.activity_type.is_device_work), key=lambda one: one.id)

    @property
    def kernels(self) -> list[GenericTraceActivity]:
        """Kernels, by launch number."""
        return [one for one in self.work if one.activity_type is ActivityType.CONCURRENT_KERNEL]

    @property
    def launches(self) -> list[GenericTraceActivity]:
        """Calls of the runtime."""
        return self.records(*RUNTIME_CALLS)


def _mask(rows: list[int], n: int) -> Any:
    import numpy as np

    mask = np.zeros(n, dtype=np.bool_)
    mask[rows] = True
    return mask


class Watch:
    """Watches every session that a profiler makes, as a context manager.

    Attributes:
        sessions: those made so far, oldest first.
        refused: how often `configure` returned None.
    """

    def __init__(self, profiler: IActivityProfiler) -> None:
        """Watch this profiler, once entered."""
        self.sessions: list[Watched] = []
        self.refused = 0
        self._tap = tapped(profiler, self._around)

    def __enter__(self) -> Self:
        self._tap.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._tap.__exit__(None, None, None)

    def _around(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        def configure(activity_types: Set[ActivityType], config: SessionConfig, **planned: Any) -> Any:
            return self._configured(inner, activity_types, config, planned)

        return configure

    def _configured(
        self, inner: Callable[..., Any], kinds: Set[ActivityType], config: SessionConfig, planned: dict[str, Any]
    ) -> Any:
        watched = Watched(frozenset(kinds), config)
        if config.memory is not None:
            config = replace(config, memory=_MemoryWatch(config.memory, watched))
        session = inner(kinds, config, **planned)
        if session is None:
            self.refused += 1
            return None
        try:
            watched.session = weakref.ref(session)
        except TypeError:
            watched.session = None
        self.sessions.append(watched)
        noted = TappedSession(session, lambda hook, method: _noting(watched, hook, method))
        watched.flushes = hasattr(noted, "flush_trace")
        return noted


def _noting(watched: Watched, hook: str, method: Callable[..., Any]) -> Callable[..., Any]:
    if hook in _PER_OP:
        return method

    def noting(*args: Any) -> Any:
        watched.calls.append(hook)
        if hook in ("process_trace", "flush_trace") and args:
            args = (_LoggerWatch(args[0], watched), *args[1:])
        value = method(*args)
        if hook in _KEPT:
            watched.said[hook] = value
        return value

    return noting


class _LoggerWatch(ActivityLogger):
    """Notes what is delivered, and passes it on."""

    def __init__(self, inner: ActivityLogger, watched: Watched) -> None:
        self._inner = inner
        self._watched = watched

    def handle_activity(self, activity: GenericTraceActivity) -> None:
        try:
            domain = self._watched.said.get("clock_domain")
            clock = {} if domain is None else {"clock": domain.name}
            self._watched.batches.append(ActivityBatch.from_activities([activity], **clock))
        except RecordError as error:
            self._watched.malformed.append(error.reason)
        self._inner.handle_activity(activity)

    def handle_activities(self, batch: ActivityBatch) -> None:
        self._watched.batches.append(batch)
        self._inner.handle_activities(batch)

    def handle_device_info(self, info: DeviceInfo) -> None:
        self._watched.devices.append(info)
        self._inner.handle_device_info(info)

    def handle_resource_info(self, info: ResourceInfo) -> None:
        self._watched.resources.append(info)
        self._inner.handle_resource_info(info)

    def handle_dropped(self, count: int | None, reason: str) -> None:
        self._watched.dropped.append((count, reason))
        self._inner.handle_dropped(count, reason)


class _MemoryWatch(MemoryReporter):
    """Notes reports of memory, and passes them on."""

    def __init__(self, inner: MemoryReporter, watched: Watched) -> None:
        self._inner = inner
        self._watched = watched
        self._lock = threading.Lock()

    def report_memory_usage(
        self, address: int, delta_bytes: int, total_allocated_bytes: int, total_reserved_bytes: int, device: int
    ) -> None:
        with self._lock:
            stopped = "stop" in self._watched.calls
            self._watched.memory.append(MemoryReport(delta_bytes, total_allocated_bytes, device, stopped))
        self._inner.report_memory_usage(address, delta_bytes, total_allocated_bytes, total_reserved_bytes, device)

    def report_out_of_memory(
        self, requested_bytes: int, total_allocated_bytes: int, total_reserved_bytes: int, device: int
    ) -> None:
        self._inner.report_out_of_memory(requested_bytes, total_allocated_bytes, total_reserved_bytes, device)
