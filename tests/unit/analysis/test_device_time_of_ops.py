"""Which op or range a piece of device work belongs to: the one that it was launched under, once, and those around that."""

from __future__ import annotations

from typing import Any

from devprof.analysis import events, key_averages
from devprof.model import ActivityType
from devprof.store import Trace


def device_times(trace: Trace) -> dict[str, tuple[int, int]]:
    """Return self and total device time by name, ns."""
    return {
        row.key: (row.self_device_time_total_ns, row.device_time_total_ns)
        for row in key_averages(trace)
        if row.device_type == "cpu"
    }


def test_work_counts_to_its_op_and_to_everything_around_it(made: Any) -> None:
    made.range("range", 0, 100, id=1)
    made.op("op", 10, 50, id=2)
    made.op("inner", 20, 30, id=3)
    made.kernel("a", 200, 210, linked=3)
    made.kernel("b", 210, 213, linked=2)
    trace = made.build()
    assert device_times(trace) == {"range": (0, 13), "op": (3, 13), "inner": (10, 10)}
    assert {one.name: [kernel.name for kernel in one.kernels] for one in events(trace)[:3]} == {
        "range": [],
        "op": ["b"],
        "inner": ["a"],
    }


def test_a_launch_number_that_equals_an_op_id_does_not_move_work_to_that_op(made: Any) -> None:
    made.op("A", 0, 100, id=23)
    made.op("B", 200, 300, id=41)
    made.launch(210, 220, id=23, linked=41)
    made.kernel("kernel", 230, 280, id=23, linked=41)
    assert device_times(made.build()) == {"A": (0, 0), "B": (50, 50), "launch": (0, 0)}


def test_a_launch_without_an_op_takes_no_work_from_the_op_around_it(made: Any) -> None:
    made.op("op", 0, 100, id=5)
    made.launch(10, 20, id=0)
    made.launch(30, 40, id=5)
    made.kernel("kernel", 50, 51, linked=5)
    assert device_times(made.build()) == {"op": (1, 1), "launch": (0, 0)}


def test_all_kernels_of_one_graph_launch_count_to_its_op(made: Any) -> None:
    made.op("graph", 0, 100, id=7)
    made.launch(10, 20, id=9, linked=7)
    for node in range(200):
        made.kernel("kernel", 200 + 10 * node, 203 + 10 * node, id=9, linked=7)
    trace = made.build()
    assert device_times(trace)["graph"] == (600, 600)
    assert [(row.key, row.count, row.device_time_total_ns) for row in key_averages(trace)][-1] == ("kernel", 200, 600)


def test_work_without_an_op_is_listed_and_belongs_to_nobody(made: Any) -> None:
    made.op("op", 0, 100, id=1)
    made.kernel("stray", 10, 20, linked=0)
    made.kernel("of an op before the window", 10, 20, linked=99)
    trace = made.build()
    assert device_times(trace) == {"op": (0, 0)}
    assert {row.key: row.self_device_time_total_ns for row in key_averages(trace)} == {
        "op": 0,
        "stray": 10,
        "of an op before the window": 10,
    }


def test_the_span_of_a_range_on_a_device_adds_nothing_to_device_time(made: Any) -> None:
    made.range("range", 0, 100, id=3)
    for number in range(3):
        made.kernel("kernel", 1000 + 15 * number, 1010 + 15 * number, linked=3)
    made.add(ActivityType.GPU_USER_ANNOTATION, "range", 1000, 1040, made.stream(), id=3, linked=3)
    trace = made.build()
    assert device_times(trace) == {"range": (30, 30)}
    rows = [(row.key, row.device_type, row.is_user_annotation, row.device_time_total_ns) for row in key_averages(trace)]
    assert rows == [("range", "cpu", True, 30), ("range", "toy", True, 40), ("kernel", "toy", False, 30)]
    assert "Self TOY time total: 0.030us" in key_averages(trace).table()


def test_waits_and_counters_on_a_device_are_no_work(made: Any) -> None:
    made.op("op", 0, 100, id=3)
    made.kernel("kernel", 10, 15, linked=3)
    made.add(ActivityType.CUDA_SYNC, "wait", 10, 50, made.stream(), linked=3)
    made.add(ActivityType.MTIA_COUNTERS, "power", 10, 50, made.stream(), linked=3)
    trace = made.build()
    assert device_times(trace) == {"op": (5, 5)}
    assert "Self TOY time total: 0.005us" in key_averages(trace).table()


def test_copies_and_sets_are_work(made: Any) -> None:
    made.op("op", 0, 100, id=3)
    made.add(ActivityType.GPU_MEMCPY, "copy", 10, 20, made.stream(), linked=3)
    made.add(ActivityType.GPU_MEMSET, "set", 20, 25, made.stream(), linked=3)
    assert device_times(made.build()) == {"op": (15, 15)}


def test_work_of_a_range_that_ended_on_another_thread_belongs_to_that_range(made: Any) -> None:
    made.range("around", 0, 100, id=1)
    made.range("future", 10, 90, id=2, End_thread=4)
    made.kernel("kernel", 20, 30, linked=2)
    assert device_times(made.build()) == {"around": (0, 0), "future": (10, 10)}


def test_work_launched_on_another_thread_counts_to_the_op_that_it_says(made: Any) -> None:
    made.op("forward", 0, 100, thread=1, id=1)
    made.op("backward", 0, 100, thread=2, id=2)
    made.kernel("kernel", 20, 30, linked=2)
    assert device_times(made.build()) == {"forward": (0, 0), "backward": (10, 10)}


def test_the_devices_of_two_backends_are_told_apart(made: Any) -> None:
    made.op("op", 0, 100, id=1)
    made.kernel("kernel", 10, 20, linked=1, stream=made.stream(backend="toy"))
    made.kernel("kernel", 10, 13, linked=1, stream=made.stream(backend="cuda"))
    averages = key_averages(made.build())
    assert [(row.key, row.device_type, row.device_time_total_ns) for row in averages] == [
        ("op", "cpu", 13),
        ("kernel", "toy", 10),
        ("kernel", "cuda", 3),
    ]
    op = averages[0]
    assert (op.self_toy_time_total, op.cuda_time_total, op.self_device_time_total) == (0.010, 0.003, 0.013)
    assert op.use_device == "toy+cuda"


def test_two_devices_of_one_backend_share_a_row_and_keep_their_index_as_events(made: Any) -> None:
    made.kernel("kernel", 10, 20, stream=made.stream(3, device=0))
    made.kernel("kernel", 30, 33, stream=made.stream(4, device=1))
    trace = made.build()
    assert [(row.key, row.count, row.device_time_total_ns) for row in key_averages(trace)] == [("kernel", 2, 13)]
    assert [(one.device_index, one.device_resource_id) for one in events(trace)] == [(0, 3), (1, 4)]


def test_ids_that_are_far_apart_are_found_as_dense_ones_are(made: Any) -> None:
    ids = [1, 5, 2**40, 2**62, -3]
    for number, one in enumerate(ids):
        made.op(f"op {number}", 10 * number, 10 * number + 5, id=one)
        made.kernel("kernel", 100, 101 + number, linked=one)
    made.kernel("stray", 100, 200, linked=6)
    assert device_times(made.build()) == {f"op {number}": (1 + number, 1 + number) for number in range(5)}


def test_work_of_no_length_or_less_counts_as_none(made: Any) -> None:
    made.op("op", 0, 100, id=1)
    made.kernel("instant", 10, 10, linked=1)
    made.kernel("backwards", 20, 10, linked=1)
    assert device_times(made.build()) == {"op": (0, 0)}
