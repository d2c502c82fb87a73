"""A program that uses the device, profiled as a user would: every kernel belongs to the range that launched it."""

from __future__ import annotations

import devprof
from devprof.model import ActivityType

from my_npu import device
from my_npu.plugin import NAME


def profiled() -> devprof.profile:
    with devprof.profile(activities=["cpu", NAME], host="python") as prof:
        with devprof.record_function("load"):
            device.copy(4_096, stream=1)
        with devprof.record_function("compute"):
            device.launch("gemm")
            device.launch("relu")
    return prof


def test_each_piece_of_work_belongs_to_the_range_that_launched_it() -> None:
    owners = {event.name: [work.name for work in event.kernels] for event in profiled().events() if event.kernels}
    assert owners == {"load": ["copy to device"], "compute": ["gemm", "relu"]}


def test_every_record_is_accounted_for() -> None:
    ledger = profiled().report.ledgers[NAME]
    assert (ledger.produced, ledger.emitted, ledger.linked) == (6, 6, 3)


def test_work_is_on_the_row_of_its_stream_and_starts_after_its_call() -> None:
    trace = profiled().trace
    called_ns = {int(trace.id[call]): trace.start_ns[call] for call in trace.of_type(ActivityType.PRIVATEUSE1_RUNTIME)}
    work = trace.of_type(ActivityType.CONCURRENT_KERNEL, ActivityType.GPU_MEMCPY)
    rows = {trace.name_of(event): trace.rows[trace.row[event]].name for event in work}
    assert rows == {"copy to device": "stream 1", "gemm": "stream 0", "relu": "stream 0"}
    assert all(trace.start_ns[event] > called_ns[int(trace.id[event])] for event in work)
