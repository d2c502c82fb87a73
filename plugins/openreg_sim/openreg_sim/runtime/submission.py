"""One call becomes work on the timeline, a row of the truth, and what a profiling client gets to hear."""

from __future__ import annotations

from collections import deque
from typing import Protocol

import numpy as np
import numpy.typing as npt

from openreg_sim.ring import CopyKind
from openreg_sim.runtime.clocks import DeviceClock, HostClock
from openreg_sim.runtime.config import RuntimeConfig
from openreg_sim.runtime.cost import Work
from openreg_sim.runtime.faults import FaultPlan
from openreg_sim.runtime.records import TRUTH_DTYPE, Call, pack_row, rows_of
from openreg_sim.runtime.timeline import Stream, Timeline

__all__ = ["Caller", "Names", "Submission"]

Caller = tuple[int, int, int, int, int]
"""Host times of a call's entry and return (ns), native id of its thread, op id and user id current at the call."""

HOST = -1
"""Device number of the host, for the ends of a copy."""

COPY_NAMES = {
    CopyKind.HOST_TO_DEVICE: "Memcpy HtoD (Pageable -> Device)",
    CopyKind.DEVICE_TO_HOST: "Memcpy DtoH (Device -> Pageable)",
    CopyKind.DEVICE_TO_DEVICE: "Memcpy DtoD (Device -> Device)",
    CopyKind.PEER_TO_PEER: "Memcpy PtoP (Device -> Device)",
}
SET_NAME = "Memset (Device)"
SYNC_NAMES = {
    Call.STREAM_WAIT_EVENT: "Stream Wait Event",
    Call.STREAM_SYNCHRONIZE: "Stream Sync",
    Call.DEVICE_SYNCHRONIZE: "Context Sync",
    Call.EVENT_SYNCHRONIZE: "Event Sync",
}


class RowSink(Protocol):
    """Takes the rows of calls that a profiling client has asked for."""

    kinds_of_call: dict[Call, int]

    def add(self, row: bytes) -> None:
        """Take one row."""


class Names:
    """Texts and launch shapes by number. Numbers up to that of the last `Call` are the calls' own names."""

    def __init__(self) -> None:
        self._texts: list[str] = ["", *(call.api_name for call in Call)]
        self._numbers = {text: number for number, text in enumerate(self._texts)}
        self._shapes: dict[tuple[int, ...], int] = {}
        self._shape_table = np.zeros((0, 6), np.uint32)

    def number(self, text: str) -> int:
        """Return the number of a text, a new one if need be."""
        number = self._numbers.get(text)
        if number is None:
            number = self._numbers[text] = len(self._texts)
            self._texts.append(text)
        return number

    def text(self, number: int) -> str:
        """Return the text of a number.

        Raises:
            IndexError: no text has it.
        """
        return self._texts[number]

    def shape_number(self, grid: tuple[int, int, int], block: tuple[int, int, int]) -> int:
        """Return the number of a launch shape, a new one if need be."""
        return self._shapes.setdefault((*grid, *block), len(self._shapes))

    def shapes(self) -> npt.NDArray[np.uint32]:
        """Return all launch shapes by number, shape (n, 6): grid, then block."""
        if len(self._shape_table) < len(self._shapes):
            self._shape_table = np.array(list(self._shapes), np.uint32)
        return self._shape_table


