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
    UNKNOWN_OP,
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
from devprof.errors import UsageError
from devprof.host import HostOptions, HostRecorder, HostRecording
from devprof.host.memory import RangeMemoryReporter
from devprof.pipeline import assemble, known_ops
from devprof.profiler.facts import facts_of
from devprof.profiler.lanes import FIRST_LAUNCH, linked_lanes
from devprof.profiler.mirrors import mirrors_of
from devprof.profiler.participants import matching, participants
from devprof.registry import RegisteredProfiler
from devprof.store import Trace

__all__ = ["PythonHost"]

_WHAT = "a devprof.profile with host='python'"
_CPU = "CPU"


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
        )
        self._plugins = participants(options.devices)
        self._metadata: dict[str, object] = {}
        self._next_launch = FIRST_LAUNCH
        self._cycle: _Cycle | None = None
        self._finished: tuple[Trace, SessionReport] | None = None

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
        )
        plugins = [plugin for plugin, _ in self._plugins.values()]
        capture = CaptureSession(plugins, config, memory_for=self._memory_of)
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
        (end_ns,) = cycle.clock.to_unix_ns(np.array([recording.stopped_ticks], dtype=np.int64)).tolist()
        results = cycle.capture.stop(_asking(recording), cycle.start_ns, end_ns)
        cycle.clock.finish()
        disabled = time.perf_counter_ns()
        report = cycle.capture.report
        report.notes += cycle.clock.doubts
        lanes = linked_lanes(results, recording, report, first_launch=self._next_launch)
        self._next_launch = max([self._next_launch, *(lane.next_launch for lane in lanes)])
        # work outside of every range is no mistake here, as it is where a framework records all its ops; wrong ids are
        report.host_ops &= any(ledger.notes[UNKNOWN_OP] for ledger in report.ledgers.values())
        linked = time.perf_counter_ns()
        account: dict[str, object] = {}  # `assemble` counts what it leaves out, so this is filled afterwards
        trace = assemble(
            recording,
            lanes,
            clock=cycle.clock,
            window_start_ns=cycle.start_ns,
            window_end_ns=end_ns,
            facts=facts_of(self.name, self._options, self.trace_id, self._metadata) | {"report": account},
        )
        account |= cycle.capture.finish().as_dict()
        self._finished = trace, report
        stats = self.stats
        stats.disable_ns, stats.parse_ns = disabled - began, linked - disabled
        stats.tree_ns = time.perf_counter_ns() - linked
        stats.window_ns, stats.number_of_events = end_ns - cycle.start_ns, len(trace)

    def _toggle(self, enabled: bool, host_too: bool, plugins: list[RegisteredProfiler]) -> None:
        cycle = self._cycle
        if cycle is None or cycle.recorder is None:
            return
        if host_too:
            cycle.recorder.toggle(enabled)
        for lane in cycle.capture.lanes:
            if lane.plugin in plugins:
                lane.toggle(enabled)


def _asking(recording: HostRecording) -> GetLinkedActivity:
    """Return the question whether the host recorded an op under an id."""
    known = known_ops(recording)
    return lambda op_id: bool(known(np.array([op_id], dtype=np.int64))[0])
