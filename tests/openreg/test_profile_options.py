"""torch's own options, with a device: memory, stacks, shapes, metadata, filters, its other writer."""

from __future__ import annotations

import gc
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import simland
import torch
from openreg_sim.runtime import runtime
from simland import CPU, DEVICE, Session, device_events, host_events
from torch._C._profiler import _ExperimentalConfig

import devprof
from devprof.errors import UsageError

PRIVATEUSE1 = 20
"""torch's number of the device type."""
KB4 = 4_000
WORK = ["mm_kernel", "Memcpy PtoP (Device -> Device)", "Memset (Device)"]


@cache
def tensor() -> torch.Tensor:
    return torch.ones(64, 64, device="openreg")


def three_pieces() -> None:
    """Launch a kernel and a set on device 0, and a copy on device 1."""
    tensor() @ tensor()
    tensor().to("openreg:1")
    tensor().zero_()


@pytest.fixture(autouse=True, scope="module")
def _warm(_device: None) -> None:
    three_pieces()
    torch.openreg.synchronize()


# --- memory -----------------------------------------------------------------------------------------------------------


def allocate_and_release() -> None:
    a = torch.empty(1000, device="openreg")
    b = a + a
    del a
    c = b.to("openreg:1")
    del b, c


def out_of_memory() -> None:
    allocate_and_release()
    torch.openreg.set_memory_limit(1 << 20)
    with pytest.raises(torch.OutOfMemoryError):
        torch.empty(1 << 20, device="openreg")
    torch.openreg.set_memory_limit(None)


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Session:
    gc.collect()
    return simland.record(out_of_memory, tmp_path_factory.mktemp("memory"), profile_memory=True)


def instants(session: Session, name: str) -> list[dict[str, Any]]:
    """Return what the device's instants of this name say."""
    instants = [event["args"] for event in session.trace.events if event["name"] == name]
    return [one for one in instants if one["Device Type"] == PRIVATEUSE1]


def test_every_allocation_and_release_on_a_device_is_a_memory_event(memory: Session) -> None:
    told = [(one["Device Id"], one["Bytes"]) for one in instants(memory, "[memory]")]
    assert told == [(0, KB4), (0, KB4), (0, -KB4), (1, KB4), (0, -KB4), (1, -KB4)]


def test_memory_events_carry_the_totals_of_their_device(memory: Session) -> None:
    events = instants(memory, "[memory]")
    first = events[0]["Total Allocated"] - KB4
    on_zero = [one["Total Allocated"] - first for one in events if one["Device Id"] == 0]
    assert on_zero == [KB4, 2 * KB4, KB4, 0]
    assert all(one["Total Reserved"] >= one["Total Allocated"] for one in events)
    assert {one["Addr"] > 0 for one in events} == {True}


def test_a_failed_allocation_is_an_out_of_memory_event_with_what_was_asked_for(memory: Session) -> None:
    (event,) = instants(memory, "[OutOfMemory]")
    assert (event["Device Id"], event["Bytes"]) == (0, 4 << 20)


def test_device_bytes_are_shown_on_the_ops_that_allocated_them(memory: Session) -> None:
    own = [
        (event.name, event.self_device_memory_usage, event.cpu_memory_usage)
        for event in host_events(memory.prof)
        if event.name in ("aten::empty", "aten::add", "aten::_to_copy", "aten::empty_strided", "aten::copy_")
    ]
    assert own == [
        ("aten::empty", KB4, 0), ("aten::add", KB4, 0), ("aten::_to_copy", 0, 0), ("aten::empty_strided", KB4, 0),
        ("aten::copy_", 0, 0), ("aten::empty", 0, 0),
    ]  # fmt: skip
    (to,) = (event for event in host_events(memory.prof) if event.name == "aten::to")
    assert to.device_memory_usage == KB4


def test_the_table_has_a_column_of_device_memory(memory: Session) -> None:
    table = memory.prof.key_averages().table(sort_by="self_device_memory_usage", row_limit=3)
    assert "Self OPENREG Mem" in table
    assert "3.91 KB" in table


def test_memory_events_disturb_no_link(memory: Session) -> None:
    """An id of 0 leads torch to a memory event; a device record must never be looked up by it."""
    assert simland.disagreements(memory) == []
    assert memory.report.clean


def test_memory_of_the_devices_own_api_is_reported_through_the_plugin(tmp_path: Path) -> None:
    def body() -> None:
        runtime().free(runtime().allocate(4_096, device=1))

    session = simland.record(body, tmp_path, profile_memory=True)
    assert [(one["Device Id"], one["Bytes"]) for one in instants(session, "[memory]")] == [(1, 4_096), (1, -4_096)]


