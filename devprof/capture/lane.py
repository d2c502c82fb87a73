"""`Lane`: one plugin in one capture, from `configure` to its records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field, replace
from logging import getLogger

from devprof.capture.checks import MEMORY_REPORT
from devprof.capture.collector import Collector
from devprof.capture.hooks import SessionHooks
from devprof.capture.infos import Infos
from devprof.capture.kept import Kept
from devprof.capture.ledger import PluginLedger
from devprof.capture.phases import Outcome, PhaseRunner
from devprof.capture.quarantine import keep_out, kept_out, verdict_on
from devprof.capture.samples import recent
from devprof.capture.settings import limits_here
from devprof.capture.verdict import HOOK_RETURNS, PROCESS_ENDS, SetAside
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
from devprof.model.reasons import BEFORE_WINDOW
from devprof.registry import Guard, PluginFailure, RegisteredProfiler
from devprof.registry.failures import failure_of
from devprof.store.limits import Limits
from devprof.store.totals import Totals

__all__ = ["Lane", "LaneResult"]

log = getLogger("devprof.capture")

_MOST_ERRORS = 100


@dataclass(slots=True)
class LaneResult:
    """What one plugin delivered: checked batches on its own clock, and what it said about its rows.

    `let_go_through` is, by clock, the latest start of a record that was let go for newer ones; `totals` are sums over all
    records, by clock, where they are added up.
    """

    name: str
    ledger: PluginLedger
    batches: list[ActivityBatch] = field(default_factory=list)
    device_infos: list[DeviceInfo] = field(default_factory=list)
    resource_infos: list[ResourceInfo] = field(default_factory=list)
    device_properties: list[Mapping[str, object]] = field(default_factory=list)
    metadata: dict[str, object] = field(default_factory=dict)
    clock_domain: ClockDomain | None = None
    clock_samples: list[ClockSample] = field(default_factory=list)
    let_go_through: dict[str, int] = field(default_factory=dict)
    totals: dict[str, Totals] = field(default_factory=dict)


class Lane:
    """Drives one plugin through one capture. Driven by one host thread; hooks run on phase threads, one at a time.

    A hook that was given up on may run on for ever. Whatever it does then changes neither the result nor the ledger.
    """

    def __init__(
        self,
        plugin: RegisteredProfiler,
        runner: PhaseRunner,
        now_ns: Callable[[], int],
        limits: Limits | None = None,
    ) -> None:
        """Make a lane that has not asked its plugin for a session yet.

        Args:
            plugin: the plugin.
            runner: runs the phases; shared by the capture's lanes.
            now_ns: the host's clock, Unix ns.
            limits: how many of its records are kept; None: as `limits_here` says.
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
        self._limits = limits_here() if limits is None else limits
        self._kept = Kept(self.ledger, frozenset(), self._limits, now_ns=now_ns)
        self._flushed = Infos()
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
            self.ledger.set_aside = verdict_on(self.plugin.name)
            return False
        self._requested = frozenset(activity_types) & self.plugin.available_activities
        # under torch reports of memory go to its profiler as they happen, because its own stand beside them
        late_reports = {MEMORY_REPORT} if config.profile_memory and config.host == "python" else frozenset()
        taken = self._requested | late_reports
        self._kept = Kept(self.ledger, taken, self._limits, now_ns=self._now_ns, roughly_ns=self._roughly_ns)
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
            self._turn("toggle_collection_dynamic", lambda hooks: hooks.call("toggle_collection_dynamic", enabled))

    def sample_clock(self) -> None:
        """Take one burst of clock samples; for a timer, on any thread. Nothing where the plugin is busy with another hook."""
        hooks = self._hooks
        if hooks is not None and self.alive and self.has_running_clock:
            hooks.sample_unless_busy(self._now_ns, self._said.clock_samples)

    @property
    def flushes(self) -> bool:
        """True where the plugin can hand over records while it records."""
        return self._hooks is not None and "flush_trace" in self._hooks

    @property
    def comes_late(self) -> bool:
        """True where it takes part, and hands over nothing before the stop."""
        return self.alive and not self.flushes

    def drain(self, *, describe: bool = False) -> None:
        """Take over what the plugin has so far, where it can; on any thread, while it records.

        Args:
            describe: ask also for its devices and rows.
        """
        if self.flushes and self.alive and self._records:
            self._turn("flush_trace", lambda hooks: self._flush(hooks, describe=describe), self._runner.beside())

    def so_far(self, came_ns: int) -> LaneResult:
        """Return what was delivered at a time or later, with an account of its own; nothing here is changed by its use."""
        domain, ledger = self._said.clock_domain, self.ledger.copied()
        if domain is not None and domain.virtual:
            came_ns = 0  # no window is applied to its times
        batches, early = self._kept.since(came_ns)
        if early:
            ledger.dropped[BEFORE_WINDOW] += early
        result = replace(self._taken_over(), ledger=ledger, batches=batches, totals=self._kept.all_totals())
        self._flushed.put_before(result.device_infos, result.resource_infos)
        return result

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
            if self.ledger.set_aside is None:
                self._set_aside(SetAside(failure.hook, self._now_ns()))

    def _set_aside(self, verdict: SetAside) -> None:
        self.ledger.set_aside = verdict
        log.info("plugin %r is %s", self.plugin.name, verdict)

    # -- on the host's thread -----------------------------------------------------------------------------------------

    def _turn(self, hook: str, phase: Callable[[SessionHooks], object], runner: PhaseRunner | None = None) -> None:
        hooks = self._hooks

        def body() -> None:
            if hooks is not None:
                with hooks.turn():
                    hooks.running = f"session.{hook}"
                    phase(hooks)

        self._phase(hook, body, runner)

    def _phase(self, label: str, phase: Callable[[], object], runner: PhaseRunner | None = None) -> None:
        outcome = (runner or self._runner).run(f"{self.plugin.name}-{label}", phase)
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
        verdict = SetAside(hook, self._now_ns(), HOOK_RETURNS if outcome.hurried else PROCESS_ENDS)
        keep_out(self.plugin.name, str(error), until=outcome.thread if outcome.hurried else None, verdict=verdict)
        self._set_aside(verdict)
        self._guard.fail(error)

    def _collect(self) -> LaneResult:
        """Take over what there is; the originals may still be in the hands of a hook that was given up on."""
        result = self._taken_over()
        collector, self._collector = self._collector, None
        if collector is not None:
            collector.close()
            result.device_infos += collector.device_infos
            result.resource_infos += collector.resource_infos
        self._flushed.put_before(result.device_infos, result.resource_infos)
        return replace(result, totals=self._kept.all_totals(), batches=self._kept.take())

    def _taken_over(self) -> LaneResult:
        said = self._said
        return replace(
            said,
            batches=[],
            device_infos=list(said.device_infos),
            resource_infos=list(said.resource_infos),
            device_properties=list(said.device_properties),
            metadata=dict(said.metadata),
            clock_samples=recent(said.clock_samples, self._kept.oldest_ns if self._kept.let_go_through else None),
            let_go_through=dict(self._kept.let_go_through),
        )

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

    def _flush(self, hooks: SessionHooks, *, describe: bool) -> None:
        if self._over or not self._records:  # it stopped while this waited for its turn
            return
        if describe:
            self._sample(hooks)
        collector = self._collector = self._new_collector()
        hooks.call("flush_trace", collector)
        collector.close()
        self._flushed.add(collector.device_infos, collector.resource_infos)
        if describe:
            self._flushed.add(hooks.call("get_device_infos", default=()), hooks.call("get_resource_infos", default=()))

    def _roughly_ns(self, clock: str, ticks: int) -> int:
        domain, samples = self._said.clock_domain, self._said.clock_samples
        if domain is None or clock != domain.name or not samples:
            return ticks
        last = samples[-1]
        return last.host_after_ns + round((ticks - last.device_ticks) * 1e9 / domain.ticks_per_second)

    def _new_collector(self) -> Collector:
        domain = self._said.clock_domain
        return Collector(self.ledger, clock=domain.name if domain else HOST_CLOCK, kept=self._kept)

    def _finish(self, hooks: SessionHooks, get_linked_activity: GetLinkedActivity, start_ns: int, end_ns: int) -> None:
        self._stop(hooks)
        self._sample(hooks)
        self._collector = self._new_collector()
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
