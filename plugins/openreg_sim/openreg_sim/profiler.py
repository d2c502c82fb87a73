"""The profiler plugin of the simulated device, written as a vendor would write one.

On one side is devprof's contract, on the other the device's activity API. Read it as the tutorial; `openreg_sim.decode` is its
second half.
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Mapping, Sequence, Set

from devprof import correlation
from devprof.contract import (
    ActivityLogger,
    Capabilities,
    ClockDomain,
    CorrelationAccess,
    GetLinkedActivity,
    NativeCorrelation,
    SessionConfig,
    TraceStatus,
)
from devprof.model import ActivityType, DeviceInfo, ResourceInfo
from openreg_sim import activity
from openreg_sim.activity import ActivityKind, ExternalCorrelationKind
from openreg_sim.decode import CLOCK, KINDS, SYNC_ROW, batches_of
from openreg_sim.runtime import OpenRegError, runtime
from openreg_sim.runtime.native import native_library

__all__ = ["OpenRegProfiler", "OpenRegProfilerSession"]

BUFFER_BYTES = 1 << 20
MAX_BUFFERS = 1024
"""A capture keeps 1 GiB of records at most; the device counts what it then has to drop."""


class OpenRegProfiler:
    """What devprof knows of the plugin before any capture."""

    def name(self) -> str:
        """Return the plugin's name."""
        return "openreg"

    def capabilities(self) -> Capabilities:
        """Say that the plugin serves torch's device `openreg`, and how the device learns the current ids."""
        description = "the simulated device openreg"
        return Capabilities(torch_device="openreg", correlation=CorrelationAccess.NATIVE, description=description)

    def available_activities(self) -> Set[ActivityType]:
        """Return the kinds that the device can record."""
        return frozenset(KINDS)

    def configure(
        self,
        activity_types: Set[ActivityType],
        config: SessionConfig,
        *,
        ts_ms: int | None = None,
        duration_ms: int | None = None,
    ) -> OpenRegProfilerSession:
        """Make the session of one capture; the planned times do not matter to this device."""
        return OpenRegProfilerSession(activity_types, config)