def test_without_the_option_there_are_no_memory_events(tmp_path: Path) -> None:
    session = simland.record(allocate_and_release, tmp_path)
    assert [event for event in session.trace.events if event["name"] == "[memory]"] == []
    assert {event.self_device_memory_usage for event in host_events(session.prof)} == {0}


# --- stacks and shapes ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stacks(tmp_path_factory: pytest.TempPathFactory) -> Session:
    return simland.record(three_pieces, tmp_path_factory.mktemp("stacks"), with_stack=True, record_shapes=True)


def test_with_stacks_the_users_function_is_around_its_ops_and_every_link_holds(stacks: Session) -> None:
    """A Python frame has the id 0, and must not be taken for the op of an unlinked record."""
    frames = stacks.trace.slices("python_function")
    (mine,) = (one for one in frames if one.name.endswith(": three_pieces"))
    ops = [one for one in stacks.trace.ops().values() if one.name in ("aten::mm", "aten::zero_")]
    assert [mine.start_ns <= one.start_ns and one.end_ns <= mine.end_ns for one in ops] == [True, True]
    assert simland.disagreements(stacks) == []


def test_with_stacks_the_plugin_and_its_drain_leave_no_frames_and_no_ops(stacks: Session) -> None:
    frames = [one.name for one in stacks.trace.slices("python_function")]
    inside = (
        "openreg_sim/profiler.py",
        "openreg_sim/decode.py",
        "openreg_sim/activity.py",
        "devprof/pipeline",
        "devprof/link",
    )
    assert [name for name in frames if any(part in name for part in inside)] == []
    assert {one.name for one in stacks.trace.ops().values()} == {
        "aten::matmul", "aten::mm", "aten::to", "aten::_to_copy", "aten::empty_strided", "aten::copy_", "aten::zero_",
    }  # fmt: skip


def test_shapes_of_device_tensors_are_recorded(stacks: Session) -> None:
    (mm,) = (event for event in host_events(stacks.prof) if event.name == "aten::mm")
    assert mm.input_shapes == [[64, 64], [64, 64]]
    (op,) = (one for one in stacks.trace.ops().values() if one.name == "aten::mm")
    assert op.args["Input Dims"] == [[64, 64], [64, 64]]
    rows = [row for row in stacks.prof.key_averages(group_by_input_shape=True) if row.key == "aten::mm"]
    assert [row.input_shapes for row in rows] == [[[64, 64], [64, 64]]]


# --- metadata ---------------------------------------------------------------------------------------------------------


def test_torch_reads_the_metadata_of_device_work_with_its_types(tmp_path: Path) -> None:
    config = _ExperimentalConfig(expose_kineto_event_metadata=True)
    session = simland.record(three_pieces, tmp_path, experimental_config=config)
    read = {event.name: event.event_metadata for event in device_events(session.prof)}
    assert sorted(read) == sorted(WORK)
    kernel, copy = read["mm_kernel"], read["Memcpy PtoP (Device -> Device)"]
    assert (kernel.grid, kernel.block, kernel.stream, kernel.bytes) == ([16, 1, 1], [256, 1, 1], 0, None)
    assert (copy.bytes, copy.stream, copy.grid) == (64 * 64 * 4, 0, None)
    assert isinstance(copy.bandwidth_gb_s, float)


def test_the_files_metadata_has_json_types(tmp_path: Path) -> None:
    work = {one.name: one for one in simland.record(three_pieces, tmp_path).trace.work()}
    assert {key: type(value) for key, value in work["mm_kernel"].args.items()} == {
        "External id": int, "device": int, "stream": int, "correlation": int, "grid": list, "block": list,
    }  # fmt: skip


def test_the_file_describes_the_devices_and_the_capture(tmp_path: Path) -> None:
    document = simland.record(three_pieces, tmp_path).trace.document
    assert [(one["id"], one["name"]) for one in document["deviceProperties"]] == [
        (device, "openreg (simulated)") for device in range(torch.openreg.device_count())
    ]
    assert document["openreg clock"] == "real"
    assert document["devprof"]["host"] == "torch"


# --- what is asked for ------------------------------------------------------------------------------------------------


def test_a_session_of_the_device_alone_lists_its_work_unlinked(tmp_path: Path) -> None:
    session = simland.record(three_pieces, tmp_path, [DEVICE])
    assert [event.name for event in device_events(session.prof)] == WORK
    assert session.trace.ops() == {}
    assert simland.disagreements(session) == []
    assert {one.op_id for one in session.trace.work()} == {0}
    assert dict(session.ledger.notes) == {"unlinked": 3}
    assert (session.report.clean, session.warned) == (True, [])


