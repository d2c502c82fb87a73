"""`any_device`: device time per op for a backend that has no tracing SDK, measured with torch's own events.

An event is recorded on the current stream when an op begins and another when it ends; the time between the two is a span on
that stream. It is a range, not a kernel: it holds whatever the stream did between the two events, idle time included, and
nothing says what that was. Only ops that call no other op are measured, so that spans neither nest nor count twice. Written
against torch's public API: `torch.Event`, and `current_stream`, `synchronize`, `device_count` of the backend's module.

Each op costs two events and two calls of Python, some microseconds: for a first look, not for fine figures.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch

from devprof.contract import (
    ActivityLogger,
    Capabilities,
    CorrelationAccess,
    GetLinkedActivity,
    IActivityProfiler,
    SessionConfig,
    hookimpl,
)
from devprof.model import ActivityBatch, ActivityType, DeviceInfo, MetadataColumn, MetadataKind
from devprof.registry import register

__all__ = ["AnyDeviceProfiler", "any_device"]

_NAME = "range between two events"
"""What every span is called: there is no name of a kernel."""

_KIND = ActivityType.CONCURRENT_KERNEL


def any_device(torch_device: str) -> AnyDeviceProfiler:
    """Let spans between events stand for the work of a PrivateUse1 backend, in every session of this process from now on.

    Args:
        torch_device: name of the renamed backend, such as ``"npu"``.

    Raises:
        UsageError: it was called for that device before.
    """
    profiler = AnyDeviceProfiler(torch_device)
    register(_Plugin(profiler), name=profiler.name())
    return profiler


class _Plugin:
    def __init__(self, profiler: AnyDeviceProfiler) -> None:
        self._profiler = profiler

    @hookimpl
    def devprof_activity_profilers(self) -> Sequence[IActivityProfiler]:
        return [cast(IActivityProfiler, self._profiler)]  # hooks that it has no use for are left out


class AnyDeviceProfiler:
    """What devprof knows of the plugin before any capture."""

    def __init__(self, torch_device: str) -> None:
        """Make a profiler for one backend.

        Args:
            torch_device: name of the renamed backend.
        """
        self._device = torch_device

    def name(self) -> str:
        """Return the plugin's name."""
        return f"{self._device}-events"

    def capabilities(self) -> Capabilities:
        """Say that ids are pushed in Python: that is also when events are recorded."""
        description = f"ranges between torch events on {self._device}; no kernels"
        return Capabilities(torch_device=self._device, correlation=CorrelationAccess.PYTHON, description=description)

    def available_activities(self) -> Set[ActivityType]:
        """Return the one kind that a span can stand for in torch's tables."""
        return frozenset({_KIND})

    def configure(
        self,
        activity_types: Set[ActivityType],
        config: SessionConfig,
        *,
        ts_ms: int | None = None,
        duration_ms: int | None = None,
    ) -> AnyDeviceSession | None:
        """Make the session of one capture; None where device work is not asked for."""
        return AnyDeviceSession(self._device, config) if _KIND in activity_types else None


@dataclass(slots=True)
class _OpenOp:
    """An op that runs: its id, the event at its beginning, and whether it called another op."""

    id: int
    began: Any
    calls_another: bool = False


class _Thread(threading.local):
    """The ops that run on one thread, and the user ranges around them."""

    def __init__(self) -> None:
        self.ops: list[_OpenOp] = []
        self.users: list[int] = []


@dataclass(frozen=True, slots=True)
class _Span:
    """What was measured of one op."""

    op_id: int
    user_id: int
    thread_id: int
    device: int
    stream: int
    began: Any
    ended: Any


