"""`profile`: the front door to both hosts, in the words of torch.profiler.

Source: torch/profiler/profiler.py (`_KinetoProfile`, `profile`).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from typing import Any

from devprof.capture import HeldInterrupt, Holder, SessionReport, attach
from devprof.capture.hosting import ProfilerStats, StepCounter
from devprof.errors import SessionError, UsageError
from devprof.host import record_function
from devprof.profiler.actions import Move, ProfilerAction
from devprof.profiler.activities import wanted_activities
from devprof.profiler.blocks import Block
from devprof.profiler.driver import Driver
from devprof.profiler.facts import fact_of, json_of
from devprof.profiler.hosts import make_host
from devprof.profiler.live import Live
from devprof.profiler.options import TORCH_ONLY, TraceIds, profile_options
from devprof.profiler.runs import PROFILES, Run, follow_forks, refuse_in_hooks
from devprof.profiler.scheduling import always_record
from devprof.profiler.step_tracker import PROFILER_STEP, step_tracker
from devprof.store.limits import Limits

__all__ = ["profile"]


class profile(Live, Block):
    """Records a program and the devices that it uses; a context manager, or `start` and `stop`.

    With ``host="torch"`` torch.profiler records the program and its ops, and start, steps and stop belong to one thread. With
    ``host="python"`` devprof records ranges, functions and memory itself, needs no torch, and any thread may do any of them.
    One profile runs at a time in a process.

    Example:
        >>> import devprof
        >>> with devprof.profile(activities=["cpu"], host="python") as prof:
        ...     with devprof.record_function("work"):
        ...         total = sum(range(1000))
        >>> [event.name for event in prof.events()]
        ['work']
    """

    def __init__(
        self,
        *,
        activities: Iterable[object] | None = None,
        schedule: Callable[[int], object] | None = None,
        on_trace_ready: Callable[[Any], object] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        use_cpu: bool | None = None,
        acc_events: bool = False,
        custom_trace_id_callback: Callable[[], str] | None = None,
        host: str = "auto",
        experimental_config: object = None,
        execution_trace_observer: object = None,
        post_processing_timeout_s: float | None = None,
        max_records: int | None = None,
        max_bytes: int | None = None,
        when_full: str | None = None,
        spill_dir: str | os.PathLike[str] | None = None,
    ) -> None:
        """Make a profile that has not started.

        Args:
            activities: what to record: names of plugins such as ``"openreg"``, ``"cpu"``, members of `ProfilerActivity` or
                torch's, or mappings from such to lists of kinds; None: all that there is.
            schedule: gives the `ProfilerAction` of each step, see `schedule`; None: record from start to stop.
            on_trace_ready: called with this profile whenever a trace is ready, on the thread that stepped or stopped.
            record_shapes: keep shapes and types of inputs.
            profile_memory: record allocations.
            with_stack: record Python functions and the stacks of ops.
            with_flops: estimate the operations of known ops; needs and turns on shapes.
            with_modules: name modules.
            use_cpu: record the host's side whatever `activities` say; None: as they say.
            acc_events: figures are over all cycles; else over the latest.
            custom_trace_id_callback: gives the id of each trace.
            host: ``"torch"``, ``"python"``, or ``"auto"``: torch where the program has imported it.
            experimental_config, execution_trace_observer, post_processing_timeout_s: torch's own, for ``host="torch"``.
            max_records, max_bytes: how much the host, and each plugin, keeps in memory of what it records.
            when_full: what becomes of more: ``"stop"`` leaves it out; the oldest ``"ring"`` lets go, ``"spill"`` moves to a
                file in `spill_dir`, ``"totals"`` adds up by name. Under torch: of plugins' records.

        Raises:
            UsageError: an argument is wrong, or does not fit the host.
        """
        super().__init__(accumulate=acc_events, with_stack=with_stack)
        self._ids = TraceIds(custom_trace_id_callback)
        options = profile_options(
            activities,
            use_cpu,
            self._ids,
            dict(
                zip(TORCH_ONLY, (experimental_config, execution_trace_observer, post_processing_timeout_s), strict=True)
            ),
            record_shapes=record_shapes,
            profile_memory=profile_memory,
            with_stack=with_stack,
            with_flops=with_flops,
            with_modules=with_modules,
            acc_events=acc_events,
            limits=Limits.given(max_records, max_bytes, when_full, spill_dir),
        )
        self.on_trace_ready = _callable("on_trace_ready", on_trace_ready, "a function of this profile")
        self._host = make_host(host, options)
        self._held = HeldInterrupt(_nothing)
        self._driver = Driver(
            _plan(schedule), self._moves(), stopped_early=self._host.stopped_early, cancel=self._cancel
        )
        self._names_steps = schedule is not None
        self._calls = threading.RLock()
        follow_forks(self)

    _step_range: record_function | None = None

    def _moves(self) -> dict[Move, Callable[[], object]]:
        return {
            Move.PREPARE: lambda: self._held.let_through(self._host.prepare),
            Move.START: lambda: self._held.let_through(self._host.start),
            Move.STOP: self._stopped,
            Move.TRACE_READY: self._trace_ready,
        }

    # -- life ---------------------------------------------------------------------------------------------------------

    @property
    def _is_started(self) -> bool:
        return self._run is not None

    def start(self) -> None:
        """Begin with the schedule's present step. On any thread; under ``host="torch"`` steps and stop belong to this one.

        Raises:
            SessionError: a profile is running; the message names the line that started it.
        """
        refuse_in_hooks("start")
        holder = None
        try:
            with self._calls:
                holder = PROFILES.take("a devprof.profile")
                self._driver.begin()
                self._run = Run.of(self, self._host, holder)
                for counter in self._step_counters:
                    counter.init_step_count(PROFILER_STEP)
                self._open_step()
        except BaseException:  # an interrupt may come behind the last line, too
            if holder is not None:
                self._undo_start(holder)
            raise

    def step(self) -> None:
        """Say that the next step of the program begins; a profile that is not running only counts it.

        Thread: under ``host="torch"`` the one that started, else any.

        Raises:
            SessionError: this is the wrong thread, or inside of `on_trace_ready`.
            UsageError: the schedule's answer is no action.
        """
        refuse_in_hooks("step")
        with self._calls, HeldInterrupt(_nothing) as self._held:
            if self._run is None:
                self._driver.count()
            elif self._is_running("step"):
                self._close_step()
                try:
                    self._driver.step()
                finally:
                    self._open_step()
                for counter in self._step_counters:
                    counter.increment_step(PROFILER_STEP)

    def stop(self) -> None:
        """End the profile; its trace is there afterwards, also where a callback raises. On a thread as `step` is.

        Raises:
            SessionError: the profile is not running, or this is the wrong thread.
        """
        refuse_in_hooks("stop")
        with self._calls, HeldInterrupt(_nothing) as self._held:
            if self._is_running("stop"):
                self._close_step()
                try:
                    self._driver.end()
                finally:
                    self._forget_run()

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[object]) -> None:
        """Pause or resume some activities while recording; at another time nothing happens.

        Args:
            enable: True resumes.
            activities: which, as in the constructor.

        Raises:
            UsageError: an activity is unknown.
        """
        wanted = wanted_activities(activities)
        with self._calls:
            if self._runs_here:
                self._host.toggle(enable, wanted)

    # -- facts --------------------------------------------------------------------------------------------------------

    def add_metadata(self, key: str, value: str) -> None:
        """Put a text under a key of the trace's metadata, and of all later traces of this profile.

        Raises:
            UsageError: it has no words in JSON.
        """
        self.add_metadata_json(key, json_of(key, value))

    def add_metadata_json(self, key: str, value: str) -> None:
        """Put JSON text under a key of the trace's metadata, and of all later traces of this profile.

        Raises:
            UsageError: it is no JSON.
        """
        fact = fact_of(key, value)
        self._host.add_metadata_json(key, value)
        self._add_fact(lambda trace: trace.with_facts(metadata={**_mapping(trace.facts.get("metadata")), key: fact}))

    def set_custom_trace_id_callback(self, callback: Callable[[], str] | None) -> None:
        """Let `callback` give the ids of later traces."""
        self._ids.callback = callback

    def get_trace_id(self) -> str | None:
        """Return the id of the latest trace, or None before the first is prepared."""
        return self._host.trace_id or None

    @property
    def trace_id(self) -> str | None:
        """The id of the latest trace, or None before the first is prepared."""
        return self.get_trace_id()

    @property
    def step_num(self) -> int:
        """Number of the present step, from 0."""
        return self._driver.step_num

    @property
    def current_action(self) -> ProfilerAction:
        """What is done in the present step."""
        return self._driver.action

    @property
    def stats(self) -> ProfilerStats:
        """How long the profiler itself took in its latest cycle; once that has stopped, asking reads its trace."""
        if self._make_latest is not None and (self._run is None or self._driver.is_moving):
            _ = self.trace
        return self._host.stats

    @property
    def report(self) -> SessionReport:
        """The account of the plugins in the latest cycle, readable from any thread.

        Raises:
            UsageError: there is none: nothing has stopped yet, or no plugin took part.
        """
        if self._host.report is None:
            raise UsageError("there is no report: no cycle has stopped yet, or no plugin took part in it")
        return self._host.report

    @property
    def torch_profile(self) -> Any:
        """Torch's own profile under ``host="torch"``, else None."""
        return getattr(self._host, "profile", None)

    def export_chrome_trace(self, path: str) -> None:
        """Write the latest trace for chrome://tracing and Perfetto; a name that ends in ``.gz`` is compressed.

        Raises:
            UsageError: nothing is recorded yet.
        """
        if not self._has_results:
            _ = self.trace  # says what is missing
        self._host.export_chrome_trace(str(path), lambda: self.trace)

    def __repr__(self) -> str:
        head = f"<devprof.profile host={self._host.name!r}"
        if self._runs_here:
            return f"{head}, running, step {self.step_num}: {self.current_action.name}>"
        if not self._has_results:
            return f"{head}, not started>"
        trace = self.trace
        return f"{head}, {len(trace)} events in {(trace.window_end_ns - trace.window_start_ns) / 1e6:.3f} ms>"

    def __str__(self) -> str:
        return self.table() if self._has_results and not self._runs_here else repr(self)

    # -- inside -------------------------------------------------------------------------------------------------------

    def _is_running(self, call: str) -> bool:
        """Say whether a call has something to do; a forked child's copy has not."""
        run = self._run
        if run is None:
            raise SessionError(f"{call}() on a profile that is not running; call start() first, or use a with block")
        if not run.is_ours:
            if call == "stop":
                self._forget_run()
            return False
        if self._driver.is_moving:
            raise SessionError(f"{call}() inside on_trace_ready; the callback may read the profile, not move it")
        self._host.check_thread(call)
        return True

    @property
    def _runs_here(self) -> bool:
        return self._run is not None and self._run.is_ours

    def _undo_start(self, holder: Holder) -> None:
        with self._calls:
            self._close_step()
            self._cancel()
            self._forget_run()
            PROFILES.give_back(holder)

    def _cancel(self) -> None:
        self._host.cancel("the profile could not begin to record")

    def _forget_run(self) -> None:
        run, self._run = self._run, None
        if run is not None:
            run.end()
            for counter in self._step_counters:
                counter.erase_step_count(PROFILER_STEP)

    def _forget_threads(self) -> None:
        """Go on in the child of a fork: threads that were inside a call are not there."""
        super()._forget_threads()
        self._calls = threading.RLock()
        self._driver.is_moving = False

    def _stopped(self) -> None:
        try:
            self._host.stop()
        except Exception:
            raise
        except BaseException:  # an interrupt, held back until the trace was there
            self._take_over_cycle()
            raise
        self._take_over_cycle()

    def _take_over_cycle(self) -> None:
        self._cycle_ready(self._host.trace)
        if self._host.report is not None:
            attach(self, self._host.report)

    def _trace_ready(self) -> None:
        callback = self.on_trace_ready
        if callback is not None:
            self._held.let_through(lambda: callback(self))

    @property
    def _step_counters(self) -> tuple[StepCounter, ...]:
        return (step_tracker, *self._host.step_counters)

    def _open_step(self) -> None:
        if self._names_steps:
            self._step_range = record_function(f"{PROFILER_STEP}#{self.step_num}")
            self._step_range.__enter__()

    def _close_step(self) -> None:
        range_, self._step_range = self._step_range, None
        if range_ is not None:
            range_.__exit__(None, None, None)


def _plan(schedule: object) -> Callable[[int], object]:
    plan: Callable[[int], object] | None = _callable(
        "schedule", schedule, "a function of the step, see devprof.schedule"
    )
    return plan or always_record


def _callable(name: str, value: Any, expected: str) -> Any:
    if value is not None and not callable(value):
        raise UsageError(f"{name} is {value!r}; expected {expected}")
    return value


def _nothing() -> None:
    pass


def _mapping(value: object) -> dict[str, object]:
    return dict(value) if isinstance(value, dict) else {}
