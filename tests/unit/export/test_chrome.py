"""The file as a whole: what stands in it, in which order, under which keys."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from devprof.export import chrome_trace
from devprof.model import ActivityType, kLinkAsyncCpuGpu, kLinkFwdBwd
from devprof.store import ItemKind, Place, PlaceKind, Row, Trace
from tests.unit.export.traces import BASE_NS, MAIN, STREAM, end_ns, events_of, kernel, op, read, start_ns, trace_of

pytestmark = pytest.mark.usefixtures("json_writer")

T = ActivityType
LAUNCH = {"flow_id": 2**30, "flow_type": kLinkAsyncCpuGpu}


def written(trace: Trace, folder: Path) -> Any:
    chrome_trace(trace, folder / "trace.json")
    return read(folder / "trace.json")


def small_trace() -> Trace:
    events = [
        op("aten::mm", 1_000, 9_000, id=5),
        op("orLaunch", 2_000, 3_000, type=T.PRIVATEUSE1_RUNTIME, id=2**30, linked=5, flow_start=1, **LAUNCH),
        kernel("mm", 4_000, 8_001, id=2**30, linked=5, **LAUNCH),
        op("[memory]", 5_000, 5_000, type=T.CPU_INSTANT_EVENT, linked=5),
        op("SM active", 6_000, 6_000, STREAM, type=T.MTIA_COUNTERS),
    ]
    items = {
        "grid": (ItemKind.INT_LIST, {2: [4, 1, 1]}),
        "Input Dims": (ItemKind.JSON, {0: "[[8, 8], [8, 8]]"}),
        "est. achieved occupancy %": (ItemKind.FLOAT, {2: 12.5}),
        "note": (ItemKind.STRING, {2: 'a "quoted" é'}),
        "finished": (ItemKind.BOOL, {0: 0, 3: 1}),
        "Bytes": (ItemKind.INT, {3: -64}),
    }
    facts = {
        "devprof_version": "0.1",
        "trace_id": "F00",
        "record_shapes": True,
        "with_stack": False,
        "metadata": {"user": "yes", "numbers": [1, 2.5]},
        "report": {"plugins": {}},
        "clock": {"offset_ns": 3},
    }
    return trace_of(
        events,
        items=items,
        counters={"busy": {4: 0.25}},
        places=(
            Place(4321, PlaceKind.HOST, "python"),
            Place(0, PlaceKind.DEVICE, "OpenReg 0", "sim", backend="openreg", properties={"id": 0, "name": "OpenReg"}),
        ),
        window_start_ns=BASE_NS + 500,
        window_end_ns=BASE_NS + 10_000,
        facts=facts,
    )


WHOLE = """\
{
"schemaVersion": 1,
"deviceProperties": [{"id": 0, "name": "OpenReg"}],
"record_shapes": 1,
"trace_id": "F00",
"user": "yes",
"numbers": [1, 2.5],
"devprof": {"version": "0.1", "plugins": {}, "clock": {"offset_ns": 3}, "backends": {"0": "openreg"}},
"displayTimeUnit": "ms",
"baseTimeNanoseconds": 1790857026000000000,
"traceEvents": [
{"ph":"M","name":"process_name","ts":0.500,"pid":4321,"tid":0,"args":{"name":"python"}},
{"ph":"M","name":"process_labels","ts":0.500,"pid":4321,"tid":0,"args":{"labels":"CPU"}},
{"ph":"M","name":"process_sort_index","ts":0.500,"pid":4321,"tid":0,"args":{"sort_index":4321}},
{"ph":"M","name":"thread_name","ts":0.500,"pid":4321,"tid":4321,"args":{"name":"thread 4321 (MainThread)"}},
{"ph":"M","name":"thread_sort_index","ts":0.500,"pid":4321,"tid":4321,"args":{"sort_index":4321}},
{"ph":"M","name":"process_name","ts":0.500,"pid":0,"tid":0,"args":{"name":"OpenReg 0"}},
{"ph":"M","name":"process_labels","ts":0.500,"pid":0,"tid":0,"args":{"labels":"sim"}},
{"ph":"M","name":"process_sort_index","ts":0.500,"pid":0,"tid":0,"args":{"sort_index":5000000}},
{"ph":"M","name":"thread_name","ts":0.500,"pid":0,"tid":7,"args":{"name":"stream 7"}},
{"ph":"M","name":"thread_sort_index","ts":0.500,"pid":0,"tid":7,"args":{"sort_index":7}},
{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":4321,"tid":4321,"ts":1.000,"dur":8.000,\
"args":{"External id":5,"Input Dims":[[8, 8], [8, 8]],"finished":false}},
{"ph":"X","cat":"privateuse1_runtime","name":"orLaunch","pid":4321,"tid":4321,"ts":2.000,"dur":1.000,\
"args":{"External id":5,"correlation":1073741824}},
{"ph":"s","id":1073741824,"pid":4321,"tid":4321,"ts":2.000,"cat":"ac2g","name":"ac2g"},
{"ph":"X","cat":"kernel","name":"mm","pid":0,"tid":7,"ts":4.000,"dur":4.001,\
"args":{"External id":5,"device":0,"stream":7,"correlation":1073741824,"grid":[4,1,1],\
"est. achieved occupancy %":12.5,"note":"a \\"quoted\\" é"}},
{"ph":"f","id":1073741824,"pid":0,"tid":7,"ts":4.000,"cat":"ac2g","name":"ac2g","bp":"e"},
{"ph":"i","s":"t","cat":"cpu_instant_event","name":"[memory]","pid":4321,"tid":4321,"ts":5.000,\
"args":{"External id":5,"finished":true,"Bytes":-64}},
{"ph":"C","cat":"mtia_counters","name":"SM active","pid":0,"tid":7,"ts":6.000,"args":{"busy":0.25}},
{"ph":"X","cat":"Trace","name":"PyTorch Profiler (0)","pid":"Spans","tid":"PyTorch Profiler","ts":0.500,"dur":9.500,\
"args":{"Op count":5}},
{"ph":"M","name":"process_sort_index","ts":0.500,"pid":"Spans","tid":0,"args":{"sort_index":536870912}},
{"ph":"i","s":"g","name":"Iteration Start: PyTorch Profiler","pid":"Traces","tid":"Trace PyTorch Profiler","ts":0.500},
{"ph":"i","s":"g","name":"Record Window End","pid":"","tid":"","ts":10.000}
],
"traceName": "trace.json"
}
"""


def test_the_file_is_this_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    chrome_trace(small_trace(), "trace.json")
    assert (tmp_path / "trace.json").read_text(encoding="utf-8") == WHOLE
    read(tmp_path / "trace.json")


def test_a_packed_file_holds_the_same_text_and_equal_traces_make_equal_files(tmp_path: Path) -> None:
    for name in ("a.json", "a.json.gz", "b.json.gz"):
        chrome_trace(small_trace(), tmp_path / name)
    plain, packed = read(tmp_path / "a.json"), read(tmp_path / "a.json.gz")
    assert packed | {"traceName": ""} == plain | {"traceName": ""}
    chrome_trace(small_trace(), tmp_path / "a.json.gz")
    again = (tmp_path / "a.json.gz").read_bytes()
    chrome_trace(small_trace(), tmp_path / "a.json.gz")
    assert (tmp_path / "a.json.gz").read_bytes() == again


def test_the_rank_is_written_as_hta_looks_for_it(tmp_path: Path) -> None:
    trace = trace_of([op("o", 0, 9)], facts={"metadata": {"distributedInfo": {"backend": "gloo", "rank": 3}}})
    chrome_trace(trace, tmp_path / "t.json")
    assert re.search(r'"rank":\s+(\d+)', (tmp_path / "t.json").read_text(encoding="utf-8"))


def test_an_empty_trace_is_a_file_without_events(tmp_path: Path) -> None:
    file = written(trace_of([], rows=(), places=()), tmp_path)
    assert file["traceEvents"] == []
    assert file["baseTimeNanoseconds"] == 0


def test_names_and_metadata_keep_their_text(tmp_path: Path) -> None:
    names = [
        'say "hi"',
        "back\\slash",
        "tab\tnewline\n",
        "\x01\x00abc",
        "é 漢 🔥",
        "",
        "kernel",
        "Pi",
        "100% %d %s",
        "x" * 10_000,
    ]
    events = [op(name, 10 * i, 10 * i + 5) for i, name in enumerate(names)]
    items = {f"k {name[:20]}": (ItemKind.STRING, {i: name}) for i, name in enumerate(names)}
    trace = trace_of(events, items=items, facts={"metadata": dict.fromkeys(names, "v\n\"'")})
    file = written(trace, tmp_path)
    slices = events_of(file, "X")
    assert [event["name"] for event in slices] == names
    assert [event["args"] for event in slices] == [{f"k {name[:20]}": name} for name in names]
    assert {name: file[name] for name in names} == dict.fromkeys(names, "v\n\"'")


def test_only_the_bad_characters_of_a_text_are_replaced(tmp_path: Path) -> None:
    items: dict[str, Any] = {"k\udc80": (ItemKind.STRING, {0: "\ud83d"})}
    items["k\udc81"] = (ItemKind.INT, {0: 1})
    trace = trace_of([op("a\ud800b\udffec", 0, 1)], items=items)
    (event,) = events_of(written(trace, tmp_path), "X")
    assert event["name"] == "a\ufffdb\ufffdc"
    assert event["args"] == {"k\ufffd": "\ufffd", "k\ufffd (2)": 1}


def test_numbers_that_are_not_finite_are_left_out(tmp_path: Path) -> None:
    values = {0: float("nan"), 1: float("inf"), 2: -float("inf"), 3: 1e300}
    trace = trace_of(
        [*(kernel("k", 10 * i, 10 * i + 5) for i in range(4)), op("c", 50, 50, STREAM, type=T.MTIA_COUNTERS)],
        items={"f": (ItemKind.FLOAT, values)},
        counters={"bad": {4: float("nan")}, "good": {4: 2.0}},
        facts={"report": {"worst": float("nan")}},
    )
    file = written(trace, tmp_path)
    assert [event["args"].get("f") for event in events_of(file, "X")] == [None, None, None, Decimal("1e300")]
    assert [event["args"] for event in events_of(file, "C")] == [{"good": 2}]
    assert file["devprof"] == {"version": "", "worst": "nan", "backends": {"0": "openreg"}}


def test_items_that_are_json_stand_as_they_are_unless_they_are_not_strict_json(tmp_path: Path) -> None:
    texts = [
        '{"a": [1, 2.50]}',
        "[NaN]",
        '{"a":1,"a":2}',
        "[1,",
        '"\\ud800"',
        "[" * 200_000 + "]" * 200_000,
        "é",
        '"é"',
    ]
    trace = trace_of(
        [op("o", 10 * i, 10 * i + 5) for i in range(len(texts))], items={"j": (ItemKind.JSON, dict(enumerate(texts)))}
    )
    values = [event["args"]["j"] for event in events_of(written(trace, tmp_path), "X")]
    assert values == [{"a": [1, Decimal("2.50")]}, *texts[1:4], "\ufffd", texts[5], "é", "é"]
    assert '"j":{"a": [1, 2.50]}' in (tmp_path / "trace.json").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("event", "args"),
    [
        (op("o", 0, 9, id=3, linked=2), {"External id": 3}),
        (op("r", 0, 9, type=T.USER_ANNOTATION, id=3, linked=2), {"External id": 3}),
        (op("f", 0, 9, type=T.PYTHON_FUNCTION, id=3, linked=2), None),
        (op("l", 0, 9, type=T.CUDA_RUNTIME, id=9), {"correlation": 9}),
        (op("l", 0, 9, type=T.CUDA_DRIVER, id=9, linked=2), {"External id": 2, "correlation": 9}),
        (op("o", 0, 9, type=T.OVERHEAD, id=9), None),
        (kernel("k", 0, 9, id=9), {"device": 0, "stream": 7, "correlation": 9}),
        (kernel("k", 0, 9), {"device": 0, "stream": 7}),
        (
            op("m", 0, 9, STREAM, type=T.GPU_MEMCPY, id=9, linked=2),
            {"External id": 2, "device": 0, "stream": 7, "correlation": 9},
        ),
        (op("s", 0, 9, STREAM, type=T.CUDA_SYNC, id=9), {"device": 0, "stream": 7, "correlation": 9}),
        (op("r", 0, 9, STREAM, type=T.GPU_USER_ANNOTATION, id=4), {"External id": 4}),
    ],
)
def test_ids_stand_under_the_keys_that_kineto_gives_them(
    event: dict[str, Any], args: dict[str, int] | None, tmp_path: Path
) -> None:
    (found,) = events_of(written(trace_of([event]), tmp_path), "X")
    assert found.get("args") == args


def test_an_item_wins_over_the_number_that_devprof_would_give(tmp_path: Path) -> None:
    trace = trace_of(
        [kernel("k", 0, 9, id=9, linked=2), kernel("k", 10, 19, id=8, linked=2)],
        items={"stream": (ItemKind.INT, {0: 13}), "External id": (ItemKind.STRING, {1: "two"})},
    )
    assert [event["args"] for event in events_of(written(trace, tmp_path), "X")] == [
        {"External id": 2, "device": 0, "correlation": 9, "stream": 13},
        {"device": 0, "stream": 7, "correlation": 8, "External id": "two"},
    ]


def test_a_type_that_this_version_does_not_know_is_still_written(tmp_path: Path) -> None:
    (event,) = events_of(written(trace_of([op("new", 0, 9, type=200)]), tmp_path), "X")
    assert (event["cat"], event["name"]) == ("activity_200", "new")


def test_a_users_key_that_is_taken_moves_and_nothing_is_lost(tmp_path: Path) -> None:
    metadata = {"traceEvents": [], "schemaVersion": 9, "with_stack": "mine", "free": None, "a\ud800": 1}
    metadata["a\ufffd"] = 2  # reads the same once the other is cleaned
    file = written(trace_of([op("o", 0, 9)], facts={"metadata": metadata, "with_stack": True}), tmp_path)
    assert (len(events_of(file, "X")), file["schemaVersion"], file["with_stack"], file["free"]) == (1, 1, 1, None)
    assert file["devprof"]["metadata"] == {"traceEvents": [], "schemaVersion": 9, "with_stack": "mine"}
    assert file["a\ufffd"] == 1


def test_times_are_exact_over_all_of_int64(tmp_path: Path) -> None:
    ends = [(-(2**63), 2**63 - 1), (-5, -4), (0, 0), (1, 2), (2**63 - 2, 2**63 - 1), (7, 3)]
    places = (Place(1, PlaceKind.HOST),)
    rows = [Row(0, i + 1) for i in range(len(ends))]
    events = [op("o", start - BASE_NS, end - BASE_NS, row) for row, (start, end) in enumerate(ends)]
    file = written(trace_of(events, places=places, rows=rows), tmp_path)
    found = [(start_ns(file, event), end_ns(file, event)) for event in events_of(file, "X")]
    assert found == [(start, max(start, end)) for start, end in ends]


def test_neighbours_one_nanosecond_apart_keep_their_order_as_doubles(tmp_path: Path) -> None:
    late = 7_889_237 * 10**9
    file = written(trace_of([op("o", late + i, late + i + 1) for i in range(5)]), tmp_path)
    times = [float(event["ts"]) for event in events_of(file, "X")]
    assert times == sorted(set(times))
    assert [start_ns(file, event) - BASE_NS - late for event in events_of(file, "X")] == [0, 1, 2, 3, 4]


def test_a_millisecond_is_a_thousand_microseconds(tmp_path: Path) -> None:
    (event,) = events_of(written(trace_of([kernel("k", 0, 1_000_000)]), tmp_path), "X")
    assert event["dur"] == 1000


def test_a_trace_without_a_window_has_no_window_in_the_file(tmp_path: Path) -> None:
    file = written(trace_of([op("o", 0, 9)]), tmp_path)
    assert {event["ph"] for event in file["traceEvents"]} == {"M", "X"}
    assert file["baseTimeNanoseconds"] == BASE_NS


def test_more_events_than_fit_one_chunk_with_items_here_and_there_are_all_written(tmp_path: Path) -> None:
    n = 5_000
    trace = trace_of(
        [op(f"o{i % 3}", 10 * i, 10 * i + 5, id=i) for i in range(n)],
        items={
            "odd": (ItemKind.INT, {i: i for i in range(1, n, 2)}),
            "third": (ItemKind.STRING, {i: f"t{i % 7}" for i in range(0, n, 3)}),
            "once": (ItemKind.BOOL, {4321: 1}),
            **{f"key {k}": (ItemKind.INT, dict.fromkeys(range(k, n, 97), k)) for k in range(80)},
        },
    )
    expected = []
    for i in range(n):
        args: dict[str, Any] = {"External id": i} if i else {}
        args |= {"odd": i} if i % 2 else {}
        args |= {} if i % 3 else {"third": f"t{i % 7}"}
        args |= {"once": True} if i == 4321 else {}
        expected.append((f"o{i % 3}", args | {f"key {k}": k for k in range(80) if i >= k and (i - k) % 97 == 0}))
    found = [(event["name"], event.get("args", {})) for event in events_of(written(trace, tmp_path), "X")]
    assert found == expected


def test_arrows_of_both_kinds_have_numbers_of_their_own_and_stand_after_their_events(tmp_path: Path) -> None:
    forward, launch = {"flow_id": 1, "flow_type": kLinkFwdBwd}, {"flow_id": 1, "flow_type": kLinkAsyncCpuGpu}
    trace = trace_of(
        [
            op("forward", 0, 9, flow_start=1, **forward),
            op("launch", 10, 19, type=T.CUDA_RUNTIME, flow_start=1, **launch),
            kernel("k", 20, 29, **launch),
            kernel("l", 30, 39, **launch),
            op("backward", 40, 49, **forward),
        ]
    )
    file = written(trace, tmp_path)
    assert [
        (event["ph"], event.get("id"), event["name"], event["ts"])
        for event in file["traceEvents"]
        if event["ph"] != "M"
    ] == [
        ("X", None, "forward", 0),
        ("s", 2, "fwdbwd", 0),
        ("X", None, "launch", Decimal("0.010")),
        ("s", 1, "ac2g", Decimal("0.010")),
        ("X", None, "k", Decimal("0.020")),
        ("f", 1, "ac2g", Decimal("0.020")),
        ("X", None, "l", Decimal("0.030")),
        ("f", 1, "ac2g", Decimal("0.030")),
        ("X", None, "backward", Decimal("0.040")),
        ("f", 2, "fwdbwd", Decimal("0.040")),
    ]


def test_an_arrow_follows_its_slice_to_another_lane(tmp_path: Path) -> None:
    arrow = {"flow_id": 5, "flow_type": kLinkAsyncCpuGpu}
    trace = trace_of(
        [
            op("launch", 0, 9, type=T.CUDA_RUNTIME, flow_start=1, **arrow),
            kernel("K1", 10, 110),
            kernel("K2", 90, 160, **arrow),
            kernel("K3", 100, 105),
        ]
    )
    file = written(trace, tmp_path)
    slices = {event["name"]: (event["pid"], event["tid"]) for event in events_of(file, "X")}
    assert slices == {"launch": (4321, 4321), "K1": (0, 7), "K2": (0, 8), "K3": (0, 7)}
    (end,) = events_of(file, "f")
    assert (end["pid"], end["tid"]) == slices["K2"]
    assert MAIN == 0
