"""One capture with CUPTI, from switching its kinds on to the last buffer: the order of calls that loses nothing."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from cuda_cupti.access import Access
from cuda_cupti.coexistence import KINETO, may_be_taken_over, probe_subscription, who_records
from cuda_cupti.collector import Collector
from cuda_cupti.errors import CudaUnavailableError, CuptiError
from cuda_cupti.exchange import Exchange
from cuda_cupti.external_ids import ExternalIds
from cuda_cupti.layouts import ActivityKind
from cuda_cupti.native_exchange import new_exchange
from cuda_cupti.selection import DEVICE_KINDS, NOISY_DRIVER_CALLS, NOISY_RUNTIME_CALLS
from cuda_cupti.stacks import CorrelationStacks

__all__ = ["Capture", "Client", "ClockReading", "kinds_beside"]

_ZEROED_BUFFERS = 5  # CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER
_SYSTEM_THREAD_IDS = 1  # CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM
_COMPLETE, _ALL = 0, 1  # what cuptiActivityFlushAll hands over: complete records, or also incomplete ones

UNFINISHED_WORK_S = 2.0
"""How long `stop` waits for work on contexts that it cannot wait for by name."""
LATE_BUFFERS_S = 0.2
"""How long `stop` waits for buffers after the last flush: they may come a little later."""


_OURS_ALONE = (ActivityKind.MEMORY2, ActivityKind.GRAPH_TRACE)
"""Kinds that Kineto does not switch on."""
_TAKEN_OVER = (
    "{} began while CUDA was recorded and took CUPTI over: its trace has what came after, and the last "
    "records before are lost. Let one of the two end before the other begins"
)


def kinds_beside(other: str) -> tuple[ActivityKind, ...]:
    """Return the kinds that can be switched off while another profiler has CUPTI: what is off is off for it too."""
    return _OURS_ALONE if other == KINETO else ()


@dataclass(frozen=True, slots=True)
class ClockReading:
    """CUPTI's clock between two readings of the host's, and the monotonic clock; ns.

    Attributes:
        before_ns, after_ns: CLOCK_REALTIME.
        cupti_ns: CUPTI's.
        monotonic_ns: CLOCK_MONOTONIC.
    """

    before_ns: int
    cupti_ns: int
    after_ns: int
    monotonic_ns: int

    @property
    def agrees(self) -> bool:
        """True where CUPTI's clock is the host's."""
        return self.before_ns <= self.cupti_ns <= self.after_ns


class Client:
    """devprof as the one client of a libcupti: what outlives a capture. One object per process and library.

    Attributes:
        access: the library, the driver and the layout.
        exchange: the functions that CUPTI calls.
        stacks: the ids that are pushed.
        changed: what a capture changed for the process, by what it is, and what puts it back and says whether it could. What
            could not be put back is tried again by the next capture.
        left_on: kinds that a capture could not switch off, or left on for another profiler; the next one tries again.
    """

    def __init__(self, access: Access, exchange: Exchange | None = None) -> None:
        """Become the client; nothing is switched on yet.

        Args:
            access: what `open_cupti` returned.
            exchange: the functions for buffers; None: the best that there are.
        """
        self.access = access
        self.exchange = exchange or new_exchange()
        self.stacks = CorrelationStacks(access.cupti)
        self.changed: dict[str, Callable[[], bool]] = {}
        self.left_on: list[ActivityKind] = []
        self._lock = threading.Lock()
        self._capture: object | None = None
        self._process = os.getpid()

    @property
    def is_here(self) -> bool:
        """False in a process that was forked off: CUPTI and the thread that decodes are the parent's, and calls would hang."""
        return os.getpid() == self._process

    def check_free(self) -> None:
        """Find out whether a tool outside of Python holds CUPTI.

        Not asked while kinds of devprof's own are on: CUPTI may answer that they are somebody's.

        Raises:
            CudaUnavailableError, CuptiError: see `probe_subscription`.
        """
        with self._lock:  # no capture begins meanwhile
            if self._capture is None and not self.left_on:
                probe_subscription(self.access.cupti)

    def take(self, capture: object) -> None:
        """Let one capture have the client.

        Raises:
            CudaUnavailableError: another one has it.
        """
        with self._lock:
            if self._capture is not None:
                raise CudaUnavailableError(
                    "another capture of the plugin records CUDA in this process; one at a time can"
                )
            self._capture = capture

    def give_back(self, capture: object) -> None:
        """Take the client back from a capture; from any other, nothing."""
        with self._lock:
            if self._capture is capture:
                self._capture = None

    def read_clock(self) -> ClockReading:
        """Read the clocks, five times, and return the tightest reading.

        Raises:
            CuptiError: CUPTI's cannot be read.
        """
        readings = []
        for _ in range(5):
            before = time.clock_gettime_ns(time.CLOCK_REALTIME)
            cupti = self.access.cupti.timestamp_ns()
            after = time.clock_gettime_ns(time.CLOCK_REALTIME)
            readings.append(ClockReading(before, cupti, after, time.clock_gettime_ns(time.CLOCK_MONOTONIC)))
        return min(readings, key=lambda one: one.after_ns - one.before_ns)


