"""`HostOptions` and `HostRecording`: what a recorder is asked for, and what it gives back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # numpy is loaded when a recording is made, not when a range is entered
    from devprof.model import ActivityBatch
    from devprof.store.limits import Limits
    from devprof.store.totals import Totals

__all__ = ["HOST_TICKS", "HostOptions", "HostRecording"]

HOST_TICKS = "perf_counter_ns"
"""Name of the clock of every batch in a `HostRecording`: ticks of `time.perf_counter_ns`."""


@dataclass(frozen=True, slots=True)
class HostOptions:
    """What a `HostRecorder` records.

    Attributes:
        record_shapes: keep shapes, dtypes and plain values of the inputs of ranges.
        profile_memory: keep what `report_memory` and `report_out_of_memory` report.
        with_stack: trace Python functions.
        with_modules: name the module whose call a function is (only with `with_stack`).
        record_ranges: keep ranges; without it, only memory and functions are kept, and no ids are given.
        limits: how much to keep, but of functions, which have a limit of their own; None: everything.
    """

    record_shapes: bool = False
    profile_memory: bool = False
    with_stack: bool = False
    with_modules: bool = False
    record_ranges: bool = True
    limits: Limits | None = None


@dataclass(frozen=True, slots=True, eq=False)
class HostRecording:
    """What one session recorded on the host. Times are ticks of the recorder's clock; each thread's events are in order.

    Attributes:
        ranges: CPU_OP, or USER_ANNOTATION for `RecordScope.USER_SCOPE`. `id` is the range's id, unique in the process and
            never 0; `linked` the id of the range that it was entered in (also that which submitted the work), 0: none;
            `linked_user` the id of the user range around it, 0: none; `thread_id` the thread where it began.
            Metadata: "Sequence number" and "Fwd thread id" INT; "Input Dims", "Input type" and "Concrete Inputs" STRING
            that hold JSON; "Overload name" STRING; "Record scope" INT, unless FUNCTION or USER_SCOPE; "End thread" INT,
            where it ended on another thread; "finished" BOOL, 0 where it was open at the end. Only rows that have a
            value are `present`.
        memory: CPU_INSTANT_EVENT "[memory]" and "[OutOfMemory]". `linked` is the id of the innermost range, 0: none.
            Metadata: Kineto's "Device Type", "Device Id", "Addr", "Bytes", "Total Allocated", "Total Reserved" INT, and
            "Device" STRING such as "cpu" or "openreg:0".
        functions: PYTHON_FUNCTION, as `devprof.host.functions` describes.
        threads: name of each thread by its native id.
        discarded: how many events were left out, by reason.
        notes: one sentence for each thing that the reader should know.
        started_ticks: when recording began.
        stopped_ticks: when it ended; the end of every range that was still open.
        complete_since_ticks: from when on everything is there; None: since the start. So are ranges that were open then.
        totals: sums over all ranges, also those that are not here, in ticks, where they are added up.
    """

    ranges: ActivityBatch
    memory: ActivityBatch
    functions: ActivityBatch
    threads: Mapping[int, str] = field(default_factory=dict)
    discarded: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    started_ticks: int = 0
    stopped_ticks: int = 0
    complete_since_ticks: int | None = None
    totals: Totals | None = None
