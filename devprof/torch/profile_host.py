"""`TorchHost`: lets `devprof.profile` drive torch.profiler; plugins take part as in any torch profile.

Source: torch/profiler/profiler.py (`_KinetoProfile`: prepare_trace, start_trace, stop_trace).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import torch
from torch.autograd import profiler as autograd_profiler
from torch.profiler.profiler import _KinetoProfile

from devprof.capture import SessionReport, report_of
from devprof.capture.hosting import ProfileOptions, ProfilerStats, WantedActivity
from devprof.capture.settings import with_limits
from devprof.errors import SessionError, UsageError
from devprof.store import Trace
from devprof.store.limits import WhenFull
from devprof.store.totals import NameTotal
from devprof.torch.forwarding import RangeForwarder
from devprof.torch.interpose import install
from devprof.torch.participants import disable, enable, enabled
from devprof.torch.sink import trace_of
from devprof.torch.torch_files import write_whole
from devprof.torch.wanted import plugins_to_enable, torch_activities, torch_activity

__all__ = ["TorchHost"]


class TorchHost:
    """Implements `ProfilerHost`. torch keeps its state per thread: what one thread began only that one may end.

    Attributes:
        profile: torch's own profile, with torch's own answers.
    """

    name = "torch"
    step_counters = (autograd_profiler.KinetoStepTracker,)  # torch's optimizers count there, and Kineto is told of it

    def __init__(self, options: ProfileOptions) -> None:
        """Make a host.

        Raises:
            UsageError: an activity or an option is unknown here or to this torch.
        """
        if options.limits is not None and options.limits.when_full is WhenFull.TOTALS:
            raise UsageError("when_full='totals' is for host='python'; torch keeps every record of its own")
        install()
        self.trace_id = ""
        self.stats = self._stats_of_finished = ProfilerStats()
        self.profile = _torch_profile(options)
        self._accumulates = options.acc_events
        self._limits = options.limits
        self._beside = plugins_to_enable(options.devices or ())
        self._forwarder = RangeForwarder()
        self._thread: threading.Thread | None = None
        self._records = False
        self._finished: Any = None

    # -- one cycle ----------------------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Let torch prepare.

        Raises:
            SessionError: a profile of torch's is recording.
        """
        if autograd_profiler._is_profiler_enabled:
            raise SessionError("a profile of torch's own is recording; stop it first, or put both into one")
        if not self._accumulates:
            self.profile.profiler = (
                None  # torch would warn that it forgets the cycle before; `Results` keeps what is asked for
            )
        began = time.perf_counter_ns()
        with _enabled(self._beside), with_limits(self._limits):
            self.profile.prepare_trace()
        self.stats = ProfilerStats(prepare_ns=time.perf_counter_ns() - began)
        self._thread = threading.current_thread()
        self.trace_id = str(self._inner().trace_id)

    def start(self) -> None:
        """Let torch record."""
        began = time.perf_counter_ns()
        self.profile.start_trace()
        self._records = True
        self._forwarder.start()
        self.stats.enable_ns = time.perf_counter_ns() - began

    def stop(self) -> None:
        """Let torch stop; devprof's plugins are drained in the same call."""
        began = time.perf_counter_ns()
        self._forwarder.stop()
        self._records, self._thread = False, None
        try:
            self.profile.stop_trace()
        finally:
            self._finished, self._stats_of_finished = self._inner(), self.stats
            self.stats.disable_ns = time.perf_counter_ns() - began

    def cancel(self, reason: str) -> None:
        """Stop torch where it records and this is its thread; what is only prepared, torch forgets by itself."""
        if self._records and self._thread is threading.current_thread():
            with suppress(Exception):
                self.stop()
        self._records, self._thread = False, None

    def _inner(self) -> Any:
        """Return torch's innermost profile, one per cycle."""
        return self.profile.profiler

    def toggle(self, enabled: bool, activities: tuple[WantedActivity, ...]) -> None:
        """Pause or resume activities, as torch and the plugins do.

        Raises:
            UsageError: an activity is unknown here.
        """
        wanted = {torch_activity(group.name) for group in activities}
        if self._records:
            self.profile.toggle_collection_dynamic(enabled, wanted)

    # -- what there is to know ----------------------------------------------------------------------------------------

    @property
    def report(self) -> SessionReport | None:
        """The account of the latest cycle that has stopped; None where no plugin took part."""
        try:
            return None if self._finished is None else report_of(self._finished)
        except UsageError:
            return None

    def trace(self) -> Trace:
        """Read the trace of the latest cycle that has stopped.

        Raises:
            UsageError: there is none.
        """
        began, stats = time.perf_counter_ns(), self._stats_of_finished
        trace = trace_of(self._finished)
        stats.parse_ns = time.perf_counter_ns() - began
        stats.window_ns = trace.window_end_ns - trace.window_start_ns
        stats.number_of_events = len(trace)
        return trace

    def snapshot(self, seconds: float | None) -> Trace:
        """Refuse: torch hands out what it recorded when it stops, and not before.

        Raises:
            UsageError: always.
        """
        raise UsageError(
            "snapshot: torch's profiler hands out nothing before it stops; use host='python', or a schedule with short cycles"
        )

    def totals(self) -> list[NameTotal]:
        """Refuse: torch keeps every record.

        Raises:
            UsageError: always.
        """
        raise UsageError("totals: torch's profiler keeps every record; use key_averages(), or host='python'")

    def add_metadata_json(self, key: str, value: str) -> None:
        """Put JSON text into the traces that are made from now on."""
        self.profile.preset_metadata_json(key, value)
        if self._records:
            self.profile.add_metadata_json(key, value)

    def export_chrome_trace(self, path: str, trace: Callable[[], Trace]) -> None:
        """Let torch write its file; of an earlier cycle than torch is at, devprof writes it."""
        if self._finished is self.profile.profiler and not self._records:
            write_whole(self.profile.export_chrome_trace, path)
            return
        from devprof.export import chrome_trace

        chrome_trace(trace(), path)

    def stopped_early(self) -> bool:
        """Say whether Kineto gave up recording."""
        asked = getattr(torch.autograd, "_is_kineto_stopped", None)
        return bool(asked is not None and self.profile.use_device is not None and asked())

    def check_thread(self, call: str) -> None:
        """Refuse another thread than the one that prepared and started.

        Raises:
            SessionError: this is another one.
        """
        here = threading.current_thread()
        if self._thread not in (None, here):
            raise SessionError(
                f"{call}() on thread {here.name!r}, but torch's part of this profile began on thread {self._thread.name!r}; "
                "torch keeps its state per thread and would lose the trace. Call it there, or use host='python'"
            )


def _torch_profile(options: ProfileOptions) -> _KinetoProfile:
    activities: Any = torch_activities(options)
    more: dict[str, Any] = dict(options.torch_only)
    try:
        return _KinetoProfile(
            activities=activities,
            record_shapes=options.record_shapes,
            profile_memory=options.profile_memory,
            with_stack=options.with_stack,
            with_flops=options.with_flops,
            with_modules=options.with_modules,
            acc_events=options.acc_events,
            custom_trace_id_callback=options.make_trace_id,
            **more,
        )
    except TypeError as error:
        raise UsageError(f"torch {torch.__version__} does not take an option: {error}") from error


@contextmanager
def _enabled(plugins: Collection[str]) -> Iterator[None]:
    """Let plugins take part in what is prepared meanwhile."""
    ours = set(plugins) - enabled()
    enable(*ours)
    try:
        yield
    finally:
        disable(*ours)
