"""The plugin: devprof's contract on one side, a `Capture` with CUPTI on the other."""

from __future__ import annotations

import atexit
import ctypes
import logging
import os
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache

from cuda_cupti.access import Access, facts_of, open_cupti
from cuda_cupti.capture import Capture, Client, ClockReading, kinds_beside
from cuda_cupti.coexistence import check_alone, who_records
from cuda_cupti.collector import Collector, c_string
from cuda_cupti.decode import TextAt
from cuda_cupti.delivery import Delivery
from cuda_cupti.errors import CudaUnavailableError, CuptiError, NoLibraryError, NothingToTraceError
from cuda_cupti.external_ids import OP_KIND, USER_KIND
from cuda_cupti.layouts import ActivityKind
from cuda_cupti.selection import AVAILABLE, kinds_for, wanted_types
from devprof.contract import (
    HOST_CLOCK,
    ActivityLogger,
    Capabilities,
    ClockDomain,
    CorrelationAccess,
    GetLinkedActivity,
    IActivityProfilerSession,
    SessionConfig,
    TraceStatus,
)
from devprof.model import ActivityType, DeviceInfo, ResourceInfo

__all__ = ["CudaProfiler", "CudaProfilerSession", "Source"]

log = logging.getLogger("devprof.cuda_cupti")

GRAPHS_VARIABLE = "DEVPROF_CUDA_GRAPHS"
"""``1``: a launched graph is recorded as one."""

CLOCK = "cupti"
"""Name of CUPTI's clock where it is not the host's."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a session's records come from: CUPTI in this process, or a stand-in that tests give.

    Attributes:
        client: the one client of the library.
        text_at: reads a kernel's name.
        free: frees what CUPTI hands over with a record; None: there is nothing.
        is_alone: refuses where another profiler is at work; takes the session's host.
    """

    client: Client
    text_at: TextAt = c_string
    free: Callable[[int], object] | None = None
    is_alone: Callable[[str], object] = check_alone


class CudaProfiler:
    """What devprof knows of the plugin before any capture. Nothing of NVIDIA's is loaded until a profile is prepared."""

    def __init__(self, source: Callable[[], Source] | None = None) -> None:
        """Make the plugin.

        Args:
            source: opens CUPTI, at each `configure`; None: the real one.
        """
        self._source = source or _source

    def name(self) -> str:
        """Return the plugin's name, which `activities` take."""
        return "cuda"

    def capabilities(self) -> Capabilities:
        """Say that ids go to CUPTI's own stacks, push by push."""
        return Capabilities(
            correlation=CorrelationAccess.PYTHON, description="NVIDIA GPUs through CUPTI, without torch"
        )

    def available_activities(self) -> Set[ActivityType]:
        """Return the kinds that CUPTI can record."""
        return AVAILABLE

    def configure(
        self,
        activity_types: Set[ActivityType],
        config: SessionConfig,
        *,
        ts_ms: int | None = None,
        duration_ms: int | None = None,
    ) -> CudaProfilerSession | None:
        """Open CUPTI and make the session of one capture; None where nobody asked for CUDA and there is nothing to trace.

        Raises:
            CudaUnavailableError, CuptiError: CUDA cannot be traced now; devprof says why.
        """
        try:
            source = self._source()
        except NothingToTraceError as error:
            if config.named:
                raise
            if isinstance(error, NoLibraryError):
                _warn_once(str(error))  # beside a driver the plugin was meant to work
            log.info("%s", error)
            return None
        source.is_alone(config.host)
        # in a torch session the reports of memory are torch's own
        return CudaProfilerSession(source, activity_types, memory=config.profile_memory and config.host == "python")


