"""The file by Perfetto's own definitions: what stands in it, on which track, at which time."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from devprof.errors import UsageError
from devprof.export import perfetto_trace
from devprof.model import ActivityType, kLinkAsyncCpuGpu, kLinkFwdBwd
from devprof.store import ItemKind, Place, PlaceKind, Row, Trace
from tests.unit.export.perfetto_files import Event, File, read
from tests.unit.export.traces import BASE_NS, DEVICE, HOST, ROWS, STREAM, kernel, op, small_trace, trace_of

pytestmark = pytest.mark.usefixtures("perfetto_writer")

T = ActivityType
LAUNCH = {"flow_id": 2**30, "flow_type": kLinkAsyncCpuGpu}


def written(trace: Trace, folder: Path) -> File:
    perfetto_trace(trace, folder / "trace.pftrace")
    return read(folder / "trace.pftrace")


def shown(file: File) -> list[tuple[Any, ...]]:
    """Where, what, when from `BASE_NS`, and under what."""
    return [
        (
            file.path(event.track)[1:],
            event.name,
            event.start_ns - BASE_NS,
            None if event.end_ns is None else event.end_ns - BASE_NS,
            event.above.name if event.above else None,
        )
        for event in file.events
    ]


def test_slices_instants_and_samples_stand_in_the_file_with_all_that_the_trace_says_of_them(tmp_path: Path) -> None:
    file = written(small_trace(), tmp_path)
    tracks = {file.path(uuid): uuid for uuid in file.tracks}
    main, stream = tracks["python", "thread 4321 (MainThread)"], tracks["OpenReg 0", "stream 7"]
    mm = Event(
        main,
        "aten::mm",
        "cpu_op",
        BASE_NS + 1_000,
        BASE_NS + 9_000,
        {"External id": 5, "Input Dims": "[[8, 8], [8, 8]]", "finished": False},
    )
    launch = Event(
        main,
        "orLaunch",
        "privateuse1_runtime",
        BASE_NS + 2_000,
        BASE_NS + 3_000,
        {"External id": 5, "correlation": 2**30, "Bytes": 2**62},
        flows=(1,),
        above=mm,
    )
    on_device = Event(
        stream,
        "mm",
        "kernel",
        BASE_NS + 4_000,
        BASE_NS + 8_001,
        {
            "External id": 5,
            "correlation": 2**30,
            "grid": "[4, 1, -1]",
            "est. achieved occupancy %": 12.5,
            "note": 'a "quoted" é \ufffd',
            "Bytes": 7,
        },
        last_of_flows=(1,),
    )
    memory = Event(
        main,
        "[memory]",
        "cpu_instant_event",
        BASE_NS + 5_000,
        None,
        {"External id": 5, "finished": True, "Bytes": -64},
        above=mm,
    )
    sample = Event(tracks["OpenReg 0", "stream 7", "SM active busy"], "", "", BASE_NS + 6_000, None, value=0.25)
    assert file.events == [mm, launch, on_device, memory]
    assert file.samples == [sample]


def test_hosts_are_processes_with_threads_and_devices_are_tracks_with_tracks_in_them(tmp_path: Path) -> None:
    place = Place(0, PlaceKind.DEVICE, "OpenReg 0", "sim", backend="openreg", properties={"id": 0, "name": "é"})
    trace = trace_of([op("a", 0, 1), kernel("k", 0, 1)], places=(HOST, place))
    tracks = list(written(trace, tmp_path).tracks.values())
    process, thread, device, stream = tracks
    assert (process.process.pid, process.process.process_name) == (4321, "python")
    assert (thread.thread.pid, thread.thread.tid) == (4321, 4321)
    assert (thread.thread.thread_name, thread.parent_uuid) == ("thread 4321 (MainThread)", process.uuid)
    assert not any(track.HasField("process") or track.HasField("thread") for track in (device, stream))
    assert (device.name, device.parent_uuid) == ("OpenReg 0", 0)
    assert device.description == 'sim\n{"id": 0, "name": "é"}'
    assert (stream.name, stream.parent_uuid, stream.description) == ("stream 7", device.uuid, "device 0, stream 7")
    never_merged = device.SIBLING_MERGE_BEHAVIOR_NONE
    assert [track.sibling_merge_behavior for track in (device, stream)] == [never_merged] * 2


def test_rows_keep_their_order_and_lanes_stand_below_their_row(tmp_path: Path) -> None:
    rows = [Row(1, 9, "late", sort_index=1), Row(1, 7, "early", sort_index=0)]
    trace = trace_of([kernel("a", 0, 100, 1), kernel("b", 50, 150, 1), kernel("c", 0, 1, 0)], rows=rows)
    file = written(trace, tmp_path)
    streams = [track for track in file.tracks.values() if track.parent_uuid]
    assert [track.name for track in sorted(streams, key=lambda track: track.sibling_order_rank)] == [
        "early",
        "early (2)",
        "late",
    ]
    device = file.tracks[streams[0].parent_uuid]
    assert device.child_ordering == device.EXPLICIT


def test_threads_whose_numbers_agree_in_their_lower_half_are_two_threads(tmp_path: Path) -> None:
    first, second = 139_840_000_000_000, 139_840_000_000_000 + 2**32
    trace = trace_of([op("a", 0, 1, 0), op("b", 0, 1, 1)], rows=[Row(0, first), Row(0, second)])
    tracks = [track for track in written(trace, tmp_path).tracks.values() if track.HasField("thread")]
    assert [track.thread.thread_name for track in tracks] == [f"thread {first}", f"thread {second}"]
    assert len({track.thread.tid for track in tracks}) == 2
    assert all(0 < track.thread.tid < 2**31 for track in tracks)


def test_a_process_and_a_thread_with_number_zero_are_not_taken_for_the_system_or_for_a_device(tmp_path: Path) -> None:
    places = (Place(0, PlaceKind.HOST, "host"), DEVICE)
    trace = trace_of([op("a", 0, 1), kernel("k", 0, 1)], places=places, rows=[Row(0, 0, "main"), ROWS[1]])
    file = written(trace, tmp_path)
    assert not any(track.HasField("process") or track.HasField("thread") for track in file.tracks.values())
    assert [file.path(event.track) for event in file.events] == [("host", "main"), ("OpenReg 0", "stream 7")]


def test_kernels_that_cross_on_a_stream_are_all_shown_at_their_times(tmp_path: Path) -> None:
    trace = trace_of([kernel("K1", 0, 100), kernel("K2", 80, 150), kernel("K3", 90, 95)])
    assert shown(written(trace, tmp_path)) == [
        (("stream 7",), "K1", 0, 100, None),
        (("stream 7 (2)",), "K2", 80, 150, None),
        (("stream 7",), "K3", 90, 95, "K1"),
    ]


@pytest.mark.parametrize("turned", [False, True])
def test_slices_that_touch_or_start_together_nest_as_their_times_say_in_any_order(tmp_path: Path, turned: bool) -> None:
    events = [
        op("outer", 0, 100),
        op("inner", 0, 50),
        op("innermost", 0, 50),
        op("next", 50, 100),
        op("at its start", 50, 50),
        op("after", 100, 120),
        op("backward", 110, 105),
    ]
    trace = trace_of(events[::-1] if turned else events)
    inner = ["innermost", "inner"] if turned else ["inner", "innermost"]  # equal ones stay in the trace's order
    main = ("thread 4321 (MainThread)",)
    assert shown(written(trace, tmp_path)) == [
        (main, "outer", 0, 100, None),
        (main, inner[0], 0, 50, "outer"),
        (main, inner[1], 0, 50, inner[0]),
        (main, "next", 50, 100, "outer"),
        (main, "at its start", 50, 50, "next"),
        (main, "after", 100, 120, None),
        (main, "backward", 110, 110, "after"),
    ]


def test_a_launch_has_an_arrow_to_each_kernel_of_its_graph_and_kinds_of_arrows_do_not_meet(tmp_path: Path) -> None:
    forward = {"flow_id": 1, "flow_type": kLinkFwdBwd}
    graph = {"flow_id": 1, "flow_type": kLinkAsyncCpuGpu}
    events = [
        op("graph launch", 0, 10, flow_start=1, **graph),
        op("forward", 20, 30, flow_start=1, **forward),
        op("backward", 40, 50, **forward),
        kernel("a", 20, 30, **graph),
        kernel("b", 40, 50, **graph),
        kernel("never launched", 60, 70, flow_id=7, flow_type=kLinkAsyncCpuGpu),
        op("never run", 60, 70, flow_id=8, flow_type=kLinkAsyncCpuGpu, flow_start=1),
    ]
    file = written(trace_of(events), tmp_path)
    assert file.arrows() == {("graph launch", "a"), ("graph launch", "b"), ("forward", "backward")}
    numbers = [number for event in file.events for number in (*event.flows, *event.last_of_flows)]
    assert sorted(numbers) == [1, 1, 2, 2, 3, 3]


def test_an_arrow_whose_ends_have_one_time_starts_before_it_ends_in_any_order(tmp_path: Path) -> None:
    launch = op("launch", 5, 9, flow_start=1, **LAUNCH)
    events = [op("around", 5, 20), kernel("k", 5, 50, **LAUNCH), launch]
    file = written(trace_of(events), tmp_path)
    assert file.arrows() == {("launch", "k")}
    assert {event.name: event.above and event.above.name for event in file.events} == {
        "around": None,
        "launch": "around",
        "k": None,
    }


def test_an_instant_that_stands_late_or_early_in_the_trace_has_its_time(tmp_path: Path) -> None:
    def instant(at: int) -> dict[str, Any]:
        return op(f"at {at}", at, at, type=T.CPU_INSTANT_EVENT)

    events = [instant(900), op("a", 0, 100), op("b", 10, 20), instant(15), op("c", 950, 960), instant(5)]
    file = written(trace_of(events), tmp_path)
    assert [(name, start, end, above) for _, name, start, end, above in shown(file)] == [
        ("a", 0, 100, None),
        ("at 5", 5, None, "a"),
        ("b", 10, 20, "a"),
        ("at 15", 15, None, "b"),
        ("at 900", 900, None, None),
        ("c", 950, 960, None),
    ]


def test_lists_that_come_again_and_lists_that_do_not_are_the_same_text(tmp_path: Path) -> None:
    lists = {i: [i % 3, -1, 2**62] if i % 2 else [i, 0, -(2**63)] for i in range(100)}
    events = [kernel(f"k{i}", i, i + 1, row=1 + i % 2) for i in range(100)]
    trace = trace_of(events, items={"grid": (ItemKind.INT_LIST, lists)}, rows=(*ROWS, Row(1, 8)))
    found = {event.name: event.args for event in written(trace, tmp_path).events}
    assert found == {f"k{i}": {"grid": str(lists[i])} for i in range(100)}


def test_an_item_with_the_key_of_a_derived_arg_holds(tmp_path: Path) -> None:
    events = [kernel("a", 0, 1, id=3, linked=4), kernel("b", 2, 3, id=5, linked=6)]
    items = {"stream": (ItemKind.STRING, {0: "null stream"}), "correlation": (ItemKind.STRING, {0: "none"})}
    found = [event.args for event in written(trace_of(events, items=items), tmp_path).events]
    assert found == [
        {"External id": 4, "stream": "null stream", "correlation": "none"},
        {"External id": 6, "correlation": 5},
    ]


def test_what_a_device_and_a_stream_are_called_is_said_by_their_track_and_in_no_event_again(tmp_path: Path) -> None:
    events = [kernel("a", 0, 1), kernel("b", 2, 3), op("c", 0, 1)]
    items = {"device": (ItemKind.INT, {0: 0, 1: 1, 2: 4321}), "stream": (ItemKind.INT, {0: 7, 1: 7, 2: 4321})}
    file = written(trace_of(events, items=items), tmp_path)
    assert {event.name: event.args for event in file.events} == {
        "a": {},
        "b": {"device": 1},
        "c": {"device": 4321, "stream": 4321},
    }


def test_a_counter_event_without_a_value_is_an_instant(tmp_path: Path) -> None:
    trace = trace_of([op("SM active", 5, 5, STREAM, type=T.MTIA_COUNTERS)])
    assert shown(written(trace, tmp_path)) == [(("stream 7",), "SM active", 5, None, None)]


def memory_trace() -> Trace:
    """Three reports of a device's memory, of which more is reserved than allocated, and one of the host's."""
    kinds, allocated, reserved, devices = [1, 1, 0, 1], [10, 30, 5, 0], [64, 64, 5, 64], [0, 0, -1, 0]
    events = [op("[memory]", at, at, type=T.CPU_INSTANT_EVENT) for at in (3, 1, 2, 4)]
    columns = {"Device Type": kinds, "Device Id": devices, "Bytes": [1, 2, 3, 4], "Total Allocated": allocated,
               "Total Reserved": reserved}  # fmt: skip
    return trace_of(events, items={key: (ItemKind.INT, dict(enumerate(values))) for key, values in columns.items()})


def test_memory_is_a_counter_per_device_of_what_is_allocated_and_reserved_by_time(tmp_path: Path) -> None:
    file = written(memory_trace(), tmp_path)
    names = {uuid: track.name for uuid, track in file.tracks.items() if track.HasField("counter")}
    assert sorted((names[one.track], one.start_ns - BASE_NS, one.value) for one in file.samples) == [
        ("cpu memory allocated", 2, 5),
        ("cuda:0 memory allocated", 1, 30),
        ("cuda:0 memory allocated", 3, 10),
        ("cuda:0 memory allocated", 4, 0),
        ("cuda:0 memory reserved", 1, 64),
        ("cuda:0 memory reserved", 3, 64),
        ("cuda:0 memory reserved", 4, 64),
    ]
    assert {track.counter.unit for track in file.tracks.values() if track.HasField("counter")} == {3}  # bytes
    assert len(file.events) == 4  # the reports are there too


def test_many_chunks_say_each_text_once_and_keep_every_event(tmp_path: Path) -> None:
    n = 30_000
    events = [op(f"op {i % 7}", 10 * i, 10 * i + 5, id=i + 1) for i in range(n)]
    trace = trace_of(events, items={"i": (ItemKind.INT, {i: i for i in range(0, n, 3)})})
    file = written(trace, tmp_path)  # the reader refuses a text that stands twice
    assert [(e.name, e.start_ns - BASE_NS, e.end_ns, e.args) for e in file.events] == [
        (
            f"op {i % 7}",
            10 * i,
            BASE_NS + 10 * i + 5,
            {"External id": i + 1} | ({"i": i} if i % 3 == 0 else {}),
        )
        for i in range(n)
    ]


def test_a_trace_without_events_is_a_file_with_its_tracks(tmp_path: Path) -> None:
    file = written(trace_of([]), tmp_path)
    assert (file.events, len(file.tracks)) == ([], 4)


def test_a_packed_file_holds_the_same_bytes(tmp_path: Path) -> None:
    perfetto_trace(small_trace(), tmp_path / "a.pftrace")
    perfetto_trace(small_trace(), tmp_path / "a.pftrace.gz")
    assert gzip.decompress((tmp_path / "a.pftrace.gz").read_bytes()) == (tmp_path / "a.pftrace").read_bytes()


def test_a_file_that_cannot_be_made_is_the_callers_mistake(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no directory"):
        perfetto_trace(small_trace(), tmp_path / "nowhere" / "a.pftrace")
