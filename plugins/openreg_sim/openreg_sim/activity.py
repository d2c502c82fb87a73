"""`orActivity*`: what a profiler may ask of the simulated device, after the manner of CUPTI's activity API.

Activities are asked for in Python: buffers, flushing and counts of dropped records are here only, because the timeline that
records come from is replayed lazily, in Python. Native is only what runs on an op's thread: `csrc/openreg_activity.h` has
pushing and popping external ids, and enabling and disabling, which in C turns the keeping of these ids on and off and decides
on no record. There is one state: what is pushed in C is read in Python, and the other way round, and what is enabled here holds
for calls of torch's ops. Calls that the native device has queued are brought in before any function here that depends on them
answers, so that each is judged under the state in which it was made.

    received = []
    orActivityRegisterCallbacks(lambda: bytearray(1 << 20), lambda buffer, size: received.append((buffer, size)))
    orActivityEnableTracing({ActivityKind.KERNEL, ActivityKind.RUNTIME, ActivityKind.EXTERNAL_CORRELATION})
    ...                                                     # the program works
    orActivityDisableTracing()
    runtime().device_synchronize()
    orActivityFlushAll(force=True)
    records = orActivityRecords(received)
    kernels = records[records["kind"] == ActivityKind.KERNEL].view(KERNEL_DTYPE)

**Records** have 80 bytes, all kinds alike, and begin with the fields of `RECORD_DTYPE`; a view as the kind's own type shows
the rest:

| kind | type | carries, beside the common fields |
|---|---|---|
| KERNEL | `KERNEL_DTYPE` | grid, block |
| MEMCPY | `MEMCPY_DTYPE` | bytes, copy_kind (`openreg_sim.ring.CopyKind`), from and to: devices, -1 for the host |
| MEMSET | `MEMSET_DTYPE` | bytes |
| RUNTIME | `RUNTIME_DTYPE` | nothing: which call it was is in `call`, with its name in `name` |
| EXTERNAL_CORRELATION | `EXTERNAL_CORRELATION_DTYPE` | external_id, external_kind (`ExternalCorrelationKind`) |
| SYNCHRONIZATION | `SYNCHRONIZATION_DTYPE` | event, and the stream and correlation of its recording |
| MEMORY | `MEMORY_DTYPE` | bytes (negative: released), address; allocated and reserved bytes after it |

**Correlation.** Every call of the runtime has a number of its own, dense from 1 (`correlation`). Its runtime record and the
record of the device work it caused share it. The ids that an outer framework has pushed come in records of their own, one
per stack that was not empty, before the records of the call that they belong to.

**Times.** KERNEL, MEMCPY, MEMSET and SYNCHRONIZATION are stamped in ticks of the device clock; RUNTIME, MEMORY and
EXTERNAL_CORRELATION by the host's clock, Unix ns. Where the host's clock is virtual they too are stamped in device ticks,
because no clock of the client agrees with a virtual one (`orActivityHostTimesAreTicks`).

**Completeness.** A record is written once its work has ended. A flush leaves out what is still running, forced or not; the
record comes with the first delivery after the end. So: disable, synchronize every device, then flush with force.

**Buffers** belong to the client. The runtime asks for one when it has records to write, and hands it back when it is full or
at a flush, after which it has none. Records for which the client has no buffer are dropped and counted. Callbacks come on
whatever thread makes the call that triggers the delivery; they must be quick, and must not call the runtime. What they raise
is logged and counts as "no buffer".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from openreg_sim.runtime.delivery import BufferCompleted, BufferRequested
from openreg_sim.runtime.errors import ErrorCode, OpenRegError
from openreg_sim.runtime.process import runtime
from openreg_sim.runtime.records import (
    EXTERNAL_CORRELATION_DTYPE,
    KERNEL_DTYPE,
    MEMCPY_DTYPE,
    MEMORY_DTYPE,
    MEMSET_DTYPE,
    RECORD_BYTES,
    RECORD_DTYPE,
    RUNTIME_DTYPE,
    SYNCHRONIZATION_DTYPE,
    ActivityKind,
    ExternalCorrelationKind,
)
from openreg_sim.runtime.tracer import TracerCounts

__all__ = [
    "EXTERNAL_CORRELATION_DTYPE",
    "KERNEL_DTYPE",
    "MEMCPY_DTYPE",
    "MEMORY_DTYPE",
    "MEMSET_DTYPE",
    "RECORD_BYTES",
    "RECORD_DTYPE",
    "RUNTIME_DTYPE",
    "SYNCHRONIZATION_DTYPE",
    "ActivityKind",
    "ExternalCorrelationKind",
    "orActivityDisableTracing",
    "orActivityEnableTracing",
    "orActivityFlushAll",
    "orActivityGetName",
    "orActivityGetNumDroppedRecords",
    "orActivityGetTimestamp",
    "orActivityHostTimesAreTicks",
    "orActivityPopExternalCorrelationId",
    "orActivityPushExternalCorrelationId",
    "orActivityRecords",
    "orActivityRegisterCallbacks",
    "orActivityTracerCounts",
]


def orActivityEnableTracing(kinds: Iterable[ActivityKind] | None = None) -> None:
    """Record these kinds too, for calls from now on; None means all kinds.

    Where nothing was enabled before, the stacks of external ids of all threads start empty.
    """
    current = runtime()
    current.drain()
    current.activity.enable(_bits(kinds))
    current.tracer.enable()


def orActivityDisableTracing(kinds: Iterable[ActivityKind] | None = None) -> None:
    """Stop recording these kinds; None means all. Work launched before still leaves its records.

    Where nothing is enabled any more, pushes and pops of external ids do nothing.
    """
    current = runtime()
    current.drain()
    current.activity.disable(_bits(kinds))
    if not current.activity.enabled:
        current.tracer.disable()


def orActivityRegisterCallbacks(
    buffer_requested: BufferRequested | None, buffer_completed: BufferCompleted | None
) -> None:
    """Set the client, instead of an earlier one, which gets its buffer back first; None and None remove it.

    Args:
        buffer_requested: returns a writable buffer of at least `RECORD_BYTES` (bytearray, memoryview, numpy array), or None
            where the client has none.
        buffer_completed: takes the buffer back, with the number of bytes that hold records.
    """
    current = runtime()
    current.drain()
    current.activity.register(buffer_requested, buffer_completed)


def orActivityFlushAll(force: bool = False) -> None:
    """Hand over all records that are complete.

    Args:
        force: hand over also what the runtime would keep for a later flush; it does so only under a `LateFlush` rule.
    """
    current = runtime()
    current.drain()
    current.activity.flush(current.now_ns(), force=force)


def orActivityGetNumDroppedRecords() -> int:
    """Return how many records were dropped since this was last asked."""
    return runtime().activity.take_dropped()


def orActivityPushExternalCorrelationId(kind: ExternalCorrelationKind | int, id: int) -> None:
    """Put an id on the calling thread's stack of that kind; calls of the thread carry it while it is innermost.

    Does nothing while tracing is disabled.

    Raises:
        OpenRegError: the kind is none, or the id does not fit 63 bits.
    """
    if not 0 <= kind < len(ExternalCorrelationKind) or not 0 <= id < 1 << 63:
        name = "orActivityPushExternalCorrelationId"
        message = (
            f"kind {kind}, id {id}; expected a kind of {list(ExternalCorrelationKind)} and an id from 0 to 2**63 - 1"
        )
        raise OpenRegError(ErrorCode.INVALID_VALUE, name, message)
    runtime().tracer.push(kind, id)


def orActivityPopExternalCorrelationId(kind: ExternalCorrelationKind | int) -> int:
    """Take the innermost id off the calling thread's stack of that kind, and return it.

    Returns 0 where the stack is empty, which is counted, and while tracing is disabled.
    """
    return runtime().tracer.pop(kind)


def orActivityTracerCounts() -> TracerCounts:
    """Return what happened on the stacks of external ids since tracing was enabled."""
    return runtime().tracer.counts()


def orActivityGetTimestamp(device: int = 0) -> int:
    """Return the device clock's ticks."""
    return runtime().timestamp(device)


def orActivityHostTimesAreTicks() -> bool:
    """Say whether host records are stamped in device ticks, as they are where the host's clock is virtual."""
    return runtime().host_clock.virtual


def orActivityGetName(name: int) -> str:
    """Return the text of a record's name."""
    return runtime().name_of(name)


def orActivityRecords(buffers: Sequence[tuple[Any, int]]) -> npt.NDArray[np.void]:
    """Return the records in completed buffers.

    Args:
        buffers: what `buffer_completed` was given: buffer and number of bytes.

    Returns:
        Shape (n,), `RECORD_DTYPE`, a copy.
    """
    filled = [memoryview(buffer).cast("B")[:size] for buffer, size in buffers]
    return np.frombuffer(b"".join(filled), RECORD_DTYPE)


def _bits(kinds: Iterable[ActivityKind] | None) -> int:
    return sum(kind.bit for kind in set(ActivityKind if kinds is None else kinds))