class CudaProfilerSession(IActivityProfilerSession):
    """One capture."""

    def __init__(self, source: Source, activity_types: Set[ActivityType], *, memory: bool = False) -> None:
        """Prepare a capture; CUPTI is untouched until `start`, but for its clock.

        Args:
            source: where records come from.
            activity_types: what was asked for.
            memory: allocations were asked for too.

        Raises:
            CuptiError: the clock cannot be read.
        """
        self._types = wanted_types(activity_types)
        self._source = source
        self._collector = Collector(source.client.exchange, source.client.access.layout, source.text_at, source.free)
        whole_graphs = os.environ.get(GRAPHS_VARIABLE) == "1"
        kinds = kinds_for(self._types, whole_graphs=whole_graphs, memory=memory)
        self._capture = Capture(source.client, kinds, self._collector)
        self._clocks = [source.client.read_clock()]
        self._status = TraceStatus.READY
        clock = HOST_CLOCK if self._clocks[0].agrees else CLOCK
        self._delivery = Delivery(self._types, source.client.access.devices, clock, memory=memory)

    # -- lifecycle ----------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Record.

        Raises:
            CudaUnavailableError: it cannot be done; the message names what is in the way, and all releases involved.
        """
        try:
            self._capture.start()
        except CuptiError as error:
            raise CudaUnavailableError(f"{error} ({_listed(self._source.client.access)})") from error
        self._status = TraceStatus.RECORDING

    def stop(self) -> None:
        """Wait for the devices, and take what CUPTI has; a second call does nothing."""
        if self._status is not TraceStatus.RECORDING:
            return
        self._status = TraceStatus.PROCESSING
        self._capture.stop()
        if self._source.client.is_here:
            try:
                self._clocks.append(self._source.client.read_clock())
            except CuptiError as error:  # the records are there
                self._capture.notes.append(f"whether the clock was moved during the capture is not known: {error}")

    def toggle_collection_dynamic(self, enabled: bool) -> None:
        """Pause or go on."""
        self._capture.pause(on=not enabled)

    def process_trace(
        self, logger: ActivityLogger, get_linked_activity: GetLinkedActivity, start_ns: int, end_ns: int
    ) -> None:
        """Hand over all records; devprof links them and applies the window."""
        self._hand_over(logger)
        self._delivery.tell_losses(logger, self._capture.dropped, self._collector.unkept)

    def flush_trace(self, logger: ActivityLogger) -> None:
        """Hand over what is complete; work in flight comes later."""
        self._capture.flush()
        self._hand_over(logger)

    def _hand_over(self, logger: ActivityLogger) -> None:
        capture = self._capture
        self._delivery.hand_over(logger, self._collector.taken(), capture.ids, capture.context_devices)

    def get_trace_buffer(self) -> None:
        """Release the records."""
        self._collector.taken()

    # -- correlation --------------------------------------------------------------------------------------------------

    def push_correlation_id(self, id: int) -> None:
        """An op began on this thread."""
        self._source.client.stacks.push(OP_KIND, id)

    def pop_correlation_id(self) -> None:
        """An op ended on this thread."""
        self._source.client.stacks.pop(OP_KIND)

    def push_user_correlation_id(self, id: int) -> None:
        """A user range began on this thread."""
        self._source.client.stacks.push(USER_KIND, id)

    def pop_user_correlation_id(self) -> None:
        """A user range ended on this thread."""
        self._source.client.stacks.pop(USER_KIND)

    # -- clock --------------------------------------------------------------------------------------------------------

    def clock_domain(self) -> ClockDomain | None:
        """Return None where CUPTI stamps records with the host's clock, as on Linux; else CUPTI's clock, to be measured."""
        return None if self._clocks[0].agrees else ClockDomain(CLOCK, 1e9)

    def sample_clock(self) -> int:
        """Read CUPTI's clock."""
        return self._source.client.access.cupti.timestamp_ns()

    # -- what there is to know ----------------------------------------------------------------------------------------

    def status(self) -> TraceStatus:
        """Return the session's state."""
        return self._status

    def errors(self) -> Sequence[str]:
        """Return what went wrong, a sentence each."""
        return list(self._capture.errors)

    def get_device_infos(self) -> Sequence[DeviceInfo]:
        """Name the devices' rows."""
        return list(self._delivery.devices.values())

    def get_resource_infos(self) -> Sequence[ResourceInfo]:
        """Name the streams' rows."""
        return list(self._delivery.resources.values())

    def get_device_properties(self) -> Sequence[Mapping[str, object]]:
        """Return facts of the devices."""
        return self._delivery.properties

    def get_metadata(self) -> Mapping[str, object]:
        """Return facts of the capture: releases, files, what CUPTI dropped, and how the host's clock ran."""
        access = self._source.client.access
        facts: dict[str, object] = {f"CUPTI {key}": value for key, value in facts_of(access).items()}
        facts["CUPTI dropped records"] = self._capture.dropped
        facts["CUPTI noise calls left out"] = self._delivery.filtered
        if notes := [*access.doubts, *self._capture.notes, *self._delivery.notes, *_clock_notes(self._clocks)]:
            facts["CUPTI notes"] = notes
        return facts


def _clock_notes(clocks: Sequence[ClockReading]) -> list[str]:
    """Say where the host's clock was set while a capture ran: its times are then off by so much."""
    if len(clocks) < 2:
        return []
    first, last = (one.after_ns - one.monotonic_ns for one in (clocks[0], clocks[-1]))
    moved_us = (last - first) / 1000
    return [f"the host's clock was moved by {moved_us:.0f} us during the capture"] if abs(moved_us) > 100 else []


def _listed(access: Access) -> str:
    return "; ".join(f"{key}: {value}" for key, value in facts_of(access).items())


@cache
def _warn_once(text: str) -> None:
    log.warning("%s", text)


@cache
def _client(access: Access) -> Client:
    return Client(access)


@cache
def _leave_at_exit(client: Client) -> None:
    atexit.register(_leave, client)


def _leave(client: Client) -> None:
    """Switch everything off before the interpreter goes: CUPTI's own thread may not call into a dead one.

    Where another profiler records, what CUPTI calls is that one's, and so are the kinds and the buffers.
    """
    if not client.is_here:
        return
    other = who_records()
    for kind in kinds_beside(other) if other else ActivityKind:
        client.access.cupti.attempt("cuptiActivityDisable", kind)
    if not other:
        client.access.cupti.attempt("cuptiActivityFlushAll", 1)


def _source() -> Source:
    """Open CUPTI in this process.

    Raises:
        CudaUnavailableError, CuptiError: it cannot be used.
    """
    client = _client(open_cupti())
    client.check_free()
    _leave_at_exit(client)  # not before: CUPTI may be another tool's
    libc = ctypes.CDLL(None)
    libc.free.argtypes, libc.free.restype = [ctypes.c_void_p], None
    return Source(client, free=libc.free)
