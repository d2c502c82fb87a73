"""Memory belongs to the innermost event around it on its thread; what is outside of all has rows of its own."""

from __future__ import annotations

from typing import Any

from devprof.analysis import events, key_averages, memory_curve
from devprof.store import Trace


def memory(trace: Trace) -> list[tuple[str, int, int]]:
    """Return name, total and own host memory of each listed event."""
    return [(one.name, one.cpu_memory_usage, one.self_cpu_memory_usage) for one in events(trace)]


def test_memory_counts_to_the_innermost_event_and_to_those_around_it(made: Any) -> None:
    made.op("outer", 0, 100)
    made.op("inner", 10, 50)
    made.memory(20, 64)
    made.memory(30, -16)
    made.memory(60, 5)
    assert memory(made.build()) == [("outer", 53, 5), ("inner", 48, 48)]


def test_memory_of_another_thread_is_not_taken_for_an_ops_own(made: Any) -> None:
    made.op("op", 0, 100, thread=1)
    made.memory(20, 64, thread=2)
    assert memory(made.build()) == [("op", 0, 0), ("[memory]", 64, 64)]


def test_memory_outside_of_all_events_has_one_row(made: Any) -> None:
    made.op("op", 10, 20)
    made.memory(5, 100)
    made.memory(15, 1)
    made.memory(30, -40)
    rows = [(row.key, row.count, row.cpu_memory_usage, row.cpu_time_total_ns) for row in key_averages(made.build())]
    assert rows == [("[memory]", 2, 60, 0), ("op", 1, 1, 10)]


def test_at_its_first_and_last_tick_an_event_is_still_around_memory(made: Any) -> None:
    made.op("op", 10, 20)
    made.memory(10, 1)
    made.memory(20, 2)
    made.memory(21, 4)
    assert memory(made.build()) == [("op", 3, 3), ("[memory]", 4, 4)]


def test_between_two_events_that_touch_memory_counts_once(made: Any) -> None:
    made.op("around", 0, 50)
    made.op("first", 10, 20)
    made.op("second", 20, 30)
    made.memory(20, 8)
    assert memory(made.build()) == [("around", 8, 0), ("first", 0, 0), ("second", 8, 8)]


def test_memory_is_told_apart_by_backend(made: Any) -> None:
    made.stream(backend="toy")
    made.op("op", 0, 100)
    made.memory(10, 1)
    made.memory(20, 2, Device="toy:1")
    made.memory(30, 4, Device="other:0")
    (op,) = events(made.build())
    assert (op.cpu_memory_usage, op.device_memory_usage, op.self_device_memory_usage) == (1, 6, 6)
    assert (op.toy_memory_usage, op.self_other_memory_usage) == (2, 4)


def test_device_types_of_torch_are_read_where_no_device_is_named(made: Any) -> None:
    made.stream(backend="toy")
    made.op("op", 0, 100)
    for at, kind, index, size in [(1, 0, -1, 1), (2, 20, 0, 2), (3, 20, 1, 4), (4, 1, 0, 8)]:
        event = made.memory(at, size)
        made.item(event, "Device Type", kind)
        made.item(event, "Device Id", index)
    unnamed = made.memory(5, 16)
    made.item(unnamed, "Device Type", 0)
    made.item(unnamed, "Device Id", -1)
    trace = made.build()
    without = type(trace)(
        **{name: getattr(trace, name) for name in trace.__slots__ if name != "items"},
        items={key: column for key, column in trace.items.items() if key != "Device"},
    )
    (op,) = events(without)
    assert (op.cpu_memory_usage, op.toy_memory_usage, op.cuda_memory_usage) == (17, 6, 8)


def test_an_allocation_that_failed_has_a_row_even_inside_an_event(made: Any) -> None:
    made.op("op", 0, 100)
    made.memory(50, 1 << 40, name="[OutOfMemory]")
    op, failed = events(made.build())
    assert (failed.name, failed.cpu_parent, failed.cpu_memory_usage) == ("[OutOfMemory]", op, 0)
    assert (op.cpu_memory_usage, op.self_cpu_time_total_ns) == (0, 100)


def test_a_range_that_ended_on_another_thread_has_what_its_first_thread_allocated_meanwhile(made: Any) -> None:
    made.range("future", 10, 90, thread=1, End_thread=2)
    made.op("op", 20, 30, thread=1)
    made.memory(25, 1, thread=1)
    made.memory(50, 2, thread=1)
    made.memory(60, 4, thread=2)
    made.memory(95, 8, thread=1)
    assert memory(made.build()) == [
        ("future", 3, 0),
        ("op", 1, 1),
        ("[memory]", 4, 4),
        ("[memory]", 8, 8),
    ]


def test_memory_of_an_event_that_is_not_listed_counts_to_the_one_that_stands_for_it(made: Any) -> None:
    made.op("f", 0, 100)
    made.op("f", 10, 90)
    made.memory(50, 3)
    assert memory(made.build()) == [("f", 3, 3)]


def test_the_curve_of_each_device_is_what_its_allocator_reported(made: Any) -> None:
    reports = [(30, "cpu", 10, 20), (10, "cpu", 4, 20), (20, "toy:1", 7, 9), (40, "cpu", 2, 20)]
    for at, device, allocated, reserved in reports:
        event = made.memory(at, 1, Device=device)
        made.item(event, "Total Allocated", allocated)
        made.item(event, "Total Reserved", reserved)
    curves = memory_curve(made.build())
    read = {
        device: (
            curve.times_ns.tolist(),
            curve.allocated_bytes.tolist(),
            curve.reserved_bytes.tolist(),
            curve.peak_bytes,
        )
        for device, curve in curves.items()
    }
    assert read == {
        "cpu": ([10, 30, 40], [4, 10, 2], [20, 20, 20], 10),
        "toy:1": ([20], [7], [9], 7),
    }


def test_without_reports_there_is_no_curve(made: Any) -> None:
    made.op("op", 0, 10)
    assert memory_curve(made.build()) == {}
