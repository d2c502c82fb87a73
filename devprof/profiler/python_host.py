"""`PythonHost`: records without torch: devprof's own ranges, functions and memory, and the plugins beside them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from devprof.capture import (
    RECORDING,
    CaptureSession,
    HeldInterrupt,
    Holder,
    SessionReport,
    SessionState,
    warn_if_lossy,
)
from devprof.capture.hosting import ProfileOptions, ProfilerStats, WantedActivity
from devprof.clock import HostClock
from devprof.contract import GetLinkedActivity, MemoryReporter, SessionConfig
from devprof.errors import SessionError, UsageError
from devprof.host import HostOptions, HostRecorder, HostRecording
from devprof.host.memory import RangeMemoryReporter
from devprof.pipeline import known_ops
from devprof.profiler.facts import facts_of
from devprof.profiler.mirrors import mirrors_of
from devprof.profiler.participants import matching, participants
from devprof.profiler.tracing import totals_of, traced
from devprof.registry import RegisteredProfiler
from devprof.store import Trace
from devprof.store.limits import WhenFull
from devprof.store.totals import NameTotal

__all__ = ["PythonHost"]

_WHAT = "a devprof.profile with host='python'"
_CPU = "CPU"
_MARGIN_NS = 5 * 10**9
"""So long before a snapshot's window the launches of its work may have been handed over."""
_COMES_LATE = "it cannot hand over records while it records (flush_trace), so its records come at the stop"


@dataclass(slots=True)
class _Cycle:
    """One cycle, from `prepare` on.

    Attributes:
        capture: the plugins' part.
        clock: the clock of everything in it; taken again at the start, however long the warm-up was.
        holder: the hold on `RECORDING`, while it records.
        recorder: the host's part, while it records.
        start_ns: start of the window, Unix ns.
    """

    capture: CaptureSession
    clock: HostClock
    holder: Holder | None = None
    recorder: HostRecorder | None = None
    start_ns: int = 0


