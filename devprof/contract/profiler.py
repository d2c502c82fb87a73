"""`IActivityProfiler` and `IActivityProfilerSession`: Kineto's plugin contract, in Python.

Source: libkineto/include/IActivityProfiler.h. Differences from C++, each with its reason:

* hooks run on a devprof thread around the host's own entry points, never under Kineto's mutex, where taking the GIL
  deadlocks. So a hook may run any Python, within its time budget.
* `configure` carries both C++ overloads; `ts_ms` and `duration_ms` are None for a session that starts at once.
* `get_device_infos` returns all devices, where Kineto allows one.
* `flush_trace` has no counterpart: a session of Kineto hands over once, and one that runs for hours cannot wait for that.
* correlation ids are read from `devprof.correlation`; the push and pop methods are called only where the plugin asks
  for it (`Capabilities.correlation`), because a Python call per op costs as much as torch's whole profiling.

Every method says which thread calls it, when, what it may not do there, and what happens if it raises; a wrong type counts as
raising. At registration the profiler is left out for good. In a session the plugin is set aside for the rest of that session,
one `PluginWarning` names it, and the user's program, the host's trace and the next session go on. Where it was recording,
`stop` is still called once, so that its device does not record on. If a hook on a devprof thread does not come back within its
budget, its plugin is quarantined for the life of the process; cut short by the user's Ctrl-C, until the hook comes back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from enum import Enum
from typing import Protocol, runtime_checkable

from devprof.contract.capabilities import Capabilities, NativeCorrelation
from devprof.contract.clocks import ClockDomain
from devprof.contract.logger import ActivityLogger, GetLinkedActivity
from devprof.contract.session_config import SessionConfig
from devprof.model import ActivityType, DeviceInfo, ResourceInfo

__all__ = ["IActivityProfiler", "IActivityProfilerSession", "TraceStatus"]


class TraceStatus(Enum):
    """State of a session, in Kineto's words."""

    READY = "ready"
    WARMUP = "warmup"
    RECORDING = "recording"
    PROCESSING = "processing"
    ERROR = "error"
    WARNING = "warning"


@runtime_checkable
class IActivityProfiler(Protocol):
    """A source of device activities. One object per process; makes one session per capture."""

    def name(self) -> str:
        """Return the plugin's name: short, unique, stable.

        Thread: the one that first needs plugins: a user's thread that prepares a device profile, or a command's.
        Called: once per process, after `devprof_activity_profilers` returned. Never: touch a device, or block: no time
        budget guards it and other threads that need plugins wait. If it raises: recorded as a failure with one warning;
        this profiler is left out for the life of the process.
        """

    def capabilities(self) -> Capabilities:
        """Return what the plugin is and can do.

        Thread: the one that first needs plugins: a user's thread that prepares a device profile, or a command's.
        Called: once per process, after `devprof_activity_profilers` returned. Never: touch a device, or block: no time
        budget guards it and other threads that need plugins wait. If it raises: recorded as a failure with one warning;
        this profiler is left out for the life of the process.
        """

    def available_activities(self) -> Set[ActivityType]:
        """Return the kinds of activity the plugin can record.

        A session is only asked for kinds in this set, and for none if nothing in it was requested. (Kineto declares this method
        and never calls it.)

        Thread: the one that first needs plugins: a user's thread that prepares a device profile, or a command's.
        Called: once per process, after `devprof_activity_profilers` returned. Never: touch a device, or block: no time
        budget guards it and other threads that need plugins wait. If it raises: recorded as a failure with one warning;
        this profiler is left out for the life of the process.
        """

    def configure(
        self,
        activity_types: Set[ActivityType],
        config: SessionConfig,
        *,
        ts_ms: int | None = None,
        duration_ms: int | None = None,
    ) -> IActivityProfilerSession | None:
        """Prepare a capture and return its session, or None to sit this one out.

        Slow device initialisation belongs here. A session may be configured and never started.

        Thread: a devprof thread. Called: once per profile that wants one of its kinds, when the host's profiler is
        prepared: at the end of ``wait`` under a schedule, otherwise just before the start. Never: outlast the time
        budget, or start a profile. If it raises: the plugin is set aside for this session; nothing else of it is
        called.

        Args:
            activity_types: requested kinds that the plugin can record; record no others.
            config: facts about the session.
            ts_ms: requested start, Unix ms, for a session planned ahead.
            duration_ms: requested length, for a session planned ahead.
        """


