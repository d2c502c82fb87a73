"""Chrome JSON, as Kineto writes it and as others do: exact and complete."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from devprof.model import ActivityType
from devprof.pipeline.files import joined
from devprof.store import ItemKind, Trace
from devprof.store.readers import read_kineto
from tests.unit.readers.decoders import DECODERS, new_decoder
from tests.unit.readers.kineto_json import Read, file_of, left_out, names_of, notes_of, slice_of, written_as

_BASE = 1_790_857_026_000_000_000

# times


@pytest.mark.parametrize(
    ("written", "ns"),
    [
        ("5126278757915.303", 5_126_278_757_915_303),
        ("5126278757915", 5_126_278_757_915_000),
        ('"5126278757915.303"', 5_126_278_757_915_303),
        ('"7"', 7_000),
        ("0.0006", 1),
        ("0.001", 1),
        ("-2.5", -2_500),
        ("1.5e3", 1_500_000),
        ("1790857026123456.789", 1_790_857_026_123_456_789),
        ("1790857026123456.7", 1_790_857_026_123_456_700),
        ("4611686018427387.902", 4_611_686_018_427_387_902),
    ],
)
def test_a_time_is_exact_to_the_nanosecond(read: Read, written: str, ns: int) -> None:
    trace = read(written_as(file_of(slice_of("a", "TS", 0.001)), written))
    assert (trace.start_ns.tolist(), trace.end_ns.tolist()) == ([ns], [ns + 1])


def test_times_one_nanosecond_apart_keep_their_order_and_distance(read: Read) -> None:
    first = 1_790_857_026_123_456_789
    texts = [f"{ns // 1000}.{ns % 1000:03d}" for ns in range(first, first + 2000)]
    trace = read(f"[{','.join(written_as(slice_of('k', 'TS', 0.001), ts) for ts in texts)}]")
    assert trace.start_ns.tolist() == list(range(first, first + 2000))
    assert trace.duration_ns.tolist() == [1] * 2000


@pytest.mark.parametrize("where", ["before", "after"])
def test_the_base_is_added_exactly_wherever_it_stands(read: Read, where: str) -> None:
    event = json.dumps(slice_of("a", 0.001, 0.002))
    base = f'"baseTimeNanoseconds": {_BASE}'
    events = f'"traceEvents": [{event}]'
    trace = read("{" + ", ".join([base, events] if where == "before" else [events, base]) + "}")
    assert (trace.start_ns.tolist(), trace.end_ns.tolist()) == ([_BASE + 1], [_BASE + 3])


@pytest.mark.parametrize("ts", ["null", '"soon"', "[1]", "true", '{"a": 1}', "1e300", '""', "9" * 40])
def test_an_event_without_a_time_that_can_be_is_counted(read: Read, ts: str) -> None:
    trace = read(written_as([slice_of("bad", "TS", 1), slice_of("good", 1, 1)], ts))
    assert names_of(trace) == ["good"]
    assert left_out(trace) == {"event without a time that can be": 1}


def test_a_base_that_is_no_time_is_noted(read: Read) -> None:
    trace = read(file_of(slice_of("a", 1, 1), baseTimeNanoseconds="long ago"))
    assert trace.start_ns.tolist() == [1000]
    assert notes_of(trace) == ["baseTimeNanoseconds is long ago, which is no time: taken as 0"]


# kinds of events


@pytest.mark.parametrize(
    "kind", [kind for kind in ActivityType if "counter" not in kind.label and "xpu_scope" not in kind.label]
)
def test_every_category_of_kineto_is_its_type(read: Read, kind: ActivityType) -> None:
    trace = read([{**slice_of("a", 1, 1), "cat": kind.label}])
    assert (trace.activity_type.tolist(), dict(trace.items)) == ([int(kind)], {})


def test_a_category_of_somebody_elses_is_kept(read: Read) -> None:
    kernel = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1, "dur": 1}
    odd = {**slice_of("x", 2, 1), "cat": "fee"}
    trace = read([odd, {**odd, "name": "y", "pid": 0, "tid": 7}, {**odd, "name": "z", "cat": "Operator"}, kernel])
    found = {trace.name_of(at): (ActivityType(int(trace.activity_type[at])), trace.item("cat", at)) for at in range(4)}
    assert found == {
        "x": (ActivityType.USER_ANNOTATION, "fee"),
        "y": (ActivityType.GPU_USER_ANNOTATION, "fee"),
        "z": (ActivityType.CPU_OP, "Operator"),
        "k": (ActivityType.CONCURRENT_KERNEL, None),
    }


def test_instants_keep_their_scope_where_it_is_not_the_threads(read: Read) -> None:
    instant = {"ph": "i", "cat": "cpu_instant_event", "pid": 1, "tid": 2, "ts": 3, "args": {"Bytes": 8}}
    trace = read(
        [{**instant, "name": "[memory]", "s": "t"}, {**instant, "name": "global", "s": "g", "cat": None, "ts": 4}]
    )
    assert trace.activity_type.tolist() == [int(ActivityType.CPU_INSTANT_EVENT)] * 2
    assert (trace.start_ns.tolist(), trace.end_ns.tolist()) == ([3000, 4000], [3000, 4000])
    assert [trace.items_of(at) for at in (0, 1)] == [{"Bytes": 8}, {"Bytes": 8, "scope": "g"}]


def test_counters_keep_their_values(read: Read) -> None:
    counter = {"ph": "C", "cat": "mtia_counters", "name": "power", "pid": 1, "tid": 2, "ts": 3}
    trace = read(
        [{**counter, "args": {"W": 7, "V": 1.5, "unit": "x"}}, {**counter, "cat": "mine", "ts": 4, "args": {"W": 8}}]
    )
    assert trace.activity_type.tolist() == [int(ActivityType.MTIA_COUNTERS), int(ActivityType.HARDWARE_COUNTERS)]
    assert {key: column.values.tolist() for key, column in trace.counters.items()} == {"W": [7.0, 8.0], "V": [1.5]}
    assert [trace.items_of(at) for at in (0, 1)] == [{"unit": "x"}, {"cat": "mine"}]


def test_begin_and_end_make_slices_by_thread_and_by_id(read: Read) -> None:
    def half(phase: str, ts: float, name: str = "", **more: object) -> dict[str, object]:
        return {"ph": phase, "pid": 1, "tid": 2, "ts": ts, "name": name, "cat": "mine", **more}

    trace = read(
        [
            half("B", 1.001, "outer", args={"a": 1}),
            half("B", 2, "inner"),
            half("E", 3),
            half("b", 2.5, "async", id="0x7"),
            half("E", 4, args={"b": 2}),
            half("e", 6, "async", id="0x7"),
            half("n", 7, "mark", id="0x7"),
            half("B", 8, "open"),
            half("E", 9, tid=99),
        ]
    )
    rows = {
        trace.name_of(at): (int(trace.start_ns[at]), int(trace.end_ns[at]), trace.items_of(at))
        for at in range(len(trace))
    }
    assert rows == {
        "outer": (1001, 4000, {"a": 1, "b": 2, "cat": "mine"}),
        "inner": (2000, 3000, {"cat": "mine"}),
        "async": (2500, 6000, {"async id": "0x7", "cat": "mine"}),
        "mark": (7000, 7000, {"async id": "0x7", "cat": "mine"}),
        "open": (8000, 9000, {"finished": False, "cat": "mine"}),
    }
    assert left_out(trace) == {"end of a slice that has no begin": 1}


def test_window_and_spans_are_those_that_kineto_marks(read: Read) -> None:
    span = {"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (3)", "pid": "Spans", "tid": "PyTorch Profiler"}
    mark = {
        "ph": "i",
        "s": "g",
        "name": "Iteration Start: PyTorch Profiler",
        "pid": "Traces",
        "tid": "Trace PyTorch Profiler",
    }
    end = {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": ""}
    trace = read(
        file_of(
            slice_of("a", 5, 1),
            {**span, "ts": 2, "dur": 8, "args": {"Op count": 4}},
            {**mark, "ts": 2},
            {**end, "ts": 11.5},
            baseTimeNanoseconds=_BASE,
        )
    )
    assert (names_of(trace), len(trace.places)) == (["a"], 1)
    assert (trace.window_start_ns - _BASE, trace.window_end_ns - _BASE) == (2000, 11500)
    assert trace.facts["spans"] == [
        {
            "start_ns": _BASE + 2000,
            "end_ns": _BASE + 10000,
            "op_count": 4,
            "iteration": 3,
            "name": "PyTorch Profiler",
            "prefix": "",
        }
    ]


def test_events_of_a_row_are_in_the_order_of_entering(read: Read) -> None:
    trace = joined(read([slice_of("late", 9, 1), slice_of("inner", 1, 2), slice_of("outer", 1, 5)]))
    assert (names_of(trace), trace.parent.tolist()) == (["outer", "inner", "late"], [-1, 0, -1])


# args


def test_args_become_items_of_their_type_and_nothing_is_lost(read: Read) -> None:
    args = {
        "int": 7,
        "big": 2**63,
        "float": 1.25,
        "text": "caf\u00e9",
        "yes": True,
        "grid": [1, 2, 3],
        "Input Dims": [[2, 3], []],
        "nested": {"a": [1, {"b": None}], "c": "d"},
        "nothing": None,
    }
    trace = read([slice_of("a", 1, 1, args=args, tts=5, cname="good")])
    kinds = {key: column.kind for key, column in trace.items.items()}
    assert kinds == {
        "int": ItemKind.INT,
        "big": ItemKind.JSON,
        "float": ItemKind.FLOAT,
        "text": ItemKind.STRING,
        "yes": ItemKind.BOOL,
        "grid": ItemKind.INT_LIST,
        "Input Dims": ItemKind.JSON,
        "nested": ItemKind.JSON,
        "tts": ItemKind.INT,
        "cname": ItemKind.STRING,
    }
    assert trace.items_of(0) == {
        "int": 7,
        "big": str(2**63),
        "float": 1.25,
        "text": "caf\u00e9",
        "yes": True,
        "grid": (1, 2, 3),
        "Input Dims": "[[2, 3], []]",
        "nested": '{"a": [1, {"b": null}], "c": "d"}',
        "tts": 5,
        "cname": "good",
    }


def test_values_of_several_types_under_one_key_are_all_kept(read: Read) -> None:
    given = {
        "mixed": [7, "7", [7], True, {"a": 7}, 7.5],
        "number": [1, 2.5, 3, 4, 5, 6],
        "grid": [[1, 2], [1, 2, 3], "x", 4, [], [5]],
    }
    trace = read(
        [slice_of(f"op {at}", at, 1, args={key: values[at] for key, values in given.items()}) for at in range(6)]
    )
    assert [json.loads(str(trace.item("mixed", at))) for at in range(6)] == given["mixed"]
    assert [trace.item("number", at) for at in range(6)] == [1.0, 2.5, 3.0, 4.0, 5.0, 6.0]
    assert [json.loads(str(trace.item("grid", at))) for at in range(6)] == given["grid"]


@pytest.mark.parametrize("args", [None, 5, "x", [1], {}])
def test_args_that_are_no_object_are_kept_as_they_are(read: Read, args: object) -> None:
    trace = read([slice_of("a", 1, 1, args={"k": 1}), slice_of("b", 2, 1, args=args), slice_of("c", 3, 1)])
    assert trace.items_of(0) == {"k": 1}
    assert trace.items_of(1) == ({} if args in (None, {}) else {"args": args if not isinstance(args, list) else "[1]"})
    assert trace.items_of(2) == {}


def test_more_keys_than_a_struct_is_made_for_are_read_too(read: Read) -> None:
    events = [slice_of(f"op {at}", at, 1, args={f"key {at * 10 + k}": k for k in range(10)}) for at in range(12)]
    trace = read(events)
    assert [trace.items_of(at) for at in range(12)] == [event["args"] for event in events]


def test_names_that_are_no_text_are_written_as_json(read: Read) -> None:
    trace = read([{**slice_of("", at, 1), "name": name} for at, name in enumerate([None, 5, [1], {"a": 1}, True])])
    assert names_of(trace) == ["", "5", "[1]", '{"a": 1}', "true"]


def test_facts_of_the_file_are_kept_under_the_words_of_a_trace(read: Read) -> None:
    top = {
        "trace_id": "T",
        "with_stack": 1,
        "host_name": "h",
        "mine": {"a": 1},
        "devprof": {"version": "0.1", "report": {"r": 1}, "metadata": {"trace_id": "own"}},
    }
    facts = read(file_of(slice_of("a", 1, 1), **top)).facts
    assert facts == {
        "host": "file",
        "report": {"r": 1},
        "devprof_version": "0.1",
        "with_stack": True,
        "trace_id": "T",
        "host_name": "h",
        "metadata": {"mine": {"a": 1}, "trace_id": "own"},
        "file": {"format": "kineto", "left_out": {}, "notes": []},
    }


@pytest.mark.parametrize("decoder", DECODERS)
def test_the_decoders_make_the_same_trace(tmp_path: Path, decoder: str) -> None:
    path = tmp_path / "t.json"
    events = [
        slice_of(f"op {at % 7}", at + 0.125, 1, args={"a": at, "b": [at % 3], "c": str(at % 5)} if at % 4 else {})
        for at in range(500)
    ]
    path.write_text(json.dumps(file_of(*events)))
    assert_same(read_kineto(path, decoder=new_decoder(decoder)), read_kineto(path, decoder=new_decoder("json")))


def assert_same(one: Trace, other: Trace) -> None:
    for key in ("activity_type", "start_ns", "end_ns", "row", "id", "linked", "flow_id", "flow_type", "flow_start"):
        assert np.array_equal(getattr(one, key), getattr(other, key)), key
    assert names_of(one) == names_of(other)
    assert (one.places, one.rows, one.facts) == (other.places, other.rows, other.facts)
    assert one.items.keys() == other.items.keys()
    for at in range(0, len(one), max(len(one) // 100, 1)):
        assert one.items_of(at) == other.items_of(at)
