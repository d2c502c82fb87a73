"""A host's recording and plugins' deliveries as one trace, whole."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from devprof.capture import LaneResult, PluginLedger
from devprof.contract import ClockDomain, ClockSample
from devprof.export import chrome_trace
from devprof.host import HostRecording
from devprof.model import (
    ActivityBatch,
    ActivityType,
    DeviceInfo,
    GenericTraceActivity,
    MetadataColumn,
    MetadataKind,
    ResourceInfo,
)
from devprof.pipeline import LinkedLane, assemble, known_ops, process, user_parents
from devprof.pipeline.files import load
from devprof.store import COLUMNS, Place, PlaceKind, RawJson, Row, Trace
from tests.unit.pipeline.recordings import (
    AT_ZERO_NS,
    MAIN,
    WORKER,
    clock,
    frame,
    memory,
    op,
    place_of,
    recording,
    spans_ns,
    tree,
    user,
)

T = ActivityType
START, END = AT_ZERO_NS, AT_ZERO_NS + 10_000
PID = 4321


def delivery(*records: GenericTraceActivity, name: str = "toy", **facts: object) -> LaneResult:
    return LaneResult(name, PluginLedger(name), batches=[ActivityBatch.from_activities(records)], **facts)  # type: ignore[arg-type]


def launch(
    name: str, at: int, number: int, linked: int = 0, *, thread: int = MAIN, around: int = 0
) -> GenericTraceActivity:
    start = AT_ZERO_NS + at
    return GenericTraceActivity(
        T.PRIVATEUSE1_RUNTIME, name, start, start + 5, id=number, thread_id=thread, linked=linked, linked_user=around
    )


def kernel(
    name: str, at: int, number: int, linked: int = 0, *, device: int = 0, stream: int = 0, around: int = 0
) -> GenericTraceActivity:
    start = AT_ZERO_NS + at
    return GenericTraceActivity(
        T.CONCURRENT_KERNEL,
        name,
        start,
        start + 20,
        id=number,
        device=device,
        resource=stream,
        linked=linked,
        linked_user=around,
        metadata={"grid": (1, 2, 3)},
    )


def lane(host: HostRecording, result: LaneResult, **options: int) -> LinkedLane:
    return process(
        result,
        start_ns=START,
        end_ns=END,
        known_ops=known_ops(host),
        user_parents=user_parents(host),
        widened_by_ns=0,
        **options,
    )


def trace_of(host: HostRecording | None, *lanes: LinkedLane, **facts: object) -> Trace:
    return assemble(
        host, lanes, clock=clock(), window_start_ns=START, window_end_ns=END, facts=facts, pid=PID, process_name="train"
    )


def a_step() -> HostRecording:
    return recording(user("step", 0, 900, 1), op("mm", 10, 200, 2, 1), op("add", 300, 400, 3, 1))


def test_a_step_with_two_kernels_is_one_tree_from_the_range_to_the_device() -> None:
    host = a_step()
    result = delivery(
        launch("launch mm", 50, 7, 2, around=1),
        kernel("mm kernel", 100, 7, 2, around=1),
        launch("launch add", 350, 8, 3, around=1),
        kernel("add kernel", 380, 8, 3, around=1),
        device_infos=[DeviceInfo(0, "toy device")],
        resource_infos=[ResourceInfo(0, 0, "queue", sort_index=4)],
    )
    trace = trace_of(host, lane(host, result))
    assert spans_ns(trace) == [
        ("step", 0, 900),
        ("mm", 10, 200),
        ("add", 300, 400),
        ("step", 100, 400),
        ("launch mm", 50, 55),
        ("mm kernel", 100, 120),
        ("launch add", 350, 355),
        ("add kernel", 380, 400),
    ]
    assert trace.parent.tolist() == [-1, 0, 0, -1, 1, 4, 2, 6]
    assert trace.activity_type.tolist() == [1, 0, 0, 2, 24, 5, 24, 5]
    first, second = 2**30, 2**30 + 1
    assert trace.id.tolist() == [1, 2, 3, 1, first, first, second, second]
    assert trace.linked.tolist() == [0, 1, 1, 0, 2, 2, 3, 3]
    assert trace.linked_user.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert trace.flow_id.tolist() == [0, 0, 0, 0, first, first, second, second]
    assert trace.flow_type.tolist() == [0, 0, 0, 0, 2, 2, 2, 2]
    assert trace.flow_start.tolist() == [0, 0, 0, 0, 1, 0, 1, 0]
    assert trace.places == (
        Place(PID, PlaceKind.HOST, "train"),
        Place(0, PlaceKind.DEVICE, "toy device", backend="toy"),
    )
    assert trace.rows == (Row(0, MAIN, f"thread {MAIN} (main)"), Row(1, 0, "queue", 4))
    assert trace.row.tolist() == [0, 0, 0, 1, 0, 1, 0, 1]
    assert [trace.items_of(event) for event in range(len(trace))] == [
        {},
        {},
        {},
        {"derived": True},
        {},
        {"grid": (1, 2, 3)},
        {},
        {"grid": (1, 2, 3)},
    ]
    assert (trace.window_start_ns, trace.window_end_ns) == (START, END)


def test_nothing_recorded_is_an_empty_trace_of_the_process() -> None:
    for host in (None, recording()):
        trace = trace_of(host)
        assert (len(trace), trace.rows) == (0, ())
        assert trace.places == (Place(PID, PlaceKind.HOST, "train"),)


def test_without_a_host_recording_launches_stand_on_their_threads_and_own_their_work() -> None:
    result = delivery(launch("launch", 50, 7, 99, thread=WORKER), kernel("kernel", 100, 7, 99))
    alone = process(result, start_ns=START, end_ns=END, widened_by_ns=0)
    trace = trace_of(None, alone)
    assert tree(trace) == {"launch": None, "kernel": "launch"}
    assert place_of(trace, 0) == ("host", PID, WORKER, f"thread {WORKER}")


def test_one_launch_is_the_parent_of_all_its_work_and_work_without_one_hangs_on_its_op() -> None:
    host = a_step()
    result = delivery(
        launch("graph", 50, 7, 2),
        kernel("node 1", 100, 7, 2),
        kernel("node 2", 130, 7, 2, stream=1),
        kernel("lost launch", 200, 9, 3),
        kernel("unknown op", 300, 0, 77),
    )
    assert tree(trace_of(host, lane(host, result))) == {
        "step": None,
        "mm": "step",
        "add": "step",
        "graph": "mm",
        "node 1": "graph",
        "node 2": "graph",
        "lost launch": "add",
        "unknown op": None,
    }


def test_work_under_a_user_range_alone_belongs_to_that_range() -> None:
    """With devprof as the host, the innermost range of any scope is the op."""
    host = recording(user("step", 0, 900, 1))
    result = delivery(launch("launch", 50, 7, 1, around=1), kernel("kernel", 100, 7, 1, around=1))
    trace = trace_of(host, lane(host, result))
    assert trace.linked.tolist() == [0, 0, 1, 1]
    assert trace.parent.tolist() == [-1, -1, 0, 2]


def test_a_span_stands_before_its_work_so_that_of_equal_times_it_is_drawn_around_it() -> None:
    host = recording(user("step", 0, 900, 1))
    trace = trace_of(host, lane(host, delivery(kernel("kernel", 100, 7, 1, around=1))))
    at = {trace.name_of(event): event for event in range(1, len(trace))}
    assert (trace.start_ns[at["step"]], trace.end_ns[at["step"]]) == (
        trace.start_ns[at["kernel"]],
        trace.end_ns[at["kernel"]],
    )
    assert at["step"] < at["kernel"]


def test_a_span_of_a_range_that_the_host_did_not_record_is_left_out_and_counted() -> None:
    host = recording(user("step", 0, 900, 1), op("mm", 10, 20, 2, 1))
    result = delivery(
        kernel("a", 100, 0, around=1),
        kernel("b", 200, 0, around=55),
        kernel("c", 300, 0, around=55),
        kernel("d", 400, 0, around=2),
    )
    done = lane(host, result)
    trace = trace_of(host, done)
    assert [trace.name_of(int(event)) for event in trace.of_type(T.GPU_USER_ANNOTATION)] == ["step"]
    assert done.ledger.notes["user id unknown to the host"] == 2


def test_two_plugins_have_their_own_devices_streams_and_launch_numbers() -> None:
    host = a_step()
    records = launch("launch", 50, 7, 2), kernel("kernel", 100, 7, 2, stream=3)
    one = lane(host, delivery(*records, name="one"))
    info = [DeviceInfo(0, "second", properties={"memory": 64})]
    properties = [{"id": 0, "cores": 8}, {"driver": "1.2"}]
    two = lane(
        host,
        delivery(*records, name="two", device_infos=info, device_properties=properties, metadata={"mode": "fast"}),
        launch_base=one.next_launch,
        device_offset=100,
    )
    trace = trace_of(host, one, two)
    assert trace.places == (
        Place(PID, PlaceKind.HOST, "train"),
        Place(0, PlaceKind.DEVICE, "one 0", backend="one"),
        Place(
            100,
            PlaceKind.DEVICE,
            "second",
            backend="two",
            properties={"name": "second", "memory": 64, "id": 100, "cores": 8},
        ),
    )
    assert [place_of(trace, event) for event in (4, 6)] == [
        ("device", 0, 3, "stream 3"),
        ("device", 100, 3, "stream 3"),
    ]
    assert trace.parent.tolist() == [-1, 0, 0, 1, 3, 1, 5]
    assert trace.id.tolist()[3:] == [2**30, 2**30, 2**30 + 1, 2**30 + 1]
    assert trace.facts["plugin_metadata"] == {"two": {"mode": "fast"}}
    assert trace.facts["device_properties"] == {"two": [{"driver": "1.2"}]}


def test_rows_that_a_plugin_described_are_there_even_where_nothing_ran_on_them() -> None:
    result = delivery(
        device_infos=[DeviceInfo(1, "idle", label="spare")], resource_infos=[ResourceInfo(5, 1, "copies")]
    )
    trace = trace_of(None, process(result, start_ns=START, end_ns=END))
    assert trace.places[1:] == (Place(1, PlaceKind.DEVICE, "idle", "spare", backend="toy"),)
    assert trace.rows == (Row(1, 5, "copies"),)


def test_overhead_stands_on_a_row_of_its_own_and_counters_keep_their_values() -> None:
    overhead = GenericTraceActivity(T.OVERHEAD, "flush", AT_ZERO_NS + 5, AT_ZERO_NS + 9, thread_id=MAIN)
    counter = GenericTraceActivity(
        T.MTIA_COUNTERS, "power", AT_ZERO_NS + 7, AT_ZERO_NS + 7, device=1, counter_values={"watts": 12.5}
    )
    trace = trace_of(recording(op("mm", 0, 20, 1)), process(delivery(overhead, counter), start_ns=START, end_ns=END))
    assert [place_of(trace, event) for event in range(3)] == [
        ("host", PID, MAIN, f"thread {MAIN} (main)"),
        ("host", -1, MAIN, f"thread {MAIN} (main)"),
        ("device", 1, 0, "stream 0"),
    ]
    assert trace.places[trace.rows[trace.row[1]].place].name == "Overhead"
    assert {key: (column.events.tolist(), column.values.tolist()) for key, column in trace.counters.items()} == {
        "watts": ([2], [12.5])
    }
    assert trace.parent.tolist() == [-1, -1, -1]


def test_events_of_each_thread_are_in_the_order_of_entering_whatever_they_are() -> None:
    host = recording(
        frame("train", 0, 100),
        user("step", 10, 90, 1),
        memory(50, 1),
        frame("forward", 20, 80),
        op("other", 15, 95, 2, thread=WORKER),
        threads={MAIN: "main", WORKER: "pool 1"},
    )
    trace = trace_of(host)
    assert [name for name, *_ in spans_ns(trace)] == ["train", "step", "other", "forward", "[memory]"]
    assert {place_of(trace, event)[3] for event in range(5)} == {f"thread {MAIN} (main)", f"thread {WORKER} (pool 1)"}


def test_items_stay_with_their_events_through_the_merge_and_shapes_are_json() -> None:
    host = recording(
        op("mm", 10, 20, 1, Input_Dims=json.dumps([[2, 3], [3, 4]]), Record_scope=4),
        frame("forward", 5, 25, Python_id=3),
        memory(12, 1, Bytes=512, Device="toy:0"),
    )
    trace = trace_of(host)
    assert {trace.name_of(event): trace.items_of(event) for event in range(3)} == {
        "forward": {"Python id": 3},
        "mm": {"Input Dims": "[[2, 3], [3, 4]]", "Record scope": 4},
        "[memory]": {"Bytes": 512, "Device": "toy:0"},
    }
    assert isinstance(trace.item("Input Dims", 1), RawJson)
    assert not isinstance(trace.item("Device", 2), RawJson)


def test_events_that_were_open_at_the_stop_end_with_the_window_and_keep_their_mark() -> None:
    host = recording(
        user("step", 10, 40, 1, finished=False), op("mm", 20, 30, 2, 1), frame("late", 35, 41, finished=False)
    )
    trace = trace_of(host)
    assert spans_ns(trace) == [("step", 10, 10_000), ("mm", 20, 30), ("late", 35, 10_000)]
    assert [trace.item("finished", event) for event in range(3)] == [False, None, False]
    assert tree(trace) == {"step": None, "mm": "step", "late": "step"}


def test_forward_and_backward_ops_are_joined_by_one_arrow_across_threads() -> None:
    host = recording(
        op("mm", 0, 10, 1, Sequence_number=5, Fwd_thread_id=0),
        op("relu", 20, 30, 2, Sequence_number=6),
        op("plain", 30, 35, 3),
        op("ReluBackward", 40, 50, 4, thread=WORKER, Sequence_number=6, Fwd_thread_id=MAIN),
        op("engine: MmBackward", 60, 90, 5, thread=WORKER, Sequence_number=5, Fwd_thread_id=MAIN),
        op("MmBackward", 70, 80, 6, 5, thread=WORKER, Sequence_number=5, Fwd_thread_id=MAIN),
    )
    trace = trace_of(host)
    assert trace.flow_id.tolist() == [2, 1, 0, 1, 0, 2]
    assert trace.flow_type.tolist() == [1, 1, 0, 1, 0, 1]
    assert trace.flow_start.tolist() == [1, 1, 0, 0, 0, 0]


def test_work_that_seems_to_start_before_its_launch_is_marked() -> None:
    host = a_step()
    trace = trace_of(host, lane(host, delivery(launch("launch", 150, 7, 2), kernel("early", 100, 7, 2))))
    assert [trace.item("before its launch", event) for event in range(5)] == [None, None, None, None, True]


def test_a_virtual_clock_begins_with_the_session_and_may_outlast_it() -> None:
    """Ticks of 1 us, anchored at the window's start, without a window of their own."""
    domain = ClockDomain("simulated", ticks_per_second=1e6, virtual=True)
    work = GenericTraceActivity(T.CONCURRENT_KERNEL, "kernel", 1_000, 1_500, id=7, linked=2)
    result = LaneResult(
        "toy",
        PluginLedger("toy"),
        batches=[
            ActivityBatch.from_activities([launch("launch", 50, 7, 2)]),
            ActivityBatch.from_activities([work], clock="simulated"),
        ],
        clock_domain=domain,
        clock_samples=[ClockSample(START - 5, 900, START - 1)],
    )
    host = a_step()
    trace = trace_of(host, lane(host, result))
    assert spans_ns(trace)[3:] == [("launch", 50, 55), ("kernel", 100_000, 600_000)]
    assert tree(trace)["kernel"] == "launch"