class Submission:
    """Places calls on the timeline. Not thread-safe; the runtime holds its lock.

    Every method that takes a `Caller` stands for one call of the API, and returns its correlation number. Where the host's
    clock is virtual, the caller's times are not used.

    Raises:
        OpenRegError: a fault rule lets the call fail; nothing has happened then.
    """

    def __init__(
        self, config: RuntimeConfig, host_clock: HostClock, device_clock: DeviceClock, sink: RowSink, faults: FaultPlan
    ) -> None:
        self.timeline = Timeline(config.device_count)
        self.names = Names()
        self.call_count = 0
        self._cost = config.cost
        self._host_clock = host_clock
        self._device_clock = device_clock
        self._sink = sink
        self._faults = faults
        self._truth: deque[bytes] = deque(maxlen=config.truth_calls)
        self._correlation = 0
        self._copy_names = {kind: self.names.number(text) for kind, text in COPY_NAMES.items()}
        self._set_name = self.names.number(SET_NAME)
        self._sync_names = {call: self.names.number(text) for call, text in SYNC_NAMES.items()}

    def launch(self, caller: Caller, stream: Stream, name: int, shape: int, work: Work, duration_ns: int) -> int:
        """Launch a kernel."""
        begin_ns, return_ns = self._begin(Call.LAUNCH, caller)
        earliest_ns = begin_ns + self._cost.launch_latency_ns
        ran = self.timeline.run(stream, earliest_ns, duration_ns)
        return self._log(Call.LAUNCH, caller, (begin_ns, return_ns), stream, ran, name, int(work.bytes), (shape, 0, 0))

    def copy(self, caller: Caller, stream: Stream, kind: CopyKind, size_bytes: int, peer: int) -> int:
        """Start a copy; `peer` is the source device of a peer copy."""
        begin_ns, return_ns = self._begin(Call.MEMCPY, caller)
        earliest_ns = begin_ns + self._cost.launch_latency_ns
        duration_ns = self._cost.copy_ns(kind, size_bytes)
        ran = self.timeline.copy(stream, earliest_ns, duration_ns, kind, peer)
        ends = (int(kind), *_ends(kind, stream.device, peer))
        return self._log(
            Call.MEMCPY, caller, (begin_ns, return_ns), stream, ran, self._copy_names[kind], size_bytes, ends
        )

    def fill(self, caller: Caller, stream: Stream, size_bytes: int) -> int:
        """Start a set."""
        span = self._begin(Call.MEMSET, caller)
        earliest_ns = span[0] + self._cost.launch_latency_ns
        ran = self.timeline.run(stream, earliest_ns, self._cost.set_ns(size_bytes))
        return self._log(Call.MEMSET, caller, span, stream, ran, self._set_name, size_bytes)

    def record_event(self, caller: Caller, stream: Stream, event: int) -> int:
        """Record an event behind the stream's work so far."""
        span = self._begin(Call.EVENT_RECORD, caller)
        reached_ns = self.timeline.record(event, stream, span[0], self._correlation)
        return self._log(Call.EVENT_RECORD, caller, span, stream, (reached_ns, reached_ns), details=(event, 0, 0))

    def wait_event(self, caller: Caller, stream: Stream, event: int) -> int:
        """Let a stream's further work wait for an event."""
        call = Call.STREAM_WAIT_EVENT
        span = self._begin(call, caller)
        found = self.timeline.events.get(event)
        waits = self.timeline.wait(found, stream, span[0])
        origin = (event, found.stream, found.correlation) if found is not None else (event, 0, 0)
        return self._log(call, caller, span, stream, waits, self._sync_names[call], details=origin)

    def begin_wait(self, call: Call, caller: Caller) -> int:
        """Begin a blocking call and return when; `end_wait` must follow, after the host has waited."""
        self.check(call, caller[0])
        return self._host_clock.span_of_call(caller[0], caller[0], self._cost.call_ns)[0]

    def end_wait(self, call: Call, caller: Caller, begin_ns: int, end_ns: int, stream: Stream, event: int) -> int:
        """Log a blocking call that has come back."""
        self._correlation += 1
        waited = (begin_ns, end_ns)
        found = self.timeline.events.get(event)
        origin = (event, found.stream, found.correlation) if found is not None else (event, 0, 0)
        return self._log(call, caller, waited, stream, waited, self._sync_names[call], details=origin)

    def memory(self, call: Call, caller: Caller, device: int, size_bytes: int, details: tuple[int, int, int]) -> int:
        """Log an allocation or a release: its signed size; its address, and the bytes in use and reserved after it."""
        self._correlation += 1
        span = self._host_clock.span_of_call(caller[0], caller[1], self._cost.call_ns)
        stream = self.timeline.stream(device, 0)
        return self._log(call, caller, span, stream, (span[1], span[1]), 0, size_bytes, details)

    def truth(self) -> npt.NDArray[np.void]:
        """Return the rows that are remembered, shape (n,), `TRUTH_DTYPE`, in the order of the calls."""
        return rows_of(b"".join(self._truth)) if self._truth else np.zeros(0, TRUTH_DTYPE)

    def forget(self) -> None:
        """Forget all rows so far."""
        self._truth.clear()
        self.call_count = 0

    def check(self, call: Call, entered_ns: int) -> None:
        """Let fault rules act on a call that is about to happen."""
        now_ns = self._host_clock.now_ns() if self._host_clock.virtual else entered_ns
        self._faults.before_call(call, now_ns, self._device_clock)

    def _begin(self, call: Call, caller: Caller) -> tuple[int, int]:
        if self._faults.on_calls:
            self.check(call, caller[0])
        self._correlation += 1
        return self._host_clock.span_of_call(caller[0], caller[1], self._cost.call_ns)

    def _log(
        self,
        call: Call,
        caller: Caller,
        span: tuple[int, int],
        stream: Stream,
        ran: tuple[int, int],
        name: int = 0,
        size_bytes: int = 0,
        details: tuple[int, int, int] = (0, 0, 0),
    ) -> int:
        kinds = self._sink.kinds_of_call[call]
        correlation = self._correlation
        _, _, *ids = caller
        row = pack_row(
            call, kinds, correlation, *span, *ids, stream.device, stream.id, *ran, name, size_bytes, *details
        )
        self._truth.append(row)
        self.call_count += 1
        if kinds:
            self._sink.add(row)
        return correlation


def _ends(kind: CopyKind, device: int, peer: int) -> tuple[int, int]:
    if kind is CopyKind.HOST_TO_DEVICE:
        return HOST, device
    if kind is CopyKind.DEVICE_TO_HOST:
        return device, HOST
    return (peer if kind is CopyKind.PEER_TO_PEER else device), device
