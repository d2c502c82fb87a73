"""`Recorder`: notes what a plugin's sessions are told, and what they deliver, while a program runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Set
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Self

import numpy as np

from devprof.contract import (
    HOST_CLOCK,
    ActivityLogger,
    Capabilities,
    ClockDomain,
    ClockSample,
    IActivityProfiler,
    MemoryReporter,
    SessionConfig,
)
from devprof.errors import UsageError
from devprof.model import (
    ActivityBatch,
    ActivityType,
    BatchBuilder,
    DeviceInfo,
    GenericTraceActivity,
    MixedKindsError,
    RecordError,
    ResourceInfo,
)
from devprof.registry import SESSION_RETURNS, discover
from devprof.replay.recording import HookCall, HostRanges, MemoryReport, Push, RecordedSession, Recording, WorkCall
from devprof.replay.scrub import scrubbed
from devprof.replay.tapping import TappedSession, tapped
from devprof.replay.values import encoded
from devprof.store import Trace

__all__ = ["Recorder"]

_PUSHES = {"push_correlation_id": 0, "push_user_correlation_id": 1}
_POPS = {"pop_correlation_id": 0, "pop_user_correlation_id": 1}
_DELIVERING = ("process_trace", "flush_trace")
_FACTS = ("host", "record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules")


class Recorder:
    """Records one plugin, as a context manager. Sessions that are configured meanwhile are recorded, to their end.

    Attributes:
        scope: what the sessions and calls from now on belong to; see `RecordedSession.scope`.
        is_paused: True while sessions and calls are not noted.
        n_malformed: records that no column can hold; they are not in the recording.
    """

    def __init__(self, plugin: str | IActivityProfiler, *, now_ns: Callable[[], int] | None = None) -> None:
        """Find the plugin.

        Args:
            plugin: its name, or its activity profiler.
            now_ns: the host's clock, Unix ns; by default that of each session.

        Raises:
            UsageError: there is no plugin of that name.
        """
        self.scope = ""
        self.is_paused = False
        self.n_malformed = 0
        self._profiler = _profiler(plugin)
        self._now_ns = now_ns
        self._latest_now_ns = now_ns or time.time_ns
        self._sessions: list[RecordedSession] = []
        self._calls: list[WorkCall] = []
        self._taps = ExitStack()

    def __enter__(self) -> Self:
        self._taps.enter_context(tapped(self._profiler, self._around))
        return self

    def __exit__(self, *error: object) -> None:
        self._taps.close()

    def now_ns(self) -> int:
        """Return the host's time, Unix ns, on the clock of the latest session."""
        return self._latest_now_ns()

    def note_call(self, call: WorkCall) -> None:
        """Note a call of the workload."""
        if not self.is_paused:
            self._calls.append(call)

    def note_host(self, host: Trace | HostRanges, session: int = -1) -> None:
        """Note the host's side of a session.

        Args:
            host: its ranges, or the trace of the profile that the session was part of.
            session: which session; by default the latest.
        """
        if self._sessions:
            self._sessions[session].host = host if isinstance(host, HostRanges) else _ranges_of(host)

    def recording(self, *, keep_texts: bool = False, **facts: Any) -> Recording:
        """Return what was recorded, on a time axis of its own.

        Args:
            keep_texts: keep the names of the user's ranges, and paths, host and user names in texts.
            facts: `workload` and `settings` of the recording.

        Raises:
            UsageError: the plugin took part in no session.
        """
        profiler = self._profiler
        if not self._sessions:
            raise UsageError(f"{profiler.name()!r} took part in no session, so there is nothing to record")
        capabilities: Capabilities = profiler.capabilities()
        available = frozenset(profiler.available_activities())
        whole = Recording(profiler.name(), capabilities, available, self._sessions, self._calls, **facts)
        return scrubbed(whole, keep_texts=keep_texts)

    # -- sessions -----------------------------------------------------------------------------------------------------

    def _around(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        def configure(activity_types: Set[ActivityType], config: SessionConfig, **planned: Any) -> Any:
            return self._configured(inner, activity_types, config, planned)

        return configure

    def _configured(
        self, inner: Callable[..., Any], kinds: Set[ActivityType], config: SessionConfig, planned: dict[str, Any]
    ) -> Any:
        if self.is_paused:
            return inner(kinds, config, **planned)
        facts = {key: getattr(config, key) for key in _FACTS}
        noted = RecordedSession(scope=self.scope, kinds=frozenset(kinds), facts=facts)
        now_ns = self._latest_now_ns = config.now_ns if self._now_ns is None else self._now_ns
        self._sessions.append(noted)
        if config.memory is not None:
            config = replace(config, memory=_Reporter(config.memory, noted, now_ns))
        session = _timed(noted, "configure", now_ns, lambda: inner(kinds, config, **planned))
        noted.refused = session is None
        return None if session is None else _Tap(self, noted, now_ns).before(session)


class _Tap:
    """Notes the calls of one session."""

    def __init__(self, recorder: Recorder, noted: RecordedSession, now_ns: Callable[[], int]) -> None:
        self._recorder = recorder
        self._noted = noted
        self._now_ns = now_ns

    def before(self, session: Any) -> TappedSession:
        """Return what devprof gets in place of the session."""
        tap = TappedSession(session, self._around)
        self._noted.methods = frozenset(hook for hook in SESSION_RETURNS if getattr(tap, hook, None) is not None)
        return tap

    def _around(self, hook: str, method: Callable[..., Any]) -> Callable[..., Any]:
        if hook in _PUSHES:
            return lambda number: self._pushed(_PUSHES[hook], number, lambda: method(number))
        if hook in _POPS:
            return lambda: self._pushed(_POPS[hook], 0, method)
        if hook == "sample_clock":
            return lambda: self._sampled(method)
        return lambda *args: self._called(hook, method, args)

    def _pushed(self, kind: int, id: int, call: Callable[[], Any]) -> Any:
        self._noted.pushes.append(Push(self._now_ns(), threading.get_native_id(), kind, id))
        return call()

    def _sampled(self, method: Callable[[], Any]) -> Any:
        before_ns = self._now_ns()
        ticks = method()
        after_ns = self._now_ns()
        if isinstance(ticks, int):
            self._noted.samples.append(ClockSample(before_ns, ticks, after_ns))
        return ticks

    def _called(self, hook: str, method: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        noted = self._noted
        logger = None
        if hook == "process_trace" and len(args) == 4:
            noted.window_start_ns, noted.window_end_ns = args[2], args[3]
        if hook in _DELIVERING and args:
            logger = _Logger(args[0], noted)
            args = (logger, *args[1:])
        try:
            value = _timed(noted, hook, self._now_ns, lambda: method(*args))
        finally:
            if logger is not None:
                logger.flush()
                self._recorder.n_malformed += logger.n_malformed
        if hook == "clock_domain":
            noted.domain = value if isinstance(value, ClockDomain) else None
        noted.said[hook] = encoded(value)
        return value


def _timed(noted: RecordedSession, hook: str, now_ns: Callable[[], int], call: Callable[[], Any]) -> Any:
    began_ns, failed = now_ns(), ""
    try:
        return call()
    except BaseException as error:
        failed = f"{type(error).__name__}: {error}"
        raise
    finally:
        noted.hooks.append(HookCall(hook, began_ns, now_ns(), failed))


class _Logger(ActivityLogger):
    """Notes what is delivered, and passes it on."""

    def __init__(self, inner: ActivityLogger, noted: RecordedSession) -> None:
        self.n_malformed = 0
        self._inner = inner
        self._noted = noted
        self._clock = noted.domain.name if noted.domain is not None else HOST_CLOCK
        self._builder = BatchBuilder(clock=self._clock)

    def handle_activity(self, activity: GenericTraceActivity) -> None:
        try:
            try:
                self._builder.append(activity)
            except MixedKindsError:
                self.flush()
                self._builder.append(activity)
        except RecordError:
            self.n_malformed += 1
        self._inner.handle_activity(activity)

    def handle_activities(self, batch: ActivityBatch) -> None:
        self.flush()
        if isinstance(batch, ActivityBatch) and len(batch):
            self._noted.batches.append(batch)
        self._inner.handle_activities(batch)

    def handle_device_info(self, info: DeviceInfo) -> None:
        self._noted.device_infos.append(info)
        self._inner.handle_device_info(info)

    def handle_resource_info(self, info: ResourceInfo) -> None:
        self._noted.resource_infos.append(info)
        self._inner.handle_resource_info(info)

    def handle_dropped(self, count: int | None, reason: str) -> None:
        self._noted.dropped.append((count, reason))
        self._inner.handle_dropped(count, reason)

    def flush(self) -> None:
        """Note the records that came one by one so far."""
        if len(self._builder):
            self._noted.batches.append(self._builder.build())
            self._builder = BatchBuilder(clock=self._clock)


class _Reporter(MemoryReporter):
    """Notes reports of memory, and passes them on. Called from any thread."""

    def __init__(self, inner: MemoryReporter, noted: RecordedSession, now_ns: Callable[[], int]) -> None:
        self._inner = inner
        self._noted = noted
        self._now_ns = now_ns

    def report_memory_usage(
        self, address: int, delta_bytes: int, total_allocated_bytes: int, total_reserved_bytes: int, device: int
    ) -> None:
        self._note(address, delta_bytes, total_allocated_bytes, total_reserved_bytes, device, False)
        self._inner.report_memory_usage(address, delta_bytes, total_allocated_bytes, total_reserved_bytes, device)

    def report_out_of_memory(
        self, requested_bytes: int, total_allocated_bytes: int, total_reserved_bytes: int, device: int
    ) -> None:
        self._note(0, requested_bytes, total_allocated_bytes, total_reserved_bytes, device, True)
        self._inner.report_out_of_memory(requested_bytes, total_allocated_bytes, total_reserved_bytes, device)

    def _note(self, address: int, delta: int, allocated: int, reserved: int, device: int, failed: bool) -> None:
        thread = threading.get_native_id()
        self._noted.reports.append(
            MemoryReport(
                self._now_ns(), thread, int(address), int(delta), int(allocated), int(reserved), int(device), failed
            )
        )


def _profiler(plugin: str | IActivityProfiler) -> IActivityProfiler:
    if not isinstance(plugin, str):
        return plugin
    return discover().profilers_for(None, [plugin])[0].profiler


def _ranges_of(trace: Trace) -> HostRanges:
    events = trace.of_type(ActivityType.CPU_OP, ActivityType.USER_ANNOTATION)
    events = events[np.lexsort((-trace.end_ns[events], trace.start_ns[events]))]
    return HostRanges(
        tuple(trace.name_of(event) for event in events.tolist()),
        np.asarray(trace.id[events], np.int64),
        np.array([trace.rows[row].id for row in trace.row[events].tolist()], np.int64),
        np.asarray(trace.start_ns[events], np.int64),
        np.asarray(trace.end_ns[events], np.int64),
        trace.activity_type[events] == int(ActivityType.USER_ANNOTATION),
    )