class PythonHost:
    """Implements `ProfilerHost`; every thread may call it, one at a time."""

    name = "python"
    step_counters = ()

    def __init__(self, options: ProfileOptions) -> None:
        """Make a host, and find the plugins.

        Raises:
            UsageError: a plugin is unknown, or an option is torch's alone.
        """
        if options.torch_only:
            raise UsageError(f"{', '.join(options.torch_only)}: only torch's profiler knows that; use host='torch'")
        if options.cpu is not None and options.cpu.kinds is not None:
            raise UsageError("host='python' records all kinds of the host's side; name 'cpu' without a list of kinds")
        self.trace_id = ""
        self.stats = ProfilerStats()
        self._options = options
        self._host_options = HostOptions(
            record_shapes=options.record_shapes,
            profile_memory=options.profile_memory,
            with_stack=options.with_stack and options.cpu is not None,
            with_modules=options.with_modules,
            record_ranges=options.cpu is not None,
            limits=options.limits,
        )
        if self._host_options.with_stack and self._lets_go:
            raise UsageError(
                "with_stack=True keeps every call, up to four million, so it does not go with when_full='ring' or 'totals'; "
                "leave one of the two out"
            )
        self._plugins = participants(options.devices)
        self._metadata: dict[str, object] = {}
        self._cycle: _Cycle | None = None
        self._finished: tuple[Trace, SessionReport] | None = None
        self._last_totals: list[NameTotal] = []

    # -- one cycle ----------------------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Configure the plugins, and load what records: that must not take from the window.

        Raises:
            SessionError: plugins record for somebody else at this moment.
            UsageError, BuildError: a switch asks for what there is not.
        """
        began = time.perf_counter_ns()
        RECORDING.check(_WHAT)
        self.trace_id = self._options.make_trace_id()
        self._cycle = self._new_cycle()
        try:
            HostRecorder(self._host_options).prepare()
            self._cycle.capture.prepare({name: kinds for name, (_, kinds) in self._plugins.items()})
        except BaseException:
            self.cancel("the profile could not be prepared")
            raise
        self.stats = ProfilerStats(prepare_ns=time.perf_counter_ns() - began)

    def start(self) -> None:
        """Start the plugins, then the host's own recording, so that it does not record their hooks.

        Raises:
            SessionError: somebody else's recording began since `prepare`.
        """
        began = time.perf_counter_ns()
        try:
            self._start(self._now())
        except BaseException:
            self.cancel("the profile could not be started")
            raise
        self.stats.enable_ns = time.perf_counter_ns() - began

    def stop(self) -> None:
        """Stop everything, and make the trace. A Ctrl-C meanwhile shortens the plugins' time and is raised at the end."""
        cycle = self._now()
        with HeldInterrupt(cycle.capture.runner.hurry):
            try:
                self._stop(cycle)
            finally:
                self.cancel("devprof failed to stop it")
            warn_if_lossy(cycle.capture.report)
        if cycle.capture.interrupt is not None:
            raise cycle.capture.interrupt

    def cancel(self, reason: str) -> None:
        """End whatever runs; a cycle that has stopped only lets go."""
        cycle, self._cycle = self._cycle, None
        if cycle is None:
            return
        with suppress(Exception):
            if cycle.recorder is not None:
                cycle.recorder.stop()
        with suppress(Exception):
            if cycle.capture.state is not SessionState.DONE:
                cycle.capture.cancel(reason)
        if cycle.holder is not None:
            RECORDING.give_back(cycle.holder)

    def toggle(self, enabled: bool, activities: tuple[WantedActivity, ...]) -> None:
        """Pause or resume the host's own recording, some plugins, or both.

        Raises:
            UsageError: an activity takes no part in this profile.
        """
        for group in activities:
            plugins = matching(group.name, [plugin for plugin, _ in self._plugins.values()])
            if group.name != _CPU and not plugins:
                raise UsageError(f"toggle: {group.name!r} takes no part in this profile")
            self._toggle(enabled, group.name == _CPU, plugins)

    # -- what there is to know ----------------------------------------------------------------------------------------

    @property
    def report(self) -> SessionReport | None:
        """The account of the latest cycle that has stopped."""
        return None if self._finished is None else self._finished[1]

    def trace(self) -> Trace:
        """Return the trace of the latest cycle that has stopped.

        Raises:
            UsageError: there is none.
        """
        if self._finished is None:
            raise UsageError("nothing is recorded yet")
        return self._finished[0]

    def snapshot(self, seconds: float | None) -> Trace:
        """Return what was recorded in the last seconds, or all that is kept; recording goes on.

        Raises:
            SessionError: nothing is being recorded.
        """
        asked_ticks = time.perf_counter_ns()  # what is asked for are the seconds before the call
        cycle, recorder = self._recording("snapshot")
        since_ticks = None if seconds is None else asked_ticks - round(seconds * 1e9)
        start_ns = max(cycle.start_ns, 0 if since_ticks is None else _unix_ns(cycle.clock, since_ticks))
        cycle.capture.drain()
        # before the host's part: had it all stopped meanwhile, asking for that raises
        results = [lane.so_far(start_ns - _MARGIN_NS) for lane in cycle.capture.lanes]
        recording = recorder.snapshot(since_ticks)
        end_ns = _unix_ns(cycle.clock, recording.stopped_ticks)
        report = SessionReport(self.name, {result.name: result.ledger for result in results})
        report.start_ns, report.end_ns, report.host_ops = start_ns, end_ns, self._options.cpu is not None
        report.notes += [f"{lane.plugin.name}: {_COMES_LATE}" for lane in cycle.capture.lanes if lane.comes_late]
        facts = {**self._facts(), "snapshot": {"seconds": seconds}}
        return traced(recording, results, report, clock=cycle.clock, facts=facts, may_lack_ops=True).trace

    def totals(self) -> list[NameTotal]:
        """Return counts and times per name, of everything since the start of the cycle that runs, else of the latest."""
        if self._options.limits is None or self._options.limits.when_full is not WhenFull.TOTALS:
            raise UsageError("totals are kept where the profile is made with when_full='totals'")
        if self._cycle is None or self._cycle.recorder is None:
            return self._last_totals
        cycle, recorder = self._recording("totals")
        cycle.capture.drain()
        results = [lane.so_far(0) for lane in cycle.capture.lanes]
        return totals_of(recorder.snapshot(None), results)

    def add_metadata_json(self, key: str, value: str) -> None:
        """Put a fact into the traces that are made from now on."""
        self._metadata[key] = json.loads(value)

    def export_chrome_trace(self, path: str, trace: Callable[[], Trace]) -> None:
        """Write a trace with devprof's own writer."""
        from devprof.export import chrome_trace

        chrome_trace(trace(), path)

    def stopped_early(self) -> bool:
        """Say no: a plugin that stops early reports what it lost."""
        return False

    def check_thread(self, call: str) -> None:
        """Let every thread call."""

    # -- inside -------------------------------------------------------------------------------------------------------

    def _now(self) -> _Cycle:
        if self._cycle is None:
            raise UsageError("the profile was not prepared")
        return self._cycle

    def _recording(self, call: str) -> tuple[_Cycle, HostRecorder]:
        cycle = self._cycle
        recorder = None if cycle is None else cycle.recorder
        if cycle is None or recorder is None:
            raise SessionError(f"{call}() while nothing is being recorded; call it between start and stop")
        return cycle, recorder

    @property
    def _lets_go(self) -> bool:
        limits = self._options.limits
        return limits is not None and limits.when_full in (WhenFull.RING, WhenFull.TOTALS)

    def _facts(self) -> dict[str, object]:
        facts = facts_of(self.name, self._options, self.trace_id, self._metadata)
        limits = self._options.limits
        return facts if limits is None else {**facts, "limits": limits.describe()}

    def _new_cycle(self) -> _Cycle:
        options = self._options
        config = SessionConfig(
            host=self.name,
            trace_id=self.trace_id,
            record_shapes=options.record_shapes,
            profile_memory=options.profile_memory,
            with_stack=options.with_stack,
            with_flops=options.with_flops,
            with_modules=options.with_modules,
            now_ns=lambda: cycle.clock.now_ns(),
            named=options.devices is not None,
        )
        plugins = [plugin for plugin, _ in self._plugins.values()]
        capture = CaptureSession(plugins, config, memory_for=self._memory_of, limits=options.limits)
        capture.report.host_ops = options.cpu is not None
        cycle = _Cycle(capture, HostClock.started())
        return cycle

    def _memory_of(self, plugin: str) -> MemoryReporter:
        return RangeMemoryReporter(self._plugins[plugin][0].capabilities.torch_device or plugin)

    def _start(self, cycle: _Cycle) -> None:
        capture = cycle.capture
        cycle.holder = RECORDING.take(_WHAT)
        cycle.clock = HostClock.started()
        capture.start()
        recorder = HostRecorder(self._host_options, mirrors=mirrors_of(capture.lanes))
        cycle.start_ns = cycle.clock.now_ns()
        recorder.start()
        cycle.recorder = recorder
        capture.watch_clocks()

    def _stop(self, cycle: _Cycle) -> None:
        began = time.perf_counter_ns()
        recorder, cycle.recorder = cycle.recorder, None
        if recorder is None:
            raise UsageError("the profile was not started")
        recording = recorder.stop()
        # the window ends where the ranges of other threads end to be recorded
        end_ns = _unix_ns(cycle.clock, recording.stopped_ticks)
        results = cycle.capture.stop(_asking(recording), cycle.start_ns, end_ns)
        cycle.clock.finish()
        disabled = time.perf_counter_ns()
        report = cycle.capture.report
        report.notes += cycle.clock.doubts
        made = traced(
            recording,
            results,
            report,
            clock=cycle.clock,
            facts=self._facts(),
            may_lack_ops=self._options.limits is not None,
        )
        cycle.capture.finish()
        self._finished, self._last_totals = (made.trace, report), totals_of(recording, results)
        stats = self.stats
        stats.disable_ns, stats.parse_ns = disabled - began, made.linked_ticks - disabled
        stats.tree_ns = time.perf_counter_ns() - made.linked_ticks
        stats.window_ns, stats.number_of_events = end_ns - cycle.start_ns, len(made.trace)

    def _toggle(self, enabled: bool, host_too: bool, plugins: list[RegisteredProfiler]) -> None:
        cycle = self._cycle
        if cycle is None or cycle.recorder is None:
            return
        if host_too:
            cycle.recorder.toggle(enabled)
        for lane in cycle.capture.lanes:
            if lane.plugin in plugins:
                lane.toggle(enabled)


def _unix_ns(clock: HostClock, ticks: int) -> int:
    return int(clock.to_unix_ns(np.array([ticks], dtype=np.int64))[0])


def _asking(recording: HostRecording) -> GetLinkedActivity:
    """Return the question whether the host recorded an op under an id."""
    known = known_ops(recording)
    return lambda op_id: bool(known(np.array([op_id], dtype=np.int64))[0])