@pytest.mark.parametrize(
    ("kinds", "categories"),
    [
        (["CONCURRENT_KERNEL"], {"kernel"}),
        (["GPU_MEMCPY", "GPU_MEMSET"], {"gpu_memcpy", "gpu_memset"}),
        (["CONCURRENT_KERNEL", "PRIVATEUSE1_RUNTIME"], {"kernel", "privateuse1_runtime"}),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, list) else "",
)
def test_a_filter_is_kept_to_and_what_is_there_is_linked(
    tmp_path: Path, kinds: list[str], categories: set[str]
) -> None:
    session = simland.record(three_pieces, tmp_path, [CPU, {DEVICE: kinds}])
    assert {one.category for one in session.trace.slices()} == categories | {"cpu_op", "Trace"}
    assert session.ledger.linked == session.ledger.device_work > 0
    assert session.report.clean


@pytest.mark.parametrize("activities", [[CPU], [CPU, {DEVICE: []}]], ids=["host only", "empty filter"])
def test_a_session_without_the_device_shows_nothing_of_it(tmp_path: Path, activities: list[Any]) -> None:
    with simland.profile(activities) as prof:
        three_pieces()
    trace = simland.exported(prof, tmp_path)
    assert trace.row_names() == {}
    assert "devprof" not in trace.document
    assert {one.category for one in trace.slices()} == {"cpu_op", "Trace"}
    assert device_events(prof) == []
    with pytest.raises(UsageError, match="no devprof plugin took part"):
        devprof.report_of(prof)


def test_the_hosts_waits_are_recorded_only_if_asked_for_and_then_beside_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def body() -> None:
        simland.long_kernel(0)
        torch.openreg.synchronize(0)
        three_pieces()

    def waits(session: Session) -> list[tuple[str, tuple[int, int]]]:
        return [(one.args["cuda_sync_kind"], one.row) for one in session.trace.slices("cuda_sync")]

    assert waits(simland.record(body, tmp_path)) == []
    monkeypatch.setenv("DEVPROF_SYNC_EVENTS", "1")
    asked = simland.record(body, tmp_path)
    beside = 1_000_000
    assert sorted(waits(asked)) == [
        ("Context Sync", (0, beside)), ("Context Sync", (0, beside)),
        ("Stream Wait Event", (0, 0)), ("Stream Wait Event", (1, 0)),
    ]  # fmt: skip
    assert asked.trace.row_names()[0, beside] == ("openreg 0", "stream 0 (sync)")
    assert simland.partial_overlaps(asked.trace) == []


# --- writers ----------------------------------------------------------------------------------------------------------


def test_torchs_python_writer_gives_the_same_device_work(tmp_path: Path) -> None:
    """It leaves out names of rows and plugin metadata; that is its way, for every device."""
    with simland.profile() as prof:
        three_pieces()
    theirs = simland.exported(prof, tmp_path, use_python_export=True)
    assert sorted(one.name for one in theirs.work()) == sorted(WORK)
    ops = theirs.ops()
    assert {one.name: ops[one.op_id].name for one in theirs.work()} == dict(
        zip(WORK, ("aten::mm", "aten::copy_", "aten::zero_"), strict=True)
    )
    starts, finishes = theirs.arrow_ends("ac2g", "s"), theirs.arrow_ends("ac2g", "f")
    assert starts.keys() == finishes.keys() == {one.launch for one in theirs.work()}


@pytest.mark.parametrize("export", ["kineto", "python"])
def test_both_writers_agree_on_every_slice_of_the_device(tmp_path: Path, export: str) -> None:
    with simland.profile() as prof:
        three_pieces()
    trace = simland.exported(prof, tmp_path, **({"use_python_export": True} if export == "python" else {}))
    us = {event.name: event.time_range.elapsed_us() for event in device_events(prof)}
    assert {one.name: one.duration_ns for one in trace.work()} == {name: round(t * 1000) for name, t in us.items()}


def test_user_metadata_and_devprofs_own_stand_side_by_side(tmp_path: Path) -> None:
    with simland.profile() as prof:
        three_pieces()
        prof.add_metadata_json("mine", '{"answer": 42}')
    document = simland.exported(prof, tmp_path).document
    assert document["mine"] == {"answer": 42}
    assert document["devprof"]["plugins"]["openreg"]["device_work"] == 3
