"""Memory reports: Kineto's items, the range that each belongs to, and what is refused."""

from __future__ import annotations

import pytest

from devprof.contract import MemoryReporter
from devprof.errors import UsageError
from devprof.host import RecordFunction, gate, record_function, report_memory, report_out_of_memory
from devprof.host.memory import RangeMemoryReporter
from devprof.model import ActivityType, GenericTraceActivity
from tests.unit.host.recordings import Ticks, recording, run_in_thread


def _seen(activity: GenericTraceActivity) -> tuple[object, ...]:
    return activity.activity_name, activity.start_ns, activity.end_ns, activity.linked, activity.metadata


def test_allocations_releases_and_failures_are_instants_of_the_innermost_range() -> None:
    with recording(profile_memory=True) as session:
        report_memory(4096, 512, 512, 1024, "cpu")
        with record_function("outer") as outer, RecordFunction("op") as op:
            report_memory(2**64 - 1, 100, 612, 1024, "openreg:1")
        with outer:
            report_out_of_memory(10**12, 612, 1024, 0, "cuda")
        report_memory(4096, -512, 100, 1024, "cpu")
    inner, again = session.result.ranges.id.tolist()[1:]
    cpu = {"Device Type": 0, "Device Id": -1, "Addr": 4096, "Total Reserved": 1024, "Device": "cpu"}
    assert [_seen(activity) for activity in session.result.memory.activities()] == [
        ("[memory]", 2, 2, 0, {**cpu, "Bytes": 512, "Total Allocated": 512}),
        (
            "[memory]",
            5,
            5,
            inner,
            {
                "Device Type": 20,
                "Device Id": 1,
                "Addr": -1,
                "Bytes": 100,
                "Total Allocated": 612,
                "Total Reserved": 1024,
                "Device": "openreg:1",
            },
        ),
        (
            "[OutOfMemory]",
            9,
            9,
            again,
            {
                "Device Type": 1,
                "Device Id": 0,
                "Addr": 0,
                "Bytes": 10**12,
                "Total Allocated": 612,
                "Total Reserved": 1024,
                "Device": "cuda:0",
            },
        ),
        ("[memory]", 11, 11, 0, {**cpu, "Bytes": -512, "Total Allocated": 100}),
    ]
    assert (inner, again) == (op.id, outer.id)
    assert set(session.result.memory.activity_type.tolist()) == {ActivityType.CPU_INSTANT_EVENT}


def test_reports_of_threads_are_of_their_threads() -> None:
    def worker() -> None:
        report_memory(1, 1, 1, 1, "openreg:0")

    with recording(profile_memory=True) as session:
        report_memory(2, 1, 1, 1, "cpu")
        run_in_thread(worker, "worker")
    names = session.result.threads
    assert [
        (names[activity.thread_id], activity.metadata["Device"]) for activity in session.result.memory.activities()
    ] == [("MainThread", "cpu"), ("worker", "openreg:0")]


def test_a_plugin_reports_through_a_reporter_of_its_own() -> None:
    reporter: MemoryReporter = RangeMemoryReporter("openreg")
    with recording(profile_memory=True) as session:
        reporter.report_memory_usage(16, 8, 8, 64, 1)
        reporter.report_out_of_memory(99, 8, 64, 0)
    assert [
        (a.activity_name, a.metadata["Device"], a.metadata["Addr"], a.metadata["Bytes"])
        for a in session.result.memory.activities()
    ] == [("[memory]", "openreg:1", 16, 8), ("[OutOfMemory]", "openreg:0", 0, 99)]


def test_reports_are_dropped_where_memory_is_not_profiled() -> None:
    report_memory(1, 1, 1, 1, "cpu")
    with recording() as session:
        report_memory(1, 1, 1, 1, "cpu")
        report_out_of_memory(1, 1, 1, "cpu")
    assert len(session.result.memory) == 0


def test_memory_can_be_recorded_without_ranges() -> None:
    with recording(profile_memory=True, record_ranges=False) as session, record_function("range"):
        report_memory(1, 1, 1, 1, "cpu")
    assert (len(session.result.ranges), session.result.memory.linked.tolist()) == (0, [0])


def test_a_range_of_an_earlier_session_owns_no_report() -> None:
    old = record_function("old")
    with recording():
        old.__enter__()
    with recording(profile_memory=True) as session:
        report_memory(1, 1, 1, 1, "cpu")
        old.__exit__(None, None, None)
    assert session.result.memory.linked.tolist() == [0]


def test_a_report_that_does_not_fit_is_refused() -> None:
    with recording(profile_memory=True) as session:
        with pytest.raises(UsageError, match="whole numbers of 64 bits; found address=-1"):
            report_memory(-1, 1, 1, 1, "cpu")
        with pytest.raises(UsageError, match="bytes='many'"):
            report_memory(1, "many", 1, 1, "cpu")  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="an index with its backend; found device=0"):
            report_memory(1, 1, 1, 1, 0)
        with pytest.raises(UsageError, match="found device='cuda:0', backend='cuda'"):
            report_memory(1, 1, 1, 1, "cuda:0", "cuda")
    assert len(session.result.memory) == 0


def test_a_device_whose_index_is_none_has_no_index() -> None:
    devices = ["openreg:" + "9" * 5000, "openreg:9999999999", "openreg:-1", "openreg:", ":3"]
    with recording(profile_memory=True) as session:
        for device in devices:
            report_memory(1, 2, 3, 4, device)
        report_memory(1, 2, 3, 4, 10**30, "openreg")
    items = [activity.metadata for activity in session.result.memory.activities()]
    assert [(each["Device"], each["Device Id"]) for each in items] == [
        *zip(devices, [-1, -1, -1, -1, 3], strict=True),
        (f"openreg:{10**30}", -1),
    ]


def test_a_report_that_reads_the_clock_after_the_stop_is_of_the_stop() -> None:
    ticks = Ticks()
    with recording(clock=ticks, profile_memory=True) as session:
        queues = gate.GATE.memory
        assert queues is not None
        report_memory(1, 2, 3, 4, "cpu")
        late = bytes(queues.here().memory)
        queues.here().memory += late[:0] + (1000).to_bytes(8, "little") + late[8:]
    assert session.result.stopped_ticks < 1000
    assert session.result.memory.start.tolist() == [2, session.result.stopped_ticks]