def test_facts_hold_the_clock_and_what_the_host_noted_unless_they_were_given() -> None:
    host = recording(op("mm", 0, 10, 1))
    noted = HostRecording(host.ranges, host.memory, host.functions, host.threads, {"late exit": 2}, ("a note",))
    trace = trace_of(noted, trace_id="abc")
    assert trace.facts == {
        "trace_id": "abc",
        "clock": clock().describe(),
        "notes": ["a note"],
        "discarded": {"late exit": 2},
    }
    assert trace_of(noted, clock="mine").facts["clock"] == "mine"


def test_a_trace_takes_less_than_a_hundred_bytes_per_event_without_its_items() -> None:
    n = 1000
    numbers = np.arange(n)
    ranges = ActivityBatch.from_columns(
        ["mm"],
        activity_type=int(T.CPU_OP),
        name=0,
        start=numbers * 10,
        end=numbers * 10 + 5,
        id=numbers + 1,
        thread_id=MAIN,
        metadata={"Sequence number": MetadataColumn(MetadataKind.INT, numbers)},
    )
    nothing = recording()
    trace = trace_of(HostRecording(ranges, nothing.memory, nothing.functions, {}, {}, ()))
    assert sum(getattr(trace, key).nbytes for key in COLUMNS) < 100 * n


def test_a_trace_that_was_exported_and_loaded_again_has_the_same_events_on_the_same_devices(tmp_path: Path) -> None:
    host = a_step()
    result = delivery(launch("launch mm", 50, 7, 2, around=1), kernel("mm kernel", 100, 7, 2, around=1))
    first = trace_of(host, lane(host, result))
    chrome_trace(first, tmp_path / "trace.json")
    again = load(tmp_path / "trace.json")
    assert sorted(seen(again)) == sorted(seen(first))


def seen(trace: Trace) -> list[tuple[str, str, int, int, int]]:
    """Name, place, times and owner of every event."""
    places = [trace.places[row.place].title for row in trace.rows]
    columns = (trace.start_ns.tolist(), trace.end_ns.tolist(), trace.id.tolist(), trace.row.tolist())
    rest = zip(*columns, strict=True)
    return [(trace.name_of(i), places[row], start, end, number) for i, (start, end, number, row) in enumerate(rest)]