@runtime_checkable
class IActivityProfilerSession(Protocol):
    """One capture.

    Its methods run on devprof threads, one at a time, not always the same thread: keep no thread-local state. Pushes and pops
    are the exception: they run on the op's thread, several at once, beside whatever else runs.

    Order: `start`, `stop`, `process_trace`, then the getters. A session may be dropped after `configure`, or stopped without
    ever being started. Only `start`, `stop` and `process_trace` are required: a method that a session lacks, or inherits from
    this protocol, is not called.
    """

    # to a type checker a method with only a docstring is abstract: so the optional ones return, and the required ones do not

    def start(self) -> None:
        """Begin to record.

        Thread: a devprof thread. Called: once, when the capture window opens, just before the host's recording starts.
        Never: outlast the time budget. If it raises: the plugin is set aside for this session; `stop` is still called
        once.
        """

    def stop(self) -> None:
        """Stop recording and wait for the work in flight on every device.

        Work that was launched in the window must be complete, with its true end, by the time `process_trace` returns.

        Thread: a devprof thread. Called: when the capture window has closed; also for a session that was configured and
        then cancelled, and once after another hook failed while it was recording. A second call must do nothing.
        Never: outlast the time budget, which `stop` to `get_trace_buffer` share. If it raises: the plugin is set aside
        for this session and delivers nothing; in the call after a failure it is ignored.
        """

    def status(self) -> TraceStatus:
        """Return the session's state; `ERROR` without any `errors()` is reported as an error of its own.

        Thread: the devprof thread of `process_trace`. Called: once, right after `process_trace`. Never: outlast the
        time budget. If it raises: the plugin is set aside for this session; the getters after it are not called, the
        records stay.
        """
        return TraceStatus.READY

    def errors(self) -> Sequence[str]:
        """Return what went wrong, one sentence each; shown in the report and the trace.

        Thread: the devprof thread of `process_trace`. Called: once, after `status`. Never: outlast the time budget. If
        it raises: the plugin is set aside for this session; the getters after it are not called, the records stay.
        """
        return ()

    def process_trace(
        self, logger: ActivityLogger, get_linked_activity: GetLinkedActivity, start_ns: int, end_ns: int
    ) -> None:
        """Hand over everything recorded.

        Hand over all records, also those outside the window: devprof applies the window and counts what it leaves out.

        Thread: the devprof thread that called `stop`. Called: once, after `stop`, unless the plugin was set aside.
        Never: outlast the time budget, keep the logger, or use it on another thread. If it raises: the plugin is set
        aside for this session; the records it had handed over stay, the getters are not called.

        Args:
            logger: receives the records; valid during the call.
            get_linked_activity: says whether the host recorded an op under an id.
            start_ns: start of the capture window, Unix ns.
            end_ns: end of the capture window, Unix ns.
        """

    def flush_trace(self, logger: ActivityLogger) -> None:
        """Hand over what is complete so far, and forget it; recording goes on.

        Without it all records stay with the plugin until `process_trace`: a long session with limits cannot bound them, and a
        snapshot has none. What was handed over here is not handed over again. Work in flight may come with a later call.

        Thread: a devprof thread, another one each time. Called: while recording, twice a second where the session has
        limits, and for a snapshot; never after `stop`. Never: wait for the device, outlast the time budget, keep the
        logger, or use it on another thread. If it raises: the plugin is set aside for this session; the records it had
        handed over stay; `stop` is still called once.

        Args:
            logger: receives the records; valid during the call.
        """
        return

    def get_device_infos(self) -> Sequence[DeviceInfo]:
        """Return the devices that records refer to. Without it rows get plain names.

        Thread: the devprof thread of `process_trace`. Called: once, after `errors`, and for each snapshot after
        `flush_trace`. Never: outlast the time budget. If it raises: the plugin is set aside for this session; the
        getters after it are not called, the records stay.
        """
        return ()

    def get_resource_infos(self) -> Sequence[ResourceInfo]:
        """Return the streams, queues and engines that records refer to. Without it rows get plain names.

        Thread: the devprof thread of `process_trace`. Called: once, after `get_device_infos`, and with it for each
        snapshot. Never: outlast the time budget. If it raises: the plugin is set aside for this session; the getters
        after it are not called, the records stay.
        """
        return ()

    def get_device_properties(self) -> Sequence[Mapping[str, object]]:
        """Return facts about the devices for the trace's ``deviceProperties``; JSON values only.

        Thread: the devprof thread of `process_trace`. Called: once, after `get_resource_infos`. Never: outlast the time
        budget. If it raises: the plugin is set aside for this session; the getters after it are not called, the records
        stay.
        """
        return ()

    def get_metadata(self) -> Mapping[str, object]:
        """Return facts about the capture for the trace's top level; JSON values only.

        Thread: the devprof thread of `process_trace`. Called: once, after `get_device_properties`. Never: outlast the
        time budget. If it raises: the plugin is set aside for this session; the getters after it are not called, the
        records stay.
        """
        return {}

    def get_trace_buffer(self) -> None:
        """Release memory; devprof owns a batch from `handle_activities` on. In Kineto this transfers ownership.

        Thread: the devprof thread of `process_trace`. Called: once, last of all. Never: outlast the time budget, or
        free what a handed-over batch still refers to. If it raises: the plugin is reported as failed; its records stay.
        """
        return

    def clock_domain(self) -> ClockDomain | None:
        """Return the clock of this session's batches, or None for Unix ns.

        Thread: the devprof thread of `configure`. Called: once, right after `configure`. Never: outlast the time
        budget. If it raises: the plugin is set aside for this session, before it recorded anything.
        """
        return None

    def sample_clock(self) -> int:
        """Read the device's clock, in ticks.

        Thread: a devprof thread; while recording also devprof's timer thread, never beside another
        hook. Called: only with a `clock_domain()`: several times in a row just before `start`, right after
        `stop`, and once a second in between unless the clock is virtual. Never: wait, or run torch ops, which may enter
        the user's trace. If it raises: the plugin is set aside for this session; `stop` is still called once if it was
        recording.
        """
        return 0

    def native_correlation(self) -> NativeCorrelation | None:
        """Return C functions to call at each push and pop.

        Thread: the devprof thread of `configure`. Called: once, after `clock_domain`, only under
        `CorrelationAccess.NATIVE`. Never: outlast the time budget, or return functions that take the GIL. If it raises:
        the plugin is set aside for this session, before it recorded anything.
        """
        return None

    def push_correlation_id(self, id: int) -> None:
        """An op with this id began on the calling thread.

        Thread: the one that runs the op, several at once, beside any other hook. Called: at the start of every op, only
        under `CorrelationAccess.PYTHON`. Never: run torch ops, block, or raise. If it raises: once, and the plugin is
        set aside: no hook of this session is called any more but `stop`, once; the op goes on.
        """
        return

    def pop_correlation_id(self) -> None:
        """The innermost op on the calling thread ended; may come without a push.

        Thread: the one that runs the op, several at once, beside any other hook. Called: at the end of every op, only
        under `CorrelationAccess.PYTHON`. Never: run torch ops, block, or raise. If it raises: once, and the plugin is
        set aside: no hook of this session is called any more but `stop`, once; the op goes on.
        """
        return

    def push_user_correlation_id(self, id: int) -> None:
        """A user range with this id began on the calling thread.

        Thread: the one that runs the op, several at once, beside any other hook. Called: at the start of every user
        range, only under `CorrelationAccess.PYTHON`. Never: run torch ops, block, or raise. If it raises: once, and the
        plugin is set aside: no hook of this session is called any more but `stop`, once; the op goes on.
        """
        return

    def pop_user_correlation_id(self) -> None:
        """The innermost user range on the calling thread ended; may come without a push.

        Thread: the one that runs the op, several at once, beside any other hook. Called: at the end of every user
        range, only under `CorrelationAccess.PYTHON`. Never: run torch ops, block, or raise. If it raises: once, and the
        plugin is set aside: no hook of this session is called any more but `stop`, once; the op goes on.
        """
        return

    def toggle_collection_dynamic(self, enabled: bool) -> None:
        """Pause or resume recording within the window.

        Thread: a devprof thread, while the user's waits. Called: each time the user toggles collection while recording.
        Never: outlast the time budget. If it raises: the plugin is set aside for this session; `stop` is still called
        once.
        """
        return