class OpenRegProfilerSession:
    """One capture: enable, let the device fill buffers, synchronize, flush, decode."""

    def __init__(self, activity_types: Set[ActivityType], config: SessionConfig) -> None:
        self._kinds = {KINDS[kind] for kind in activity_types} | {ActivityKind.EXTERNAL_CORRELATION}
        self._config = config
        # without torch ranges belong to tasks, not to threads, and a call from Python can ask for the one it is in
        self._asks = config.host == "python"
        self._status = TraceStatus.READY
        self._completed: deque[tuple[bytearray, int]] = deque()
        self._errors: list[str] = []

    def start(self) -> None:
        """End what an earlier client left going, so that its records and losses are not taken for ours; then record."""
        activity.orActivityDisableTracing()
        activity.orActivityFlushAll(force=True)
        activity.orActivityGetNumDroppedRecords()
        activity.orActivityRegisterCallbacks(self._buffer_requested, self._buffer_completed)
        runtime().tracer.ask = correlation.current if self._asks else None
        activity.orActivityEnableTracing(self._kinds)
        if self._config.profile_memory:
            runtime().memory_listener = self._config.memory
        self._status = TraceStatus.RECORDING

    def stop(self) -> None:
        """Disable first, so that the capture does not record its own waiting; then wait for all devices, and flush."""
        if self._status is not TraceStatus.RECORDING:
            return
        self._status = TraceStatus.PROCESSING
        activity.orActivityDisableTracing()
        runtime().tracer.ask = None
        runtime().memory_listener = None
        for device in range(runtime().device_count):
            self._wait_for(device)
        activity.orActivityFlushAll(force=True)
        activity.orActivityRegisterCallbacks(None, None)
        activity.orActivityFlushAll(force=True)  # what a flush was late with has no buffer any more, and so is counted

    def _wait_for(self, device: int) -> None:
        """Wait for a device; the error of an earlier call, which comes out here, must not cost the records."""
        try:
            runtime().device_synchronize(device)
        except OpenRegError as error:
            self._errors.append(f"device {device}: {error}")

    def toggle_collection_dynamic(self, enabled: bool) -> None:
        """Pause or go on; the pushed ids stay, because one kind stays enabled."""
        paused = self._kinds - {ActivityKind.EXTERNAL_CORRELATION}
        (activity.orActivityEnableTracing if enabled else activity.orActivityDisableTracing)(paused)

    def _buffer_requested(self) -> bytearray | None:
        return bytearray(BUFFER_BYTES) if len(self._completed) < MAX_BUFFERS else None

    def _buffer_completed(self, buffer: bytearray, size_bytes: int) -> None:
        if size_bytes:
            self._completed.append((buffer, size_bytes))

    def process_trace(
        self, logger: ActivityLogger, get_linked_activity: GetLinkedActivity, start_ns: int, end_ns: int
    ) -> None:
        """Hand over all records; devprof links them, applies the window and converts the ticks."""
        self._hand_over(logger)

    def flush_trace(self, logger: ActivityLogger) -> None:
        """Hand over the records that are complete; work in flight comes later.

        A kernel's op id is in a record beside its launch, and may have been handed over before it: devprof takes it from the
        launch then.
        """
        activity.orActivityFlushAll()
        self._hand_over(logger)

    def _hand_over(self, logger: ActivityLogger) -> None:
        # another thread may complete a buffer meanwhile: that one stays for the next time
        completed = [self._completed.popleft() for _ in range(len(self._completed))]
        for batch in batches_of(activity.orActivityRecords(completed)):
            logger.handle_activities(batch)
        dropped = activity.orActivityGetNumDroppedRecords()
        if dropped:
            logger.handle_dropped(dropped, "no activity buffer")

    def clock_domain(self) -> ClockDomain:
        """Describe the device clock; all simulated devices share it."""
        config = runtime().config
        return ClockDomain(CLOCK, float(config.ticks_per_second), virtual=runtime().host_clock.virtual)

    def sample_clock(self) -> int:
        """Read the device clock."""
        return activity.orActivityGetTimestamp()

    def native_correlation(self) -> NativeCorrelation | None:
        """Return the native device's push and pop, where torch has loaded it; nothing to call where launches ask themselves."""
        library = native_library()
        if library is None:
            return NativeCorrelation(0, 0) if self._asks else None
        addresses = (ctypes.cast(f, ctypes.c_void_p).value for f in (library.orTracerPush, library.orTracerPop))
        return NativeCorrelation(*(address or 0 for address in addresses))

    def push_correlation_id(self, id: int) -> None:
        """An op began on this thread."""
        activity.orActivityPushExternalCorrelationId(ExternalCorrelationKind.OPERATOR, id)

    def pop_correlation_id(self) -> None:
        """An op ended on this thread."""
        activity.orActivityPopExternalCorrelationId(ExternalCorrelationKind.OPERATOR)

    def push_user_correlation_id(self, id: int) -> None:
        """A user range began on this thread."""
        activity.orActivityPushExternalCorrelationId(ExternalCorrelationKind.USER, id)

    def pop_user_correlation_id(self) -> None:
        """A user range ended on this thread."""
        activity.orActivityPopExternalCorrelationId(ExternalCorrelationKind.USER)

    def get_device_infos(self) -> Sequence[DeviceInfo]:
        """Name the devices' rows."""
        return [DeviceInfo(index, f"openreg {index}", label="simulated") for index in range(runtime().device_count)]

    def get_resource_infos(self) -> Sequence[ResourceInfo]:
        """Name the streams' rows, and a row beside each for the host's waits, which overlap the stream's own work."""
        streams = [ResourceInfo(s.id, s.device, f"stream {s.id}") for s in runtime().streams()]
        waits = [ResourceInfo(s.id + SYNC_ROW, s.device_id, f"{s.name} (sync)") for s in streams]
        return streams + waits if ActivityKind.SYNCHRONIZATION in self._kinds else streams

    def get_device_properties(self) -> Sequence[Mapping[str, object]]:
        """Return what the simulated devices are like."""
        config = runtime().config
        facts = {"totalGlobalMem": config.memory_limit_bytes, "flopsPerSecond": config.cost.flops_per_s}
        return [{"id": index, "name": "openreg (simulated)", **facts} for index in range(config.device_count)]

    def get_metadata(self) -> Mapping[str, object]:
        """Return facts about the capture."""
        return {"openreg clock": "virtual" if runtime().host_clock.virtual else "real"}

    def get_trace_buffer(self) -> None:
        """Release the buffers."""
        self._completed.clear()

    def status(self) -> TraceStatus:
        """Return the session's state."""
        return self._status

    def errors(self) -> Sequence[str]:
        """Return the device's errors that came out at the stop."""
        return self._errors
