"""A trace is what was put into it, as columns that nobody can change."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from devprof.model import ActivityBatch, ActivityType, GenericTraceActivity, MetadataColumn, MetadataKind, Role
from devprof.store import ROLES, ItemColumn, ItemKind, Place, PlaceKind, RawJson, Row, Trace, TraceBuilder

OP, KERNEL = ActivityType.CPU_OP, ActivityType.CONCURRENT_KERNEL


def two_rows() -> tuple[TraceBuilder, int, int]:
    builder = TraceBuilder()
    host = builder.place(Place(4321, PlaceKind.HOST, "python"))
    device = builder.place(Place(0, PlaceKind.DEVICE, "toy 0", backend="toy"))
    return builder, builder.row(Row(host, 7, "thread 7")), builder.row(Row(device, 3, "stream 3"))


def small_trace() -> Trace:
    builder, thread, stream = two_rows()
    ops = [
        GenericTraceActivity(OP, "outer", 100, 200, id=1),
        GenericTraceActivity(OP, "inner", 110, 150, id=2, linked=1, metadata={"Sequence number": 5}),
    ]
    first = builder.add(ActivityBatch.from_activities(ops), thread, parent=np.array([-1, 0]))
    kernels = [
        GenericTraceActivity(KERNEL, "mm", 160, 190, id=9, linked=2, metadata={"grid": (1, 2, 3), "note": 'a "b"'}),
        GenericTraceActivity(KERNEL, "mm", 190, 195, id=10, linked=2),
    ]
    at = builder.add(ActivityBatch.from_activities(kernels), np.array([stream, stream]))
    trace = builder.build(window_start_ns=90, window_end_ns=300, facts={"host": "python"})
    return trace.with_parent(np.where(np.arange(len(trace)) >= at, first + 1, trace.parent))


def test_what_went_in_comes_out_by_name_row_and_item() -> None:
    trace = small_trace()
    assert [trace.name_of(event) for event in range(len(trace))] == ["outer", "inner", "mm", "mm"]
    assert trace.on_device.tolist() == [False, False, True, True]
    assert trace.parent.tolist() == [-1, 0, 1, 1]
    assert [trace.rows[row].name for row in trace.row] == ["thread 7", "thread 7", "stream 3", "stream 3"]
    assert trace.duration_ns.tolist() == [100, 40, 30, 5]
    assert [ROLES[role] for role in trace.role] == [Role.OP, Role.OP, Role.KERNEL, Role.KERNEL]
    assert [trace.items_of(event) for event in range(4)] == [
        {},
        {"Sequence number": 5},
        {"grid": (1, 2, 3), "note": 'a "b"'},
        {},
    ]
    assert trace.named("mm").tolist() == [2, 3]
    assert trace.of_type(OP).tolist() == [0, 1]
    assert repr(trace) == "<Trace of 4 events on 2 rows, window 0.000000 s>"


def test_an_event_costs_less_than_a_hundred_bytes() -> None:
    n = 1000
    builder, thread, _ = two_rows()
    builder.add(
        ActivityBatch.from_columns(["f"], activity_type=0, name=0, start=np.arange(n), end=np.arange(n)), thread
    )
    trace = builder.build()
    assert (
        sum(
            getattr(trace, key).nbytes
            for key in dataclasses.asdict(trace)
            if key != "strings" and isinstance(getattr(trace, key), np.ndarray)
        )
        == 63 * n
    )


def test_columns_cannot_be_written() -> None:
    with pytest.raises(ValueError, match="read-only"):
        small_trace().start_ns[0] = 5


def test_equal_places_rows_and_texts_are_kept_once() -> None:
    builder, thread, stream = two_rows()
    assert two_rows()[1:] == (thread, stream)
    assert builder.row(Row(0, 7, "thread 7")) == thread
    assert builder.place(Place(0, PlaceKind.DEVICE, "toy 0", backend="toy")) == 1
    batch = ActivityBatch.from_activities([GenericTraceActivity(OP, "same", 1, 2)])
    builder.add(batch, thread)
    builder.add(batch, thread)
    trace = builder.build()
    assert (trace.strings, trace.name.tolist()) == (("same",), [0, 0])


def test_a_batchs_own_columns_give_way_to_those_given() -> None:
    builder, thread, _ = two_rows()
    batch = ActivityBatch.from_activities([GenericTraceActivity(OP, "op", 1, 2, id=3, linked=4)])
    builder.add(batch, thread, id=np.array([30]), flow_id=np.array([8]), flow_type=np.array([2]))
    trace = builder.build()
    assert (trace.id[0], trace.linked[0], trace.flow_id[0], trace.flow_type[0]) == (30, 4, 8, 2)


@pytest.mark.parametrize(
    ("first", "second", "kind", "values"),
    [
        (1, 2, ItemKind.INT, [1, 2]),
        (1, 2.5, ItemKind.FLOAT, [1.0, 2.5]),
        (2**60, 2.5, ItemKind.JSON, [RawJson("1152921504606846976"), RawJson("2.5")]),
        ("a", 2, ItemKind.JSON, [RawJson('"a"'), RawJson("2")]),
        ((1, 2), (3,), ItemKind.JSON, [RawJson("[1, 2]"), RawJson("[3]")]),
        (float("nan"), "x", ItemKind.JSON, [RawJson('"nan"'), RawJson('"x"')]),
        (True, 2, ItemKind.JSON, [RawJson("true"), RawJson("2")]),
    ],
)
def test_a_key_with_two_types_keeps_every_value(
    first: object, second: object, kind: ItemKind, values: list[object]
) -> None:
    builder, thread, _ = two_rows()
    for value in (first, second):
        batch = ActivityBatch.from_activities([GenericTraceActivity(OP, "op", 1, 2, metadata={"k": value})])  # type: ignore[dict-item]
        builder.add(batch, thread)
    trace = builder.build()
    assert trace.items["k"].kind is kind
    assert [trace.item("k", event) for event in range(2)] == values


def test_items_can_be_added_to_events_that_are_there_and_the_later_value_holds() -> None:
    builder, thread, _ = two_rows()
    batch = ActivityBatch.from_columns(["f"], activity_type=0, name=0, start=[1, 2, 3], end=[1, 2, 3])
    builder.add(batch, thread)
    builder.add_items("Input Dims", ItemKind.JSON, [0, 2], ["[[4, 4]]", "[]"])
    builder.add_items("Input Dims", ItemKind.JSON, [1, 2], ["[[1]]", "[[2]]"])
    trace = builder.build()
    assert [trace.item("Input Dims", event) for event in range(3)] == ["[[4, 4]]", "[[1]]", "[[2]]"]
    assert isinstance(trace.item("Input Dims", 0), RawJson)


def test_text_metadata_becomes_json_where_it_is_said_to_be() -> None:
    builder, thread, _ = two_rows()
    column = MetadataColumn(MetadataKind.STRING, np.array([1, 1]), np.array([True, False]))
    batch = ActivityBatch.from_columns(
        ["f", "[1]"], activity_type=0, name=0, start=[1, 2], end=[1, 2], metadata={"shape": column}
    )
    builder.add(batch, thread, json_keys={"shape"})
    trace = builder.build()
    assert (trace.items["shape"].kind, trace.item("shape", 0), trace.item("shape", 1)) == (ItemKind.JSON, "[1]", None)


def test_a_part_keeps_its_tree_with_the_nearest_event_above_that_stays() -> None:
    trace = small_trace()
    part = trace.take(np.array([True, False, True, True]))
    assert [part.name_of(event) for event in range(len(part))] == ["outer", "mm", "mm"]
    assert part.parent.tolist() == [-1, 0, 0]
    assert [part.items_of(event) for event in range(3)] == [{}, {"grid": (1, 2, 3), "note": 'a "b"'}, {}]
    assert trace.take(np.array([3, 0])).start_ns.tolist() == [100, 190]


def test_dense_items_fill_what_is_not_there() -> None:
    column = ItemColumn(ItemKind.INT, np.array([1, 3]), np.array([10, 30]))
    assert column.dense(5, -1).tolist() == [-1, 10, -1, 30, -1]
    assert column.present(5).tolist() == [False, True, False, True, False]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": np.array([0, 0, 0, 99], np.int32)}, "name holds 0 to 99"),
        ({"row": np.array([0, 0, 0, 5], np.int32)}, "row holds 0 to 5"),
        ({"parent": np.array([0, 0, 0, 4], np.int32)}, "parent holds 0 to 4"),
        ({"id": np.array([1, 2, 3], np.int64)}, "column 'id'"),
        ({"end_ns": np.array([1, 2, 3, 4], np.int32)}, "column 'end_ns' is int32"),
        ({"rows": (Row(5, 1), Row(0, 1))}, "a row is in place 5"),
        ({"items": {"k": ItemColumn(ItemKind.INT, np.array([4]), np.array([1]))}}, "item 'k' holds 4 to 4"),
        ({"items": {"k": ItemColumn(ItemKind.STRING, np.array([1]), np.array([99]))}}, "item 'k' holds 99"),
    ],
)
def test_a_trace_that_does_not_hold_together_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(small_trace(), **change)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("events", "values", "message"),
    [
        ([1, 1], [1, 2], "ascend"),
        ([2, 1], [1, 2], "ascend"),
        ([-1], [1], "ascend"),
        ([1, 2], [1], "shape"),
        ([1], [1.5], "items are float64"),
    ],
)
def test_items_that_do_not_hold_together_are_refused(events: list[int], values: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ItemColumn(ItemKind.INT, np.array(events), np.array(values))


def test_an_empty_trace_has_every_column() -> None:
    trace = TraceBuilder().build()
    assert (len(trace), trace.on_device.tolist(), trace.place.tolist(), trace.role.tolist()) == (0, [], [], [])


def test_a_notebook_shows_the_rows_and_kinds_of_events_as_text_that_cannot_be_markup() -> None:
    builder = TraceBuilder()
    place = builder.place(Place(1, PlaceKind.HOST, "<python>"))
    rows = [builder.row(Row(place, number, f"thread {number} & more")) for number in range(22)]
    batch = ActivityBatch.from_columns(["a"], activity_type=int(ActivityType.CPU_OP), name=[0], start=[1], end=[2])
    for row in [*rows, rows[3]]:
        builder.add(batch, row)
    shown = builder.build()._repr_html_()
    assert shown.startswith("<h4>Trace of 23 events on 22 rows, window ")
    assert "<tr><td>&lt;python&gt;</td><td>thread 3 &amp; more</td><td>2</td></tr><tr><td>&lt;python&gt;</td>" in shown
    assert shown.endswith(
        "<p>and 2 more rows</p><table><tr><th>kind</th><th>events</th></tr><tr><td>cpu_op</td><td>23</td></tr></table>"
    )
