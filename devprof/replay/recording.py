"""`Recording`: what a backend delivered, session by session, as values.

Host times are ns on the recording's own axis: the first second of it is empty, so that 0 goes on meaning "no time". Ticks of
the device's clock are as the backend gave them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from devprof.contract import Capabilities, ClockDomain, ClockSample
from devprof.model import ActivityBatch, ActivityType, DeviceInfo, ResourceInfo

__all__ = [
    "AXIS_NS",
    "HookCall",
    "HostRanges",
    "MemoryReport",
    "Push",
    "RecordedSession",
    "Recording",
    "WorkCall",
]

AXIS_NS = 10**9
"""Where a recording's own time axis begins."""


@dataclass(frozen=True, slots=True)
class HookCall:
    """One call of a session's method.

    Attributes:
        hook: the method.
        start_ns, end_ns: when it was called and when it came back.
        failed: what it raised, such as ``"RuntimeError: no device"``; empty: nothing.
    """

    hook: str
    start_ns: int
    end_ns: int
    failed: str


@dataclass(frozen=True, slots=True)
class Push:
    """A correlation id that the host pushed to the session, or took off.

    Attributes:
        at_ns: when.
        thread_id: on which thread.
        kind: 0 for an op, 1 for a user range.
        id: the id; 0 for a pop.
    """

    at_ns: int
    thread_id: int
    kind: int
    id: int


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """A report of the device's memory.

    Attributes:
        at_ns: when.
        thread_id: on which thread.
        address: number of the block; 0 for a failed allocation.
        delta_bytes: bytes more, or less; of a failed allocation the bytes that were asked for.
        allocated_bytes, reserved_bytes: what the device then held.
        device: index of the device.
        failed: True for a failed allocation.
    """

    at_ns: int
    thread_id: int
    address: int
    delta_bytes: int
    allocated_bytes: int
    reserved_bytes: int
    device: int
    failed: bool


@dataclass(frozen=True, slots=True)
class WorkCall:
    """A call of the workload by the conformance kit.

    Attributes:
        scope: the check that it belongs to, such as ``"C301 python"``.
        method: what was called.
        words: its arguments, as `words_of` writes them.
        op_id, user_id: what was current on the thread.
        thread_id: on which thread.
        start_ns, end_ns: when it was called and when it came back.
        result: what it returned, where that is a number or a text.
        failed: what it raised; empty: nothing.
    """

    scope: str
    method: str
    words: str
    op_id: int
    user_id: int
    thread_id: int
    start_ns: int
    end_ns: int
    result: int | float | str | None
    failed: str


@dataclass(frozen=True, slots=True, eq=False)
class HostRanges:
    """Ops and user ranges of the host, in the order in which they began: each is a push and a pop.

    Attributes:
        names: what they are called, one text per range.
        id: (n,) int64, op id.
        thread_id: (n,) int64.
        start_ns, end_ns: (n,) int64.
        is_user: (n,) bool, True for a range that the user named.
    """

    names: tuple[str, ...] = ()
    id: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    thread_id: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    start_ns: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    end_ns: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    is_user: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))

    def __len__(self) -> int:
        return len(self.names)


@dataclass(slots=True)
class RecordedSession:
    """One session of a backend.

    Attributes:
        scope: the check of the conformance kit that it belongs to; empty: none.
        kinds: what it was asked for.
        facts: what it was told: the fields of `SessionConfig` that are plain values.
        refused: True where `configure` returned None.
        methods: the methods that it had.
        hooks: their calls, in order; not those that are made per op.
        said: what its getters returned, by hook: values for JSON.
        domain: its clock, or None for Unix ns.
        samples: readings of that clock.
        batches: what it delivered, as it was delivered.
        device_infos, resource_infos: rows that it named to the logger.
        dropped: what it said was lost: (how many or None, why).
        pushes: what the host pushed to it in Python; a backend that reads the ids gets none.
        reports: its reports of memory.
        window_start_ns, window_end_ns: the window that it was told at the end; 0: it was not.
        host: the host's side.
    """

    scope: str = ""
    kinds: frozenset[ActivityType] = frozenset()
    facts: dict[str, Any] = field(default_factory=dict)
    refused: bool = False
    methods: frozenset[str] = frozenset()
    hooks: list[HookCall] = field(default_factory=list)
    said: dict[str, Any] = field(default_factory=dict)
    domain: ClockDomain | None = None
    samples: list[ClockSample] = field(default_factory=list)
    batches: list[ActivityBatch] = field(default_factory=list)
    device_infos: list[DeviceInfo] = field(default_factory=list)
    resource_infos: list[ResourceInfo] = field(default_factory=list)
    dropped: list[tuple[int | None, str]] = field(default_factory=list)
    pushes: list[Push] = field(default_factory=list)
    reports: list[MemoryReport] = field(default_factory=list)
    window_start_ns: int = 0
    window_end_ns: int = 0
    host: HostRanges = field(default_factory=HostRanges)

    @property
    def started_ns(self) -> int:
        """When `start` came back, else when the session was made."""
        started = [call.end_ns for call in self.hooks if call.hook == "start"]
        return started[0] if started else next((call.end_ns for call in self.hooks), AXIS_NS)


@dataclass(slots=True)
class Recording:
    """What a backend delivered in one run of a program or of the conformance kit.

    Attributes:
        plugin: the backend's name.
        capabilities: what it said of itself.
        available: the kinds that it can record.
        sessions: in the order in which they were configured.
        calls: what the kit had the workload do.
        workload: what the workload has: methods under ``"methods"``, attributes by name.
        settings: the kit's settings, by name; empty: it was no run of the kit.
    """

    plugin: str
    capabilities: Capabilities
    available: frozenset[ActivityType]
    sessions: list[RecordedSession] = field(default_factory=list)
    calls: list[WorkCall] = field(default_factory=list)
    workload: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def is_conformance(self) -> bool:
        """True for a run of the conformance kit."""
        return bool(self.settings)