class AnyDeviceSession:
    """One capture: two events around every op that calls no other, and a base event per device for their place in time."""

    def __init__(self, device: str, config: SessionConfig) -> None:
        self._device = device
        self._module = getattr(torch, device)
        self._now_ns = config.now_ns
        self._recording = False
        self._here = _Thread()
        self._spans: list[_Span] = []
        self._bases: dict[int, tuple[Any, int]] = {}
        self._errors: list[str] = []

    def start(self) -> None:
        """Record a base event on every device, whose place on the host's clock is known."""
        for index in range(self._module.device_count()):
            self._bases[index] = self._base(index)
        self._recording = True

    def _base(self, index: int) -> tuple[Any, int]:
        event = torch.Event(device=f"{self._device}:{index}", enable_timing=True)
        with torch.device(f"{self._device}:{index}"):
            self._module.synchronize(index)
            before_ns = self._now_ns()
            event.record(self._module.current_stream(index))
            event.synchronize()
            return event, (before_ns + self._now_ns()) // 2

    def push_correlation_id(self, id: int) -> None:
        """An op begins on this thread."""
        if self._recording:
            ops = self._here.ops
            if ops:
                ops[-1].calls_another = True
            ops.append(_OpenOp(id, self._mark()))

    def pop_correlation_id(self) -> None:
        """An op ends on this thread."""
        ops = self._here.ops
        if not self._recording or not ops:
            return
        op = ops.pop()
        if op.calls_another or op.began is None:
            return
        stream = self._module.current_stream()
        if (ended := self._mark()) is not None:
            users = self._here.users
            where = stream.device_index, stream.stream_id
            native = threading.get_native_id()
            self._spans.append(_Span(op.id, users[-1] if users else 0, native, *where, op.began, ended))

    def push_user_correlation_id(self, id: int) -> None:
        """A user range begins on this thread."""
        self._here.users.append(id)

    def pop_user_correlation_id(self) -> None:
        """A user range ends on this thread."""
        if self._here.users:
            self._here.users.pop()

    def _mark(self) -> Any:
        """Record an event on the current stream of the current device; None where the backend refuses."""
        try:
            event = torch.Event(device=self._device, enable_timing=True)
            event.record(self._module.current_stream())
        except RuntimeError as error:
            if str(error) not in self._errors:
                self._errors.append(str(error))
            return None
        return event

    def stop(self) -> None:
        """Stop measuring, and wait for every device."""
        self._recording = False
        for index in self._bases:
            self._module.synchronize(index)

    def process_trace(
        self, logger: ActivityLogger, get_linked_activity: GetLinkedActivity, start_ns: int, end_ns: int
    ) -> None:
        """Hand over a span for each measured op during which its stream moved on."""
        spans = [span for span in self._spans if span.device in self._bases]
        times = np.array([self._times_ns(span) for span in spans], dtype=np.int64).reshape(-1, 2)
        moved = times[:, 1] > times[:, 0]  # an op of the host leaves the stream where it was
        columns = np.array(
            [(s.op_id, s.user_id, s.thread_id, s.device, s.stream) for s in spans], dtype=np.int64
        ).reshape(-1, 5)[moved]
        if not len(columns):
            return
        measured = MetadataColumn(MetadataKind.STRING, np.ones(len(columns), dtype=np.int32))
        batch = ActivityBatch.from_columns(
            [_NAME, "two events on the stream, not a kernel"],
            activity_type=int(_KIND),
            name=0,
            start=times[moved, 0],
            end=times[moved, 1],
            id=np.arange(1, len(columns) + 1),
            device=columns[:, 3],
            resource=columns[:, 4],
            thread_id=columns[:, 2],
            linked=columns[:, 0],
            linked_user=columns[:, 1],
            metadata={"measured by": measured},
        )
        logger.handle_activities(batch)

    def _times_ns(self, span: _Span) -> tuple[int, int]:
        base, base_ns = self._bases[span.device]
        start_ms, length_ms = base.elapsed_time(span.began), span.began.elapsed_time(span.ended)
        start_ns = base_ns + round(start_ms * 1e6)
        return start_ns, start_ns + round(length_ms * 1e6)

    def get_device_infos(self) -> Sequence[DeviceInfo]:
        """Name the devices' rows."""
        return [DeviceInfo(index, f"{self._device} {index}", label="torch events") for index in self._bases]

    def get_metadata(self) -> Mapping[str, object]:
        """Say what the spans are."""
        return {f"{self._device} spans": "ranges between torch events around ops, not kernels"}

    def errors(self) -> Sequence[str]:
        """Return what the backend said when it refused an event."""
        return self._errors