@dataclass(slots=True)
class Capture:
    """One capture. `start` and `stop` on any thread, one at a time.

    Attributes:
        client: whom it records for.
        kinds: what to switch on.
        collector: the records.
        ids: the ids of the capture, once started.
        dropped: how many records CUPTI had no room for; None: it cannot say.
        context_devices: the device of each primary context that was looked at, by CUPTI's number.
        notes: what is worth knowing, a sentence each.
        errors: what went wrong, a sentence each.
        taken_over_by: names the profiler that has CUPTI now, empty where devprof has it.
    """

    client: Client
    kinds: Sequence[ActivityKind]
    collector: Collector
    ids: ExternalIds | None = None
    dropped: int | None = 0
    context_devices: dict[int, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    taken_over_by: Callable[[], str] = who_records
    _on: list[ActivityKind] = field(default_factory=list)
    _records: bool = False
    _strange: int = 0
    _refused: int = 0

    def start(self) -> None:
        """Switch recording on.

        Raises:
            CudaUnavailableError, CuptiError: it cannot be; everything is as before.
        """
        self.client.take(self)
        try:
            self._start()
        except BaseException:
            self._end()
            raise

    def stop(self) -> None:
        """Wait for the devices, take everything that CUPTI has, and switch off. A second call does nothing."""
        if not self._records:
            return
        self._records = False
        if not self.client.is_here:
            self.errors.append("the process was forked while CUDA was recorded; the records are the parent's")
            return
        try:
            self._finish()
        finally:
            self._end()

    def pause(self, *, on: bool) -> None:
        """Stop recording for a while, or go on. What was launched before has its records."""
        if not self.client.is_here:
            return
        if other := self.taken_over_by():
            # what is switched off or on is so for them
            self._fail(_TAKEN_OVER.format(other))
            return
        paused = [kind for kind in self.kinds if kind != ActivityKind.EXTERNAL_CORRELATION]
        if on:
            left = self._disable([kind for kind in paused if kind not in DEVICE_KINDS])
            self._wait_for_devices()
            for told in (left, self._disable([kind for kind in paused if kind in DEVICE_KINDS])):
                self._fail(told and f"{told} It was recorded through a pause.")
        else:
            for kind in paused:
                self._enable(kind)

    def flush(self) -> None:
        """Have CUPTI hand over the buffers whose records are all complete, and decode them; recording goes on."""
        if self.client.is_here:
            self._flush(_COMPLETE)
            self.collector.catch_up()
            if ActivityKind.SYNCHRONIZATION in self.kinds and len(self.client.access.devices) > 1:
                list(self._primary_contexts())  # waits say on which context they were, and no more

    # -- inside -------------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        cupti, exchange = self.client.access.cupti, self.client.exchange
        self._set_thread_ids()
        cleared = cupti.byte_attribute(_ZEROED_BUFFERS)
        # not where another client may begin in the middle: its buffers are not cleared
        if cleared == 0 and not may_be_taken_over() and cupti.set_byte_attribute(_ZEROED_BUFFERS, 1):
            self.client.changed["the clearing of buffers"] = lambda: cupti.set_byte_attribute(_ZEROED_BUFFERS, 0)
        self._strange, self._refused = exchange.strange, exchange.refused
        self.collector.begin()
        cupti.call("cuptiActivityRegisterCallbacks", exchange.requested, exchange.completed)
        if exchange.outstanding(exchange.loans):
            self._flush(_ALL)  # what CUPTI took at the end of the capture before
        cupti.dropped_records()  # what others lost is not ours
        self.ids = self.client.stacks.begin()
        self._on, self.client.left_on = self.client.left_on, []
        for kind in self.kinds:
            self._enable(kind)
        self._records = True

    def _set_thread_ids(self) -> None:
        cupti, changed = self.client.access.cupti, self.client.changed
        before = cupti.thread_id_type()
        cupti.call("cuptiSetThreadIdType", _SYSTEM_THREAD_IDS)
        if before != _SYSTEM_THREAD_IDS:  # else it was so before, or an earlier capture could not put it back
            # process-wide, and Kineto looks its threads up by the other kind
            changed["the numbering of threads"] = lambda: cupti.attempt("cuptiSetThreadIdType", before) == 0

    def _enable(self, kind: ActivityKind) -> None:
        cupti = self.client.access.cupti
        if code := cupti.attempt("cuptiActivityEnable", kind):
            error = CuptiError(code, f"cuptiActivityEnable({kind.name})", cupti.describe(code))
            if kind is ActivityKind.CONCURRENT_KERNEL or code in (35, 39, 40):
                raise error
            self._fail(str(error))
            return
        if kind not in self._on:
            self._on.append(kind)
        # switching a kind on resets its filter
        if kind is ActivityKind.RUNTIME:
            for cbid in NOISY_RUNTIME_CALLS:
                cupti.attempt("cuptiActivityEnableRuntimeApi", cbid, 0)
        elif kind is ActivityKind.DRIVER:
            for cbid in NOISY_DRIVER_CALLS:
                cupti.attempt("cuptiActivityEnableDriverApi", cbid, 0)
        elif kind is ActivityKind.SYNCHRONIZATION:
            cupti.attempt("cuptiActivityEnableAllSyncRecords", 1)
        elif kind is ActivityKind.CUDA_EVENT:
            stamped = "cuptiActivityEnableCudaEventDeviceTimestamps"
            if cupti.attempt(stamped, 1) == 0:
                # off by default
                self.client.changed["the times of events"] = lambda: cupti.attempt(stamped, 0) == 0

    def _disable(self, kinds: Sequence[ActivityKind]) -> str:
        """Switch off those of the kinds that are on; return what stays on, a sentence, and keep it for the end."""
        cupti, why = self.client.access.cupti, ""
        for kind in [one for one in self._on if one in kinds]:
            if code := cupti.attempt("cuptiActivityDisable", kind):
                why = str(CuptiError(code, "cuptiActivityDisable", cupti.describe(code)))
            else:
                self._on.remove(kind)
        left = ", ".join(kind.name for kind in self._on if kind in kinds)
        return f"CUPTI did not switch off {left}: {why}" if left else ""

    def _finish(self) -> None:
        cupti = self.client.access.cupti
        if other := self.taken_over_by():
            # what CUPTI holds goes to whoever registered last
            mine = kinds_beside(other)
            self.client.left_on = [kind for kind in self._on if kind not in mine]
            self._on = [kind for kind in self._on if kind in mine]
            self._fail(_TAKEN_OVER.format(other))
            self.dropped = None
            return
        # first what records the calls, so that the waiting below is not recorded; kernels in flight still get their records
        self._disable([kind for kind in self.kinds if kind not in DEVICE_KINDS])
        self._wait_for_devices()
        exchange = self.client.exchange
        loans = exchange.loans  # other threads may go on, and take more
        flushed = self._flush(_COMPLETE)
        if self.collector.wait(loans, LATE_BUFFERS_S) and flushed:
            self._wait_for_unfinished_work(loans)
        self._disable([kind for kind in self.kinds if kind in DEVICE_KINDS])
        loans = exchange.loans
        self._flush(_ALL)
        if left := self.collector.wait(loans, LATE_BUFFERS_S):
            exchange.give_up(loans)
            self.errors.append(f"CUPTI did not give {left} activity buffer(s) back; their records are lost")
        self.dropped = cupti.dropped_records()
        self._tell_exchange()
        refused, stuck = self.client.stacks.end()
        if refused:
            self.errors.append(f"CUPTI refused {refused} external correlation id(s); their work belongs to no op")
        if stuck:
            self.errors.append(
                f"CUPTI did not take back {stuck} external correlation id(s); work after those ops may be linked to them"
            )

    def _tell_exchange(self) -> None:
        exchange = self.client.exchange
        if refused := exchange.refused - self._refused:
            self.errors.append(
                f"there was no memory for {refused} activity buffer(s); CUPTI dropped what they would have held"
            )
        if strange := exchange.strange - self._strange:
            self.notes.append(
                f"CUPTI gave back {strange} activity buffer(s) that it did not hold; nothing was read from them"
            )

    def _wait_for_devices(self) -> None:
        """Wait for the primary context of every device, which is what all but few programs use."""
        for device in self._primary_contexts():
            if wrong := self.client.access.driver.wait():
                # the program's own error, which comes out at any call; the records before it are there
                self.errors.append(f"device {device}: {wrong} when it was waited for")

    def _primary_contexts(self) -> Iterator[int]:
        """Yield each device that has a primary context, which is current meanwhile, and keep CUPTI's number of it."""
        access = self.client.access
        for device in access.devices:
            with access.driver.primary_context(device) as context:
                if context is None:
                    continue
                number = access.cupti.context_id(context)
                if number is not None:
                    self.context_devices[number] = device
                yield device

    def _wait_for_unfinished_work(self, loans: int) -> None:
        """Wait for buffers that hold records of work that still runs: on contexts of the program's own, or CUPTI is slow."""
        deadline = time.monotonic() + UNFINISHED_WORK_S
        while time.monotonic() < deadline:
            if not self._flush(_COMPLETE) or not self.collector.wait(loans, 0.02):
                return
        self.notes.append("work was still running, or CUPTI still held records of it, two seconds after the stop")

    def _flush(self, what: int) -> bool:
        """Have CUPTI hand buffers over; return whether it could."""
        cupti = self.client.access.cupti
        if code := cupti.attempt("cuptiActivityFlushAll", what):
            self._fail(str(CuptiError(code, f"cuptiActivityFlushAll({what})", cupti.describe(code))))
        return code == 0

    def _fail(self, error: str) -> None:
        """Keep an error, once however often it comes up."""
        if error and error not in self.errors:
            self.errors.append(error)

    def _end(self) -> None:
        """Put everything back as it was, in reverse; the functions for buffers stay registered, with nobody behind."""
        self.client.stacks.end()
        self._fail(self._disable(self._on))
        self.client.left_on += self._on
        self._on = []
        changed = self.client.changed
        for what in reversed(list(changed)):
            if changed[what]():
                del changed[what]
            else:
                self._fail(f"CUPTI did not put back {what}; the next capture tries again")
        self.collector.finish()
        self.errors += self.collector.errors
        self.collector.errors = []
        self.client.give_back(self)
