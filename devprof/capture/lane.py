"""`Lane`: one plugin in one capture, from `configure` to its records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from devprof.capture.checks import check_batch
from devprof.capture.collector import Collector
from devprof.capture.ledger import PluginLedger
from devprof.capture.phases import PhaseRunner
from devprof.clock import sample
from devprof.contract import (
    HOST_CLOCK,
    ClockDomain,
    ClockSample,
    CorrelationAccess,
    GetLinkedActivity,
    NativeCorrelation,
    SessionConfig,
    TraceStatus,
)
from devprof.errors import PluginError, PluginTimeoutError
from devprof.model import ActivityBatch, ActivityType, DeviceInfo, ResourceInfo
from devprof.registry import SESSION_RETURNS, Guard, PluginFailure, RegisteredProfiler, validate_session

__all__ = ["Lane", "LaneResult", "quarantined"]

_QUARANTINED: dict[str, str] = {}


def quarantined() -> Mapping[str, str]:
    """Plugins that are left out for the life of the process, with the reason: a hook of theirs never came back."""
    return dict(_QUARANTINED)


@dataclass(slots=True)
class LaneResult:
    """What one plugin delivered: checked batches on its own clock, and what it said about its rows."""

    name: str
    ledger: PluginLedger
    batches: list[ActivityBatch] = field(default_factory=list)
    device_infos: list[DeviceInfo] = field(default_factory=list)
    resource_infos: list[ResourceInfo] = field(default_factory=list)
    device_properties: list[Mapping[str, object]] = field(default_factory=list)
    metadata: dict[str, object] = field(default_factory=dict)
    clock_domain: ClockDomain | None = None
    clock_samples: list[ClockSample] = field(default_factory=list)


class Lane:
    """Drives one plugin through one capture. Driven by one host thread; hooks run on phase threads, one at a time."""

    def __init__(self, plugin: RegisteredProfiler, runner: PhaseRunner, now_ns: Callable[[], int]) -> None:
        self.plugin = plugin
        self.ledger = PluginLedger(plugin.name)
        self.session: Any = None  # a plugin's object: checked by validate_session, then called through the guard
        self.native_correlation: NativeCorrelation | None = None
        self._runner = runner
        self._now_ns = now_ns
        self._guard = Guard(plugin.name, self._failed)
        self._result = LaneResult(plugin.name, self.ledger)
        self._requested: Set[ActivityType] = frozenset()
        self._collector: Collector | None = None
        self._hook = "configure"

    @property
    def alive(self) -> bool:
        """True while the plugin takes part: it has a session and nothing went wrong."""
        return self.session is not None and not self._guard.failed and self.plugin.name not in _QUARANTINED

    def configure(self, activity_types: Set[ActivityType], config: SessionConfig) -> bool:
        """Ask the plugin for a session; False where it sits this capture out, or failed."""
        if self.plugin.name in _QUARANTINED:
            self.ledger.failures.append(_QUARANTINED[self.plugin.name])
            return False
        self._requested = frozenset(activity_types) & self.plugin.available_activities
        if self._requested:
            self._phase("configure", lambda: self._configure(config))
        return self.alive

    def push(self, kind: int, id: int) -> None:
        """Forward a push to a plugin that asked for Python calls; on the op's thread. Kind 0 is an op, 1 a user range."""
        self._call("push_user_correlation_id" if kind else "push_correlation_id", id)

    def pop(self, kind: int) -> None:
        """Forward a pop. As `push`."""
        self._call("pop_user_correlation_id" if kind else "pop_correlation_id")

    def start(self) -> None:
        """Open the plugin's recording."""
        if self.alive:
            self._phase("start", self._start)

    def toggle(self, enabled: bool) -> None:
        """Pause or resume the plugin's recording, where it can."""
        if self.alive and hasattr(self.session, "toggle_collection_dynamic"):
            self._phase("toggle", lambda: self._call("toggle_collection_dynamic", enabled))

    def sample_clock(self) -> None:
        """Take one burst of clock samples; for a timer, on any thread."""
        domain = self._result.clock_domain
        if self.alive and domain is not None and not domain.virtual:
            self._sample()

    def finish(self, get_linked_activity: GetLinkedActivity, start_ns: int, end_ns: int) -> LaneResult:
        """Stop the plugin, take its records, and return what there is, whatever happened."""
        if self.session is not None:
            if self.alive:
                self._phase("stop", lambda: self._finish(get_linked_activity, start_ns, end_ns))
            self._collect()
        # the host may hold on to this lane while torch turns the records into its own; the records must not stay with it
        result, self._result = self._result, LaneResult(self.plugin.name, self.ledger)
        self._collector = None
        return result

    def discard(self) -> None:
        """Stop a session whose capture was cancelled, and forget it."""
        if self.alive:
            self._phase("stop", lambda: self._call("stop"))
        self.session = None

    def _failed(self, failure: PluginFailure) -> None:
        self.ledger.failures.append(str(failure.error))

    def _phase(self, label: str, phase: Callable[[], None]) -> None:
        outcome = self._runner.run(f"{self.plugin.name}-{label}", phase)
        if not outcome.finished:
            self._time_out()
        elif outcome.error is not None:
            self._guard.fail(PluginError(self.plugin.name, f"session.{self._hook}", repr(outcome.error)))

    def _time_out(self) -> None:
        hook = f"session.{self._hook}" if self._hook != "configure" else "configure"
        error = PluginTimeoutError(
            self.plugin.name,
            hook,
            f"did not come back within {self._runner.timeout_s:g} s (DEVPROF_HOOK_TIMEOUT_S); the plugin is left out until "
            "the process ends",
        )
        _QUARANTINED[self.plugin.name] = str(error)
        self._guard.fail(error)

    def _call(self, hook: str, *args: Any, default: Any = None) -> Any:
        method = getattr(self.session, hook, None)
        if method is None or self._guard.failed:
            return default
        self._hook = hook
        return self._guard.call(f"session.{hook}", method, *args, expect=SESSION_RETURNS[hook], default=default)

    def _configure(self, config: SessionConfig) -> None:
        self._hook = "configure"
        session = self._guard.call("configure", self.plugin.profiler.configure, self._requested, config)
        if session is None or self._guard.failed:
            return
        self._guard.call("configure", validate_session, self.plugin.name, session)
        if self._guard.failed:
            return
        self.session = session
        self._result.clock_domain = self._call("clock_domain")
        if self.plugin.capabilities.correlation is CorrelationAccess.NATIVE:
            self.native_correlation = self._call("native_correlation")

    def _start(self) -> None:
        self._sample()
        self._call("start")

    def _sample(self) -> None:
        if self._result.clock_domain is None or not hasattr(self.session, "sample_clock"):
            return
        self._hook = "sample_clock"
        burst = self._guard.call("session.sample_clock", sample, self.session.sample_clock, self._now_ns, default=[])
        self._result.clock_samples += burst

    def _finish(self, get_linked_activity: GetLinkedActivity, start_ns: int, end_ns: int) -> None:
        self._call("stop")
        self._sample()
        domain = self._result.clock_domain
        self._collector = Collector(self.ledger, clock=domain.name if domain else HOST_CLOCK)
        self._call("process_trace", self._collector, get_linked_activity, start_ns, end_ns)
        self._describe()
        self._call("get_trace_buffer")

    def _describe(self) -> None:
        status = self._call("status")
        said = self._call("errors", default=())
        self.ledger.errors += said or ([f"status is {status.value}"] if status is TraceStatus.ERROR else [])
        self._result.device_infos += self._call("get_device_infos", default=())
        self._result.resource_infos += self._call("get_resource_infos", default=())
        self._result.device_properties += self._call("get_device_properties", default=())
        self._result.metadata |= self._call("get_metadata", default={})

    def _collect(self) -> None:
        """Take over what the collector holds; it may still be in the hands of a hook that was given up on."""
        collector = self._collector
        if collector is None:
            return
        collector.close()
        for batch in collector.batches:
            kept, rejected = check_batch(batch, self._requested)
            self.ledger.rejected.update(rejected)
            self._result.batches.append(kept)
        self._result.device_infos += collector.device_infos
        self._result.resource_infos += collector.resource_infos

