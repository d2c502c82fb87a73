"""Traces of ranks, made by hand: a process with a device, whose ops launch work, and collective operations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from devprof.model import ActivityBatch, ActivityType, Flow, GenericTraceActivity, kLinkAsyncCpuGpu
from devprof.store import Place, PlaceKind, Row, Trace, TraceBuilder

BEGIN_NS = 1_700_000_000 * 10**9
OP, LAUNCH, KERNEL, SPAN = (
    ActivityType.CPU_OP,
    ActivityType.CUDA_RUNTIME,
    ActivityType.CONCURRENT_KERNEL,
    ActivityType.GPU_USER_ANNOTATION,
)


@dataclass
class Collective:
    """An operation that ends at a time, as the rank's clock has it."""

    name: str
    end_ns: int
    facts: dict[str, Any] = field(default_factory=dict)


def rank_trace(
    *,
    rank: int | None = None,
    pid: int = 7,
    device: int = 0,
    begin_ns: int = BEGIN_NS,
    n_ops: int = 2,
    collectives: Sequence[Collective] = (),
    collectives_on: str = "device",
    metadata: dict[str, Any] | None = None,
    **facts: object,
) -> Trace:
    """`n_ops` ops, each with a launch and a kernel, and a user range's span; ids count from 1, launches from 100."""
    builder = TraceBuilder()
    host = builder.place(Place(pid, PlaceKind.HOST, "python"))
    gpu = builder.place(Place(device, PlaceKind.DEVICE, f"GPU {device}", backend="cuda", properties={"id": device}))
    builder.place(Place(device + 1, PlaceKind.DEVICE, "unused", backend="cuda"))
    thread, stream = builder.row(Row(host, pid, f"thread {pid}")), builder.row(Row(gpu, 7, "stream 7"))
    for number in range(1, n_ops + 1):
        at = begin_ns + 100 * number
        flow = [Flow(number, kLinkAsyncCpuGpu, leaves) for leaves in (True, False)]
        more = {"Sequence number": number, **(metadata or {})}
        op = GenericTraceActivity(OP, "mm", at, at + 50, id=number, metadata=more)
        call = GenericTraceActivity(LAUNCH, "launch", at + 10, at + 20, id=99 + number, linked=number, flow=flow[0])
        work = GenericTraceActivity(KERNEL, "gemm", at + 30, at + 70, id=99 + number, linked=number, flow=flow[1])
        builder.add(ActivityBatch.from_activities([op, call]), thread, parent=np.array([-1, 0]))
        builder.add(ActivityBatch.from_activities([work]), stream)
    span = GenericTraceActivity(SPAN, "range", begin_ns + 100, begin_ns + 200, id=1)
    builder.add(ActivityBatch.from_activities([span]), stream)
    for one in collectives:
        kind, row = (KERNEL, stream) if collectives_on == "device" else (OP, thread)
        notes = {"Collective name": one.name, "Process Group Name": "0", **one.facts}
        record = GenericTraceActivity(kind, "comm", one.end_ns - 10, one.end_ns, metadata=notes)
        builder.add(ActivityBatch.from_activities([record]), row)
    said = {} if rank is None else {"distributedInfo": {"rank": rank, "world_size": 2}}
    return builder.build(
        window_start_ns=begin_ns, window_end_ns=begin_ns + 1000, facts={"host": "file", "metadata": said, **facts}
    )
