"""`Machine`: what the calls of the API stand on: clocks, lock, waiting, the native ring, the truth."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from openreg_sim.runtime.clocks import DeviceClock, HostClock, RealClock, VirtualClock
from openreg_sim.runtime.config import RuntimeConfig
from openreg_sim.runtime.cost import Signature
from openreg_sim.runtime.delivery import ActivityDelivery
from openreg_sim.runtime.encoding import Encoder
from openreg_sim.runtime.errors import ErrorCode, OpenRegError
from openreg_sim.runtime.faults import FaultPlan, FaultRule
from openreg_sim.runtime.native import native_library
from openreg_sim.runtime.records import Call
from openreg_sim.runtime.replay import Replay
from openreg_sim.runtime.submission import Caller, Submission
from openreg_sim.runtime.timeline import Stream
from openreg_sim.runtime.tracer import OpenRegTracer

__all__ = ["Machine"]

REPLAY_CHUNK = 4_096
"""Ring records replayed under one hold of the lock."""


class _Here(threading.local):
    """The calling thread: its number, its current device, its current stream on each device."""

    def __init__(self) -> None:
        self.thread_id = threading.get_native_id()
        self.device = 0
        self.streams: dict[int, int] = {}


class Machine:
    """Clocks, lock, waiting, the native ring and the truth; see `openreg_sim.runtime.device.Runtime`.

    Attributes:
        config: what the machine is made of.
        host_clock: the host's clock.
        device_clock: the clock of all devices.
        activity: delivery of activity records; used through `openreg_sim.activity`.
        tracer: stacks of external ids; used through `openreg_sim.activity`.
    """

    def __init__(self, config: RuntimeConfig | None = None, host_clock: HostClock | None = None) -> None:
        self.config = config = config or RuntimeConfig()
        self.host_clock: HostClock = host_clock or (VirtualClock() if config.virtual else RealClock())
        self.device_clock = DeviceClock(
            ticks_per_second=config.ticks_per_second,
            offset_ticks=config.clock_offset_ticks,
            drift_ppm=config.clock_drift_ppm,
            read_jitter_ticks=config.clock_jitter_ticks,
            seed=config.seed,
            origin_ns=self.host_clock.now_ns(),
        )
        self.tracer = OpenRegTracer(native_library)
        self._lock = threading.RLock()
        self._faults = FaultPlan()
        encoder = Encoder(self._host_stamps, self.device_clock.ticks_of, self._shapes)
        self.activity = ActivityDelivery(self._lock, encoder, self._faults, config.delivery_rows)
        self._submission = Submission(config, self.host_clock, self.device_clock, self.activity, self._faults)
        self._timeline = self._submission.timeline
        self._replay = Replay(self._submission, config.cost)
        self._drain: Callable[[], None] | None = None
        self._waited_until_ns = 0
        self._here = _Here()

    # --- clocks ---

    def now_ns(self) -> int:
        """Return the host's time; never earlier than what a wait has already seen the end of."""
        return max(self.host_clock.now_ns(), self._waited_until_ns)

    def timestamp(self, device: int = 0) -> int:
        """Return the device clock's ticks. All devices share one clock."""
        self._device(None, device)
        return self.device_clock.read(self.host_clock.now_ns())

    def _host_stamps(self, host_ns: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        # a virtual host clock agrees with no clock that a client can read, so the device's stands in for it
        return self.device_clock.ticks_of(host_ns) if self.host_clock.virtual else host_ns

    # --- the native device's ring ---

    def set_drain(self, drain: Callable[[], None] | None) -> None:
        """Set what brings in the calls that the native device has queued: it takes them and calls `replay`.

        It is called before every answer that depends on them, without any lock of the runtime held.
        """
        self._drain = drain

    def drain(self) -> None:
        """Bring in the calls that the native device has queued."""
        if self._drain is not None:
            self._drain()

    def set_names(self, op_name: Callable[[int], str], signature: Callable[[int], Signature]) -> None:
        """Say how to read the names and signatures of ring records.

        Args:
            op_name: number of a name to the op that launched.
            signature: number of a signature to the dtypes' names and shapes of the tensor arguments.
        """
        with self._lock:
            self._replay.set_names(op_name, signature)

    def replay(self, records: npt.NDArray[np.void]) -> None:
        """Process calls that the native device has queued, in order.

        Args:
            records: shape (n,), `openreg_sim.ring.RING_DTYPE`.
        """
        for first in range(0, len(records), REPLAY_CHUNK):
            with self._lock:
                self._replay.run(records[first : first + REPLAY_CHUNK])
            self._deliver_if_due()

    # --- the truth, and faults ---

    def ground_truth(self) -> npt.NDArray[np.void]:
        """Return what really happened, shape (n,), `TRUTH_DTYPE`, in the order of the calls.

        It knows the latest `RuntimeConfig.truth_calls` calls; `forgotten_calls` says how many came before those.
        """
        self.drain()
        with self._lock:
            return self._submission.truth()

    @property
    def forgotten_calls(self) -> int:
        """Number of calls that `ground_truth` no longer knows."""
        with self._lock:
            return max(0, self._submission.call_count - self.config.truth_calls)

    def forget_truth(self) -> None:
        """Let `ground_truth` begin anew."""
        self.drain()
        with self._lock:
            self._submission.forget()

    def name_of(self, number: int) -> str:
        """Return the text of a name's number, as in the truth and in activity records.

        Raises:
            IndexError: no text has that number.
        """
        return self._submission.names.text(number)

    def inject(self, *rules: FaultRule) -> None:
        """Apply fault rules from now on."""
        self.drain()
        with self._lock:
            self._faults.inject(rules)

    def clear_faults(self) -> None:
        """Apply no fault rule any more."""
        self.drain()
        with self._lock:
            self._faults.clear()

    # --- fork ---

    def before_fork(self) -> None:
        """Hold every lock, so that the child finds the runtime whole."""
        self.activity.lock.acquire()
        self._lock.acquire()

    def after_fork(self, *, in_child: bool) -> None:
        """Let the locks go; a child's thread has another number."""
        self._lock.release()
        self.activity.lock.release()
        if in_child:
            self._here = _Here()

    # --- what the calls are made of ---

    def _shapes(self) -> npt.NDArray[np.uint32]:
        return self._submission.names.shapes()

    def _caller(self, entered_ns: int) -> Caller:
        return entered_ns, self.host_clock.now_ns(), self._here.thread_id, *self.tracer.current()

    def _device(self, call: Call | None, device: int | None) -> int:
        if device is None:
            return self._here.device
        if not 0 <= device < self.config.device_count:
            name = call.api_name if call is not None else "orGetDevice"
            raise OpenRegError(
                ErrorCode.INVALID_DEVICE,
                name,
                f"there is no device {device}; expected 0 to {self.config.device_count - 1}",
            )
        return device

    def _stream(self, call: Call, device: int | None, stream: int | None) -> Stream:
        index = self._device(call, device)
        number = self._here.streams.get(index, 0) if stream is None else stream
        found = self._timeline.streams.get((index, number))
        if found is None:
            raise OpenRegError(
                ErrorCode.INVALID_HANDLE,
                call.api_name,
                f"device {index} has no stream {number}; make one with create_stream({index})",
            )
        return found

    def _native_stream(self, call: Call, device: int | None, stream: int | None) -> Stream:
        # a stream of the native device may be asked about before its first work makes it known
        index = self._device(call, device)
        return self._timeline.stream(index, self._here.streams.get(index, 0) if stream is None else stream)

    def _wait(self, call: Call, stream: Stream, until_ns: int, event: int = 0) -> None:
        caller = self._caller(self.host_clock.now_ns())
        with self._lock:
            begin_ns = self._submission.begin_wait(call, caller)
            error, self._replay.error = self._replay.error, None
        end_ns = self._let_pass(until_ns)
        with self._lock:
            self._waited_until_ns = max(self._waited_until_ns, until_ns)
            self._submission.end_wait(call, caller, begin_ns, max(begin_ns, end_ns), stream, event)
        self._deliver_if_due()
        if error is not None:
            raise error

    def _let_pass(self, until_ns: int) -> int:
        if self.host_clock.virtual:
            with self._lock:  # calls of other threads move the same number
                return self.host_clock.wait_until_ns(until_ns)
        # the lock is free while the host really waits, so that other threads go on
        return self.host_clock.wait_until_ns(until_ns)

    def _deliver_if_due(self) -> None:
        if self.activity.is_due:
            self.activity.deliver(self.now_ns())
