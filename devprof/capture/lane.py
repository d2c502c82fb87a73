"""`Lane`: one plugin in one capture, from `configure` to its records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field, replace

from devprof.capture.checks import check_batch
from devprof.capture.collector import Collector
from devprof.capture.hooks import SessionHooks
from devprof.capture.ledger import PluginLedger
from devprof.capture.phases import Outcome, PhaseRunner
from devprof.capture.quarantine import keep_out, kept_out
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
from devprof.registry import Guard, PluginFailure, RegisteredProfiler
from devprof.registry.failures import failure_of

__all__ = ["Lane", "LaneResult"]

_MOST_ERRORS = 100


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
    """Drives one plugin through one capture. Driven by one host thread; hooks run on phase threads, one at a time.

    A hook that was given up on may run on for ever. Whatever it does then changes neither the result nor the ledger.
    """

    def __init__(self, plugin: RegisteredProfiler, runner: PhaseRunner, now_ns: Callable[[], int]) -> None:
        """Make a lane that has not asked its plugin for a session yet.

        Args:
            plugin: the plugin.
            runner: runs the phases; shared by the capture's lanes.
            now_ns: the host's clock, Unix ns.
        """
        self.plugin = plugin
        self.ledger = PluginLedger(plugin.name)
        self.native_correlation: NativeCorrelation | None = None
        self._runner = runner
        self._now_ns = now_ns
        self._guard = Guard(plugin.name, self._failed)
        self._hooks: SessionHooks | None = None
        self._said = LaneResult(plugin.name, self.ledger)
        self._requested: Set[ActivityType] = frozenset()
        self._collector: Collector | None = None
        self._records = False  # start was called, and stop was not
        self._over = False
        self.interrupt: KeyboardInterrupt | None = None

    @property
    def session(self) -> object | None:
        """The plugin's session, or None where it sits this capture out, or failed to make one."""
        return None if self._hooks is None else self._hooks.session

    @property
    def alive(self) -> bool:
        """True while the plugin takes part: it has a session and nothing went wrong."""
        return (
            self._hooks is not None and not self._over and not self._guard.failed and kept_out(self.plugin.name) is None
        )

    @property
    def has_running_clock(self) -> bool:
        """True where the plugin has a clock that runs with the host's, which is worth sampling in between."""
        return self._said.clock_domain is not None and not self._said.clock_domain.virtual

    def configure(self, activity_types: Set[ActivityType], config: SessionConfig) -> bool:
        """Ask the plugin for a session; False where it sits this capture out, or failed."""
        if (reason := kept_out(self.plugin.name)) is not None:
            self.ledger.failures.append(reason)
            return False
        self._requested = frozenset(activity_types) & self.plugin.available_activities
        if self._requested:
            self._phase("configure", lambda: self._configure(config))
        return self.alive

    def push(self, kind: int, id: int) -> None:
        """Forward a push to a plugin that asked for Python calls; on the op's thread. Kind 0 is an op, 1 a user range."""
        self._forward("push_user_correlation_id" if kind else "push_correlation_id", id)

    def pop(self, kind: int) -> None:
        """Forward a pop. As `push`."""
        self._forward("pop_user_correlation_id" if kind else "pop_correlation_id")

    def blame(self, hook: str, message: str) -> None:
        """Set the plugin aside for something that its host saw of it."""
        self._guard.fail(PluginError(self.plugin.name, hook, message))

    def start(self) -> None:
        """Open the plugin's recording."""
        if self.alive:
            self._turn("start", self._start)

    def toggle(self, enabled: bool) -> None:
        """Pause or resume the plugin's recording, where it can."""
        if self._hooks is not None and self.alive and "toggle_collection_dynamic" in self._hooks:
            self._turn("toggle", lambda hooks: hooks.call("toggle_collection_dynamic", enabled))

    def sample_clock(self) -> None:
        """Take one burst of clock samples; for a timer, on any thread. Nothing where the plugin is busy with another hook."""
        hooks = self._hooks
        if hooks is not None and self.alive and self.has_running_clock:
            hooks.sample_unless_busy(self._now_ns, self._said.clock_samples)

    def finish(self, get_linked_activity: GetLinkedActivity, start_ns: int, end_ns: int) -> LaneResult:
        """Stop the plugin, take its records, and return what there is, whatever happened. A Ctrl-C is kept in `interrupt`."""
        self._end(lambda hooks: self._finish(hooks, get_linked_activity, start_ns, end_ns))
        return self._collect()

    def discard(self) -> None:
        """Stop a session whose capture was cancelled, and forget it. A Ctrl-C is kept in `interrupt`."""
        self._end(self._stop)

    def _end(self, phase: Callable[[SessionHooks], object]) -> None:
        try:
            if self.alive:
                self._turn("stop", phase)
            if self._records and kept_out(self.plugin.name) is None:
                # it was set aside while it recorded; its device must not record on into later captures
                self._turn("stop", SessionHooks.stop_quietly)
        except KeyboardInterrupt as interrupt:
            self.interrupt = interrupt
        self._over = True
        self._hooks, self._records = None, False

    def _forward(self, hook: str, *args: int) -> None:
        hooks = self._hooks
        if hooks is not None and not self._over:
            hooks.call_per_op(hook, *args)

    def _failed(self, failure: PluginFailure) -> None:
        if not self._over:
            self.ledger.failures.append(str(failure.error))

    # -- on the host's thread -----------------------------------------------------------------------------------------

    def _turn(self, label: str, phase: Callable[[SessionHooks], object]) -> None:
        hooks = self._hooks

        def body() -> None:
            if hooks is not None:
                with hooks.turn():
                    phase(hooks)

        self._phase(label, body)

    def _phase(self, label: str, phase: Callable[[], object]) -> None:
        outcome = self._runner.run(f"{self.plugin.name}-{label}", phase)
        hook = "configure" if self._hooks is None else self._hooks.running
        if not outcome.finished:
            self._give_up(hook, outcome)
        elif outcome.error is not None:
            self._guard.fail(failure_of(self.plugin.name, hook, outcome.error).error)
        if outcome.interrupt is not None:
            raise outcome.interrupt

    def _give_up(self, hook: str, outcome: Outcome) -> None:
        budget = f"did not come back within {self._runner.timeout_s:g} s (DEVPROF_HOOK_TIMEOUT_S)"
        words = (
            "was cut short by an interrupt; the plugin is left out until it comes back"
            if outcome.hurried
            else f"{budget}; the plugin is left out until the process ends"
        )
        error = PluginTimeoutError(self.plugin.name, hook, words)
        keep_out(self.plugin.name, str(error), until=outcome.thread if outcome.hurried else None)
        self._guard.fail(error)

    def _collect(self) -> LaneResult:
        """Take over what there is; the originals may still be in the hands of a hook that was given up on."""
        said = self._said
        result = replace(
            said,
            batches=[],
            device_infos=list(said.device_infos),
            resource_infos=list(said.resource_infos),
            device_properties=list(said.device_properties),
            metadata=dict(said.metadata),
            clock_samples=list(said.clock_samples),
        )
        if self._collector is not None:
            self._collector.close()
            for batch in self._collector.batches:
                kept, rejected = check_batch(batch, self._requested)
                self.ledger.rejected.update(rejected)
                result.batches.append(kept)
            result.device_infos += self._collector.device_infos
            result.resource_infos += self._collector.resource_infos
            self._collector = None
        return result

    # -- on phase threads ---------------------------------------------------------------------------------------------

    def _configure(self, config: SessionConfig) -> None:
        session = self._guard.call("configure", self.plugin.profiler.configure, self._requested, config)
        if session is None or self._guard.failed:
            return
        hooks = self._guard.call("configure", SessionHooks, self.plugin.name, session, self._guard)
        if hooks is None or self._guard.failed:
            return
        self._hooks = hooks
        self._said.clock_domain = hooks.clock_domain()
        if self.plugin.capabilities.correlation is CorrelationAccess.NATIVE:
            self.native_correlation = hooks.call("native_correlation")

    def _start(self, hooks: SessionHooks) -> None:
        self._sample(hooks)
        if not self._guard.failed:
            self._records = True
            hooks.call("start")

    def _stop(self, hooks: SessionHooks) -> None:
        self._records = False
        hooks.call("stop")

    def _sample(self, hooks: SessionHooks) -> None:
        if self._said.clock_domain is not None:
            hooks.sample(self._now_ns, self._said.clock_samples)

    def _finish(self, hooks: SessionHooks, get_linked_activity: GetLinkedActivity, start_ns: int, end_ns: int) -> None:
        self._stop(hooks)
        self._sample(hooks)
        domain = self._said.clock_domain
        self._collector = Collector(self.ledger, clock=domain.name if domain else HOST_CLOCK)
        hooks.call("process_trace", self._collector, get_linked_activity, start_ns, end_ns)
        self._describe(hooks)
        hooks.call("get_trace_buffer")

    def _describe(self, hooks: SessionHooks) -> None:
        status = hooks.call("status")
        errors = hooks.call("errors", default=())
        self.ledger.errors += list(errors)[:_MOST_ERRORS]
        if status is TraceStatus.ERROR and not errors:
            self.ledger.errors.append(f"status is {status.value}")
        self._said.device_infos += hooks.call("get_device_infos", default=())
        self._said.resource_infos += hooks.call("get_resource_infos", default=())
        self._said.device_properties += hooks.call("get_device_properties", default=())
        self._said.metadata |= hooks.call("get_metadata", default={})
