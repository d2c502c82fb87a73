"""`IActivityProfiler` and `IActivityProfilerSession`: Kineto's plugin contract, in Python.

Source: libkineto/include/IActivityProfiler.h. Differences from C++, each with its reason:

* hooks run on a devprof thread around the host's own entry points, never under Kineto's mutex, where taking the GIL
  deadlocks. So a hook may run any Python, within its time budget.
* `configure` carries both C++ overloads; `ts_ms` and `duration_ms` are None for a session that starts at once.
* `get_device_infos` returns all devices, where Kineto allows one.
* correlation ids are read from `devprof.correlation`; the push and pop methods are called only where the plugin asks
  for it (`Capabilities.correlation`), because a Python call per op costs as much as torch's whole profiling.

Every hook: if it raises or returns a wrong type, the plugin is set aside for the rest of that session, one `PluginWarning`
names it, and the user's program, the host's trace and the next session go on. Where it was recording, `stop` is still called
once, so that its device does not record on. If a hook does not come back within its budget, its plugin is quarantined for the
life of the process; cut short by the user's Ctrl-C, until the hook comes back.
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
        """Return the plugin's name: short, unique, stable. Called once, at registration; must not touch a device."""

    def capabilities(self) -> Capabilities:
        """Return what the plugin is and can do. Called once, at registration; must not touch a device."""

    def available_activities(self) -> Set[ActivityType]:
        """Return the kinds of activity the plugin can record.

        Called once, at registration. A session is only asked for kinds in this set, and for none if nothing in it was
        requested. (Kineto declares this method and never calls it.)
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

        Called on a devprof thread when the host's profiler is prepared: at the end of ``wait`` under a schedule, otherwise
        just before the start. Slow device initialisation belongs here. A session may be configured and never started.

        Args:
            activity_types: requested kinds that the plugin can record; record no others.
            config: facts about the session.
            ts_ms: requested start, Unix ms, for a session planned ahead.
            duration_ms: requested length, for a session planned ahead.
        """


@runtime_checkable
class IActivityProfilerSession(Protocol):
    """One capture. Methods run on devprof threads, one at a time, not always the same thread: keep no thread-local state.

    Order: `start`, `stop`, `process_trace`, then the getters. A session may be dropped after `configure`, or stopped without
    ever being started; `stop` may be called twice. Only `start`, `stop` and `process_trace` are required: a method that a
    session lacks is not called. A class that names this protocol as its base inherits the others, which then say nothing.
    """

    # to a type checker a method with only a docstring is abstract: so the optional ones return, and the required ones do not

    def start(self) -> None:
        """Begin to record. Called when the capture window opens, just before the host's recording starts."""

    def stop(self) -> None:
        """Stop recording and wait for the work in flight on every device.

        Called when the capture window has closed. Work that was launched in the window must be complete, with its true end,
        by the time `process_trace` returns.
        """

    def status(self) -> TraceStatus:
        """Return the session's state; `ERROR` and `WARNING` are reported with `errors()`. Called after `stop`."""
        return TraceStatus.READY

    def errors(self) -> Sequence[str]:
        """Return what went wrong, one sentence each. Called after `process_trace`; shown in the report and the trace."""
        return ()

    def process_trace(
        self, logger: ActivityLogger, get_linked_activity: GetLinkedActivity, start_ns: int, end_ns: int
    ) -> None:
        """Hand over everything recorded.

        Called once, after `stop`. Hand over all records, also those outside the window: devprof applies the window and counts
        what it leaves out.

        Args:
            logger: receives the records; valid during the call.
            get_linked_activity: says whether the host recorded an op under an id.
            start_ns: start of the capture window, Unix ns.
            end_ns: end of the capture window, Unix ns.
        """

    def get_device_infos(self) -> Sequence[DeviceInfo]:
        """Return the devices that records refer to. Called after `process_trace`. Without it rows get plain names."""
        return ()

    def get_resource_infos(self) -> Sequence[ResourceInfo]:
        """Return the streams, queues and engines that records refer to. As `get_device_infos`."""
        return ()

    def get_device_properties(self) -> Sequence[Mapping[str, object]]:
        """Return facts about the devices for the trace's ``deviceProperties``; JSON values only. Called after `stop`."""
        return ()

    def get_metadata(self) -> Mapping[str, object]:
        """Return facts about the capture for the trace's top level; JSON values only. Called after `process_trace`."""
        return {}

    def get_trace_buffer(self) -> None:
        """Kineto's transfer of ownership; devprof owns a batch from `handle_activities` on. Called last, to release memory."""
        return

    def clock_domain(self) -> ClockDomain | None:
        """Return the clock of this session's batches, or None for Unix ns. Called after `configure`."""
        return None

    def sample_clock(self) -> int:
        """Read the device's clock, in ticks. Called several times in a row at start, at stop and in between; be quick."""
        return 0

    def native_correlation(self) -> NativeCorrelation | None:
        """Return C functions to call at each push and pop (`CorrelationAccess.NATIVE`). Called after `configure`."""
        return None

    def push_correlation_id(self, id: int) -> None:
        """An op with this id began on the calling thread. Called only under `CorrelationAccess.PYTHON`, on the op's thread.

        Must not run torch ops, block, or raise.
        """
        return

    def pop_correlation_id(self) -> None:
        """The innermost op on the calling thread ended. As `push_correlation_id`; may come without a push."""
        return

    def push_user_correlation_id(self, id: int) -> None:
        """A user range with this id began on the calling thread. As `push_correlation_id`."""
        return

    def pop_user_correlation_id(self) -> None:
        """The innermost user range on the calling thread ended. As `pop_correlation_id`."""
        return

    def toggle_collection_dynamic(self, enabled: bool) -> None:
        """Pause or resume recording within the window. Called while recording, when the user toggles collection."""
        return
