"""`CaptureSession`: all plugins of one capture, driven together by a host."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Set
from contextlib import suppress
from dataclasses import replace

from devprof.capture.lane import Lane, LaneResult
from devprof.capture.ledger import SessionReport
from devprof.capture.phases import PhaseRunner
from devprof.capture.settings import limits_here
from devprof.capture.states import SessionState, advance
from devprof.contract import GetLinkedActivity, MemoryReporter, SessionConfig
from devprof.model import ActivityType
from devprof.registry import RegisteredProfiler
from devprof.store.limits import DEFAULT_RECORDS, Limits

__all__ = ["CaptureSession"]

_SAMPLE_EVERY_S = 1.0
_DRAIN_EVERY_S = 0.5


class CaptureSession:
    """One capture. A host calls `prepare`, `start`, `stop` and `finish` in that order, or `cancel` at any point.

    The host decides what the window is: it passes the window's edges to `stop`. Not thread-safe; one host thread drives it.
    A Ctrl-C on that thread during `prepare` or `start` is raised once the hook that runs has had its grace; during `stop` and
    `cancel` it is kept in `interrupt`, since every plugin is to be stopped, and the host raises it when it is done.
    """

    def __init__(
        self,
        plugins: Iterable[RegisteredProfiler],
        config: SessionConfig,
        *,
        runner: PhaseRunner | None = None,
        memory_for: Callable[[str], MemoryReporter] | None = None,
        limits: Limits | None = None,
    ) -> None:
        """Make a capture that has not begun.

        Args:
            plugins: those that take part.
            config: what the plugins are told of the session.
            runner: runs their hooks; by default one with the budget that the environment sets.
            memory_for: gives each plugin, by name, the memory reporter of its own devices; by default all get the
                configuration's.
            limits: how many of each plugin's records are kept; None: as `limits_here` says.
        """
        limits = limits_here() if limits is None else limits
        self.runner = runner or PhaseRunner()
        self.report = SessionReport(config.host)
        self.state = SessionState.READY
        self.lanes = [Lane(plugin, self.runner, config.now_ns, limits) for plugin in plugins]
        self._drains = limits != Limits(DEFAULT_RECORDS)
        self._config = config
        self._memory_for = memory_for
        self._ended = threading.Event()
        for lane in self.lanes:
            self.report.ledgers[lane.plugin.name] = lane.ledger

    def prepare(self, activity_types: Set[ActivityType] | Mapping[str, Set[ActivityType]]) -> None:
        """Configure every plugin for the requested kinds; the ones that sit out or fail have no part in what follows.

        Args:
            activity_types: the kinds, or the kinds for each plugin by its name.
        """
        self._to("prepare")
        for lane in self.lanes:
            kinds = activity_types[lane.plugin.name] if isinstance(activity_types, Mapping) else activity_types
            lane.configure(kinds, self._config_for(lane))

    def _config_for(self, lane: Lane) -> SessionConfig:
        if self._memory_for is None:
            return self._config
        return replace(self._config, memory=self._memory_for(lane.plugin.name))

    def start(self) -> None:
        """Start every plugin's session."""
        self._to("start")
        for lane in self.lanes:
            lane.start()

    def watch_clocks(self) -> None:
        """Sample the plugins' clocks once a second until the capture stops; with limits, take over what they have, too.

        Called after the host's recording began, so that these threads are not among those that torch traces.
        """
        if any(lane.alive and lane.has_running_clock for lane in self.lanes):
            self._begin(self._watch, "devprof-clock")
        if self._drains and any(lane.flushes for lane in self.lanes):
            self._begin(self._drain_now_and_then, "devprof-drain")

    def drain(self) -> None:
        """Take over what the plugins have so far, for somebody who wants to see it now; on any thread."""
        for lane in self.lanes:
            lane.drain(describe=True)

    def toggle(self, enabled: bool) -> None:
        """Pause or resume every plugin that can; nothing happens outside the recording."""
        if self.state is SessionState.RECORDING:
            for lane in self.lanes:
                lane.toggle(enabled)

    def stop(self, get_linked_activity: GetLinkedActivity, start_ns: int, end_ns: int) -> list[LaneResult]:
        """Stop every plugin and return what each delivered; the window is in Unix ns.

        Args:
            get_linked_activity: says whether the host recorded an op under an id.
            start_ns, end_ns: the capture window, Unix ns.

        Raises:
            SessionError: the capture is not recording.
        """
        self._to("stop")
        self._ended.set()
        self.report.start_ns, self.report.end_ns = start_ns, end_ns
        return [lane.finish(get_linked_activity, start_ns, end_ns) for lane in self.lanes]

    def finish(self) -> SessionReport:
        """Close the account and return it."""
        self._to("finish")
        self.report.complete = True
        return self.report

    def cancel(self, reason: str) -> None:
        """End a capture that will deliver nothing; plugins that were configured or started are stopped."""
        self._to("cancel")
        self._ended.set()
        self.report.notes.append(reason)
        for lane in self.lanes:
            lane.discard()

    @property
    def alive(self) -> bool:
        """True where at least one plugin takes part."""
        return any(lane.alive for lane in self.lanes)

    @property
    def interrupt(self) -> KeyboardInterrupt | None:
        """A Ctrl-C that came while plugins were stopped, for the host to raise; None where there was none."""
        return next((lane.interrupt for lane in self.lanes if lane.interrupt is not None), None)

    def _to(self, action: str) -> None:
        self.state = advance(self.state, action)

    def _begin(self, watch: Callable[[], None], name: str) -> None:
        with suppress(RuntimeError):  # no thread is to be had: what is done at start and stop must do
            threading.Thread(target=watch, name=name, daemon=True).start()

    def _drain_now_and_then(self) -> None:
        while not self._ended.wait(_DRAIN_EVERY_S):
            for lane in self.lanes:
                lane.drain()

    def _watch(self) -> None:
        while not self._ended.wait(_SAMPLE_EVERY_S):
            for lane in self.lanes:
                lane.sample_clock()
