"""`ReplaySession`: one recorded session, again."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from devprof.contract import HOST_CLOCK, ActivityLogger, ClockDomain, GetLinkedActivity, SessionConfig
from devprof.model import ActivityBatch, ActivityType
from devprof.replay.player import ReplayedError
from devprof.replay.recording import AXIS_NS, RecordedSession
from devprof.replay.times import VIRTUAL, RunningClock, in_window, on_axis
from devprof.replay.values import decoded

if TYPE_CHECKING:
    from devprof.replay.profiler import ReplayProfiler

__all__ = ["ReplaySession"]

_ALWAYS = frozenset({"start", "stop", "process_trace"})
_PUSHES = frozenset(
    {"push_correlation_id", "pop_correlation_id", "push_user_correlation_id", "pop_user_correlation_id"}
)
_NOT_AGAIN = frozenset({"flush_trace", "native_correlation"})
"""All records come at the end, and ids by pushes."""
_CLOCK = frozenset({"clock_domain", "sample_clock"})
_TOLD = "lost by the replay, on request"


class ReplaySession:
    """Has the methods that the recorded session had; each does what the recorded one did."""

    def __init__(
        self, profiler: ReplayProfiler, recorded: RecordedSession, kinds: frozenset[ActivityType], config: SessionConfig
    ) -> None:
        """Begin beside a live session.

        Args:
            profiler: the replay.
            recorded: the session to replay.
            kinds: what the live session asks for.
            config: what the live host says.
        """
        self._profiler = profiler
        self._recorded = recorded
        self._kinds = kinds
        self._faults = profiler.faults
        self._clock = RunningClock.of(recorded)
        self._exact = profiler.exact and config.host != "torch"
        self._has_stepped = False
        self._clock_shift_ns: int | None = None
        self._live = profiler.player.begin(recorded, config.now_ns)
        self._live.memory = config.memory
        self._samples = iter(recorded.samples)
        clock = _CLOCK if self._exact or recorded.domain is not None else frozenset()
        self._methods = (recorded.methods - _CLOCK - _NOT_AGAIN) | _ALWAYS | _PUSHES | clock

    def __getattr__(self, hook: str) -> Callable[..., Any]:
        methods = self.__dict__.get("_methods", ())
        if hook not in methods:
            raise AttributeError(hook)
        own = getattr(type(self), f"_{hook}", None)

        def call(*args: Any) -> Any:
            self._misbehave(hook)
            return own(self, *args) if own is not None else self._answer(hook)

        return call

    def _misbehave(self, hook: str) -> None:
        if (seconds := self._faults.number("slow", hook)) is not None:
            time.sleep(seconds)
        if self._faults.number("raise", hook) is not None:
            raise ReplayedError(f"{hook}() raises, on request")
        if hook not in _PUSHES:
            for call in self._recorded.hooks:
                if call.hook == hook and call.failed:
                    raise ReplayedError(call.failed)

    def _answer(self, hook: str) -> Any:
        return decoded(self._recorded.said.get(hook))

    # -- life ---------------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        self._has_stepped = True
        self._live.start(self._recorded.started_ns)

    def _stop(self) -> Any:
        return self._answer("stop")

    def _toggle_collection_dynamic(self, enabled: bool) -> Any:
        return self._answer("toggle_collection_dynamic")

    def _get_trace_buffer(self) -> Any:
        return self._answer("get_trace_buffer")

    # -- ids ----------------------------------------------------------------------------------------------------------

    def _push_correlation_id(self, id: int) -> None:
        self._live.pushed(id)

    def _pop_correlation_id(self) -> None:
        """Nothing: ids are told apart by their order."""

    def _push_user_correlation_id(self, id: int) -> None:
        """Nothing: a user range is an op as well."""

    def _pop_user_correlation_id(self) -> None:
        """Nothing."""

    # -- times --------------------------------------------------------------------------------------------------------

    def _clock_domain(self) -> ClockDomain | None:
        return VIRTUAL if self._exact else self._recorded.domain

    def _sample_clock(self) -> int:
        if self._exact:
            return AXIS_NS
        domain = self._recorded.domain
        if self._clock is None or (domain is not None and domain.virtual):
            found = next(self._samples, None)
            return found.device_ticks if found is not None else 0
        now_ns = self._live.now_ns()
        if self._clock_shift_ns is None:
            self._clock_shift_ns = now_ns - self._clock.origin_ns
        ticks = self._clock.read(now_ns - self._clock_shift_ns)
        step_ms = self._faults.number("clock-step")
        if step_ms is not None and self._has_stepped:
            ticks += round(step_ms * 1e6 * self._ticks_per_ns)
        return ticks

    @property
    def _ticks_per_ns(self) -> float:
        domain = self._clock_domain()
        return 1.0 if domain is None else domain.ticks_per_second / 1e9

    # -- records ------------------------------------------------------------------------------------------------------

    def _process_trace(
        self, logger: ActivityLogger, get_linked_activity: GetLinkedActivity, start_ns: int, end_ns: int
    ) -> None:
        batches, left_out = self._exact_batches() if self._exact else (self._recorded.batches, {})
        batches = [self._live.translated(batch) for batch in self._asked_for(batches)]
        if not self._exact:
            batches = [self._at_live_times(batch, end_ns) for batch in batches]
        batches, told = self._faults.spoil(batches, self._started, self._ticks_per_ns)
        for batch in self._in_time(batches):
            logger.handle_activities(batch)
        for info in self._recorded.device_infos:
            logger.handle_device_info(info)
        for resource in self._recorded.resource_infos:
            logger.handle_resource_info(resource)
        losses = [*self._recorded.dropped, *((n, why) for why, n in left_out.items())]
        for count, reason in [*losses, (told, _TOLD)] if told else losses:
            logger.handle_dropped(count, reason)

    def _asked_for(self, batches: list[ActivityBatch]) -> list[ActivityBatch]:
        """Return what a session of other kinds than the recorded one would deliver."""
        if self._kinds == self._recorded.kinds:
            return batches
        wanted = [int(kind) for kind in self._kinds]
        kept = [batch.take(np.isin(batch.activity_type, wanted)) for batch in batches]
        return [batch for batch in kept if len(batch)]

    def _exact_batches(self) -> tuple[list[ActivityBatch], dict[str, int]]:
        """Return the records in ns since the start of the recorded window, which is `AXIS_NS`: 0 would mean no time."""
        batches, left_out = in_window(self._recorded, on_axis(self._recorded))
        zero_ns = self._recorded.window_start_ns or self._recorded.started_ns
        # 0 means no time, and virtual ticks begin at 0
        return [_on_clock(batch, AXIS_NS - zero_ns, VIRTUAL.name) for batch in batches], left_out

    def _at_live_times(self, batch: ActivityBatch, end_ns: int) -> ActivityBatch:
        live = self._live
        if batch.clock == HOST_CLOCK:
            return _on_clock(batch, live.shifts_until(batch.start, end_ns), HOST_CLOCK)
        domain = self._recorded.domain
        if self._clock is None or domain is None or domain.virtual:
            return batch
        # the clock was shifted to its first reading; what the session and its calls are late beside comes on top
        since = (batch.start - self._clock.origin_ticks) / (self._clock.ticks_per_ns or 1.0)
        recorded_ns = self._clock.origin_ns + np.clip(since, -1e15, 1e15).astype(np.int64)
        late_ns = live.shifts_at(recorded_ns) - (self._clock_shift_ns or live.first_shift_ns)
        return _on_clock(batch, np.rint(late_ns * self._clock.ticks_per_ns).astype(np.int64), batch.clock)

    def _started(self, batch: ActivityBatch) -> float:
        """Return the start of the session on the clock of a batch."""
        if self._exact:
            return float(AXIS_NS)
        if batch.clock == HOST_CLOCK:
            return float(self._recorded.started_ns + self._live.first_shift_ns)
        return float(self._clock.read(self._recorded.started_ns)) if self._clock is not None else 0.0

    def _in_time(self, batches: list[ActivityBatch]) -> list[ActivityBatch]:
        """Return what comes now; of a late flush that is what the session before held back."""
        if self._faults.number("late-flush") is None:
            return batches
        before, self._profiler.held_back = self._profiler.held_back, batches
        domain = self._clock_domain()
        clocks = {HOST_CLOCK} | ({domain.name} if domain is not None else set())
        return [batch for batch in before if batch.clock in clocks]


def _on_clock(batch: ActivityBatch, shift: Any, clock: str) -> ActivityBatch:
    """Shift the times of a batch; what is no time stays none."""
    is_time = (batch.start >= AXIS_NS // 2) | (batch.clock != HOST_CLOCK) | (batch.start < 0)
    start = np.where(is_time, batch.start + shift, batch.start)
    end = np.where(is_time & (batch.end != 0), batch.end + shift, batch.end)
    return replace(batch, start=start, end=end, clock=clock)
