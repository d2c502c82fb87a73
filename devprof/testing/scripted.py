"""`ScriptedProfiler`: a plugin that delivers what a test wrote, and misbehaves where a test says so."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from devprof.contract import (
    ActivityLogger,
    Capabilities,
    CorrelationAccess,
    GetLinkedActivity,
    SessionConfig,
)
from devprof.model import ActivityBatch, ActivityType, DeviceInfo, GenericTraceActivity, ResourceInfo

__all__ = ["Fault", "ScriptedProfiler", "ScriptedSession"]

Record = GenericTraceActivity | ActivityBatch
Script = Callable[[int, int], Iterable[Record]]
Fault = Callable[[], Any]
"""What a hook does instead of its work: raise, return nonsense, hang."""


class ScriptedSession:
    """A session that records its calls and delivers the script's records."""

    def __init__(self, profiler: ScriptedProfiler, config: SessionConfig) -> None:
        self.config = config
        self.calls: list[str] = []
        self._profiler = profiler
        for name, method in profiler.methods.items():
            setattr(self, name, method)

    def start(self) -> Any:
        """Note the call."""
        return self._act("start")

    def stop(self) -> Any:
        """Note the call."""
        return self._act("stop")

    def process_trace(
        self, logger: ActivityLogger, get_linked_activity: GetLinkedActivity, start_ns: int, end_ns: int
    ) -> Any:
        """Deliver what the script makes of the window."""
        if "process_trace" in self._profiler.faults:
            return self._act("process_trace")
        self.calls.append("process_trace")
        for record in self._profiler.script(start_ns, end_ns):
            if isinstance(record, ActivityBatch):
                logger.handle_activities(record)
            else:
                logger.handle_activity(record)
        for count, reason in self._profiler.dropped:
            logger.handle_dropped(count, reason)
        return None

    def toggle_collection_dynamic(self, enabled: bool) -> Any:
        """Note the call and its direction."""
        return self._act("toggle_collection_dynamic on" if enabled else "toggle_collection_dynamic off")

    def errors(self) -> Any:
        """Return no errors, or the fault."""
        return self._act("errors", [])

    def get_device_infos(self) -> Any:
        """Return the script's devices."""
        return self._act("get_device_infos", self._profiler.devices)

    def get_resource_infos(self) -> Any:
        """Return the script's resources."""
        return self._act("get_resource_infos", self._profiler.resources)

    def get_device_properties(self) -> Any:
        """Return no properties, or the fault."""
        return self._act("get_device_properties", [])

    def get_metadata(self) -> Any:
        """Return the script's metadata."""
        return self._act("get_metadata", self._profiler.metadata)

    def get_trace_buffer(self) -> Any:
        """Note the call."""
        return self._act("get_trace_buffer")

    def push_correlation_id(self, id: int) -> None:
        """Note an op."""
        self._profiler.pushed.append(id)

    def pop_correlation_id(self) -> None:
        """Note its end."""
        self._profiler.pushed.append(0)

    def push_user_correlation_id(self, id: int) -> None:
        """Note a user range."""
        self._profiler.pushed_user.append(id)

    def pop_user_correlation_id(self) -> None:
        """Note its end."""
        self._profiler.pushed_user.append(0)

    def _act(self, hook: str, result: Any = None) -> Any:
        self.calls.append(hook)
        fault = self._profiler.faults.get(hook)
        return fault() if fault is not None else result


@dataclass
class ScriptedProfiler:
    """A plugin for tests.

    Attributes:
        label: its name.
        script: makes the records of a window (start_ns, end_ns).
        faults: what a hook does instead, by hook name; ``"configure"`` and the session's methods.
        torch_device: the renamed backend it serves, if any.
        correlation: how it learns ids.
        methods: further methods of its sessions, or others in place of those here, by name.
        dropped: what it says was lost: (count or None, reason).
        asked: the kinds that each `configure` asked for, oldest first.
        sessions: the sessions it made, oldest first.
        pushed, pushed_user: ids of Python pushes, 0 for a pop.
    """

    label: str = "scripted"
    script: Script = field(default=lambda start_ns, end_ns: ())
    faults: Mapping[str, Fault] = field(default_factory=dict)
    methods: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    torch_device: str | None = None
    correlation: CorrelationAccess = CorrelationAccess.READ
    devices: list[DeviceInfo] = field(default_factory=list)
    resources: list[ResourceInfo] = field(default_factory=list)
    metadata: dict[str, object] = field(default_factory=dict)
    dropped: list[tuple[int | None, str]] = field(default_factory=list)
    asked: list[frozenset[ActivityType]] = field(default_factory=list)
    sessions: list[ScriptedSession] = field(default_factory=list)
    pushed: list[int] = field(default_factory=list)
    pushed_user: list[int] = field(default_factory=list)

    def name(self) -> str:
        """Return the label."""
        return self.label

    def capabilities(self) -> Capabilities:
        """Return what the test declared."""
        return Capabilities(torch_device=self.torch_device, correlation=self.correlation)

    def available_activities(self) -> Set[ActivityType]:
        """Return every kind."""
        return frozenset(ActivityType)

    def configure(
        self,
        activity_types: Set[ActivityType],
        config: SessionConfig,
        *,
        ts_ms: int | None = None,
        duration_ms: int | None = None,
    ) -> Any:
        """Make a session, or do what the fault says."""
        self.asked.append(frozenset(activity_types))
        if (fault := self.faults.get("configure")) is not None:
            return fault()
        self.sessions.append(ScriptedSession(self, config))
        return self.sessions[-1]
