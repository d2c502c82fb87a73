"""Chrome JSON, as Kineto writes it and as others do: exact, complete, and never trusted."""

from __future__ import annotations

import gc
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from devprof.errors import TraceFileError
from devprof.model import ActivityType
from devprof.pipeline.files import joined, load_kineto
from devprof.store import ItemKind, PlaceKind, Trace
from devprof.store.readers import read_kineto
from devprof.store.readers.json_repeated import REPEATED
from tests.unit.readers.decoders import DECODERS, new_decoder

Read = Callable[..., Trace]

_BASE = 1_790_857_026_000_000_000


@pytest.fixture(params=DECODERS)
def read(request: pytest.FixtureRequest, tmp_path: Path) -> Read:
    """Write a file and read it, by each of the decoders."""

    def _read(content: object, **options: Any) -> Trace:
        path = tmp_path / "trace.json"
        text = content if isinstance(content, str | bytes) else json.dumps(content)
        path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
        return read_kineto(path, decoder=new_decoder(request.param), **options)

    return _read


def _slice(name: str, ts: object, dur: object, **more: object) -> dict[str, object]:
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 2, "ts": ts, "dur": dur, **more}


def _file(*events: object, **top: object) -> dict[str, object]:
    return {"schemaVersion": 1, **top, "traceEvents": list(events)}


def _text(content: object, written: str) -> str:
    """Return JSON with a value as it is written in place of "TS"."""
    return json.dumps(content).replace('"TS"', written)


def _left_out(trace: Trace) -> dict[str, int]:
    return trace.facts["file"]["left_out"]  # type: ignore[index,no-any-return]


def _notes(trace: Trace) -> list[str]:
    return trace.facts["file"]["notes"]  # type: ignore[index,no-any-return]


def _not_strict(trace: Trace) -> dict[str, int]:
    return trace.facts["file"]["not_strict"]  # type: ignore[index,no-any-return]


def _names(trace: Trace) -> list[str]:
    return [trace.name_of(event) for event in range(len(trace))]


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
    trace = read(_text(_file(_slice("a", "TS", 0.001)), written))
    assert (trace.start_ns.tolist(), trace.end_ns.tolist()) == ([ns], [ns + 1])


def test_times_one_nanosecond_apart_keep_their_order_and_distance(read: Read) -> None:
    first = 1_790_857_026_123_456_789
    texts = [f"{ns // 1000}.{ns % 1000:03d}" for ns in range(first, first + 2000)]
    trace = read(f"[{','.join(_text(_slice('k', 'TS', 0.001), ts) for ts in texts)}]")
    assert trace.start_ns.tolist() == list(range(first, first + 2000))
    assert trace.duration_ns.tolist() == [1] * 2000


@pytest.mark.parametrize("where", ["before", "after"])
def test_the_base_is_added_exactly_wherever_it_stands(read: Read, where: str) -> None:
    event = json.dumps(_slice("a", 0.001, 0.002))
    base = f'"baseTimeNanoseconds": {_BASE}'
    events = f'"traceEvents": [{event}]'
    trace = read("{" + ", ".join([base, events] if where == "before" else [events, base]) + "}")
    assert (trace.start_ns.tolist(), trace.end_ns.tolist()) == ([_BASE + 1], [_BASE + 3])


@pytest.mark.parametrize("ts", ["null", '"soon"', "[1]", "true", '{"a": 1}', "1e300", '""', "9" * 40])
def test_an_event_without_a_time_that_can_be_is_counted(read: Read, ts: str) -> None:
    trace = read(_text([_slice("bad", "TS", 1), _slice("good", 1, 1)], ts))
    assert _names(trace) == ["good"]
    assert _left_out(trace) == {"event without a time that can be": 1}


def test_a_base_that_is_no_time_is_noted(read: Read) -> None:
    trace = read(_file(_slice("a", 1, 1), baseTimeNanoseconds="long ago"))
    assert trace.start_ns.tolist() == [1000]
    assert _notes(trace) == ["baseTimeNanoseconds is long ago, which is no time: taken as 0"]


# the file


def test_objects_bare_lists_and_packed_files_read_the_same(read: Read, tmp_path: Path) -> None:
    events = [_slice("a", 1, 5), _slice("b", 2, 1)]
    packed = tmp_path / "packed.json.gz"
    packed.write_bytes(
        gzip.compress(json.dumps(events[:1]).encode()[:-1])
        + gzip.compress(b"," + json.dumps(events[1]).encode() + b"]")
    )
    for trace in (
        read(_file(*events)),
        read(events),
        read(b"\xef\xbb\xbf" + json.dumps(events).encode()),
        read(packed.read_bytes()),
    ):
        assert (_names(trace), trace.start_ns.tolist()) == (["a", "b"], [1000, 2000])
        assert (_left_out(trace), _notes(trace)) == ({}, [])


def test_pieces_of_any_size_read_the_same(read: Read) -> None:
    args = {"list": [{"a": 1}, {"b": [2]}], "text": 'a}, {"ph": "X"}, {b', "n": 3}
    events = [_slice(f"op {at}", at, 1, args={**args, "External id": at + 1}) for at in range(50)]
    whole = read(_file(*events, trailing=[[1], [2]]))
    for size in (1, 7, 100, 333, 1000, 5000):
        trace = read(_file(*events, trailing=[[1], [2]]), piece_bytes=size)
        assert _names(trace) == _names(whole)
        assert trace.id.tolist() == whole.id.tolist() == list(range(1, 51))
        assert [trace.items_of(at) for at in (0, 49)] == [whole.items_of(at) for at in (0, 49)]
        assert (_left_out(trace), trace.facts["metadata"]) == ({}, whole.facts["metadata"])


def test_a_truncated_file_gives_what_could_be_read_and_says_so(read: Read) -> None:
    text = json.dumps(_file(*(_slice(f"op {at}", at, 1) for at in range(100))))
    for length in range(len(text) // 2, len(text) - 2, 97):
        trace = read(text[:length])
        whole = text[:length].count('"dur": 1}')
        assert _names(trace) == [f"op {at}" for at in range(whole)]
        assert _notes(trace) == ["the file ends before its JSON does"]


def test_a_truncated_packed_file_gives_what_could_be_read_and_says_so(read: Read) -> None:
    events = [_slice(f"op {at}", at, 1, args={"noise": str(at * 7919 % 10007)}) for at in range(3000)]
    packed = gzip.compress(json.dumps(_file(*events)).encode())
    trace = read(packed[: len(packed) // 2])
    assert 500 < len(trace) < 2500
    assert _names(trace) == [f"op {at}" for at in range(len(trace))]
    assert _notes(trace) == ["the file ends before its JSON does: the gzip stream ends too early"]


def test_an_event_that_is_no_json_is_stepped_over_and_counted(read: Read) -> None:
    good = [json.dumps(_slice(f"op {at}", at, 1)) for at in range(4)]
    quote = '{"ph":"X","cat":"cpu_op","name":"say "hi"","pid":1,"tid":2,"ts":9,"dur":1}'
    trace = read(
        f'{{"traceEvents": [{good[0]}, {quote}, {good[1]}, {good[2]}, {{"ph": X}}, {good[3]}], "traceName": "t"}}'
    )
    assert _names(trace) == ["op 0", "op 1", "op 2", "op 3"]
    assert _left_out(trace) == {"event that is no JSON": 2}


@pytest.mark.parametrize("word", ["NaN", "nan", "-nan", "inf", "-inf", "Infinity", "-Infinity"])
def test_a_number_that_is_none_is_read_as_one_and_texts_are_left_alone(read: Read, word: str) -> None:
    text = json.dumps(_slice("a: nan, inf", 1, 1, args={"x": 777, "y": "nan"})).replace("777", word)
    trace = read(f"[{text}]")
    assert _names(trace) == ["a: nan, inf"]
    assert trace.item("y", 0) == "nan"
    assert str(trace.item("x", 0)) == str(float(word))


def test_what_is_no_utf8_is_replaced_and_nothing_else(read: Read) -> None:
    text = json.dumps(_file(_slice("caf\u00e9", 1, 1), _slice("BAD", 2, 1)), ensure_ascii=False).encode()
    trace = read(text.replace(b"BAD", b"b\xff\xfed"))
    assert _names(trace) == ["caf\u00e9", "b\ufffd\ufffdd"]


def test_of_a_key_that_is_there_twice_the_later_one_holds(read: Read) -> None:
    text = (
        '[{"ph":"B","ph":"X","cat":"cpu_op","name":"a","name":"b","pid":1,"tid":1,"ts":1,"dur":1,"args":{"k":1,"k":2}}]'
    )
    trace = read(text)
    assert (_names(trace), trace.items_of(0)) == (["b"], {"k": 2})
    assert _not_strict(trace) == {REPEATED: 3}


_TWICE = '{"ph":"X","name":"a","name":"b","pid":1,"tid":1,"ts":1,"ts":2,"dur":1,"args":{"k":1}}'


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (f"[{_TWICE},{_TWICE}]", 4),
        ('[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":1,"args":{"k":1},"args":{"k":2,"k":3}}]', 2),
        ('[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":1,"mine":1,"mine":2}]', 1),
        (f"[{_TWICE},{{broken]", 2),
        (f'{{"traceEvents":[{_TWICE}],"schemaVersion":1,"schemaVersion":2}}', 3),
        ('{"traceEvents":[{"ph":"X","name":"a","ts":1,"dur":1}],"traceEvents":[]}', 1),
    ],
)
def test_keys_that_are_there_twice_are_counted(read: Read, text: str, count: int) -> None:
    assert _not_strict(read(text)) == {REPEATED: count}


@pytest.mark.parametrize(
    "event",
    [
        {"ph": "X", "name": 'a":b', "ts": 1, "dur": 1, "args": {"k": 'x":', "\\": '"', "n": None}},
        {"ph": "X", "name": "a", "ts": 1, "dur": 1, "id": None, "args": {"k": {"deep": {"k": 1}}, "l": [{"k": 1}]}},
        {"ph": "X", "name": "a", "ts": 1, "dur": 1, "args": [{"k": 1}], "mine": {"k": 1}},
    ],
)
@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": "), (" , ", " : ")])
def test_keys_that_are_there_once_are_not_counted_however_they_are_written(
    read: Read, event: dict[str, object], separators: tuple[str, str]
) -> None:
    assert "not_strict" not in read(json.dumps([event, event], separators=separators)).facts["file"]


@pytest.mark.parametrize(
    "content", [b"", b"   ", b"traceEvents", b'"text"', b"17", b"\x1f\x8b\x08", b"\x00\x01", b"{}", b'{"a": 1}', b"{]"]
)
def test_what_is_no_trace_is_refused(read: Read, content: bytes) -> None:
    with pytest.raises(TraceFileError, match=r"is no trace in JSON|holds no trace"):
        read(content)


def test_an_empty_list_of_events_is_an_empty_trace(read: Read) -> None:
    for content in ([], _file()):
        assert len(read(content)) == 0


def test_things_that_are_no_events_are_counted(read: Read) -> None:
    trace = read([1, "x", None, [], _slice("a", 1, 1), {}, {"ph": "Z", "ts": 1}, {"ph": ["X"], "ts": 1}])
    assert _names(trace) == ["a"]
    assert _left_out(trace) == {
        "thing that is no event": 4,
        "event of phase 'None'": 1,
        "event of phase 'Z'": 1,
        "event of phase '[\"X\"]'": 1,
    }


def test_text_beyond_the_limit_is_refused(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.json.gz"
    bomb.write_bytes(gzip.compress(b"[" + b" " * 50_000_000))
    with pytest.raises(TraceFileError, match="holds more than 1000000 bytes of text, unpacked"):
        load_kineto(bomb, max_bytes=1_000_000)


@pytest.mark.parametrize("value", ["9" * 5000, "-" + "9" * 5000, f"[{'9' * 5000}]", '{"a": ' + "9" * 5000 + "}"])
def test_a_number_with_more_digits_than_python_takes_is_kept_as_its_digits(read: Read, value: str) -> None:
    text = json.dumps(_slice("a", 1, 1, args={"x": 777, "y": 1})).replace("777", value)
    trace = read(f"[{text}, {json.dumps(_slice('b', 2, 1))}]")
    assert (_names(trace), trace.item("y", 0), _left_out(trace)) == (["a", "b"], 1, {})
    assert "9" * 5000 in str(trace.item("x", 0))


@pytest.mark.parametrize("depth", [1_000, 200_000])
def test_deep_nesting_is_read_or_counted_and_never_a_crash(read: Read, depth: int) -> None:
    deep = "[" * depth + "]" * depth
    event = json.dumps(_slice("deep", 1, 1, args={"x": 777})).replace("777", deep)
    trace = read(f"[{event}, {json.dumps(_slice('flat', 2, 1))}]")
    assert "flat" in _names(trace)
    assert len(trace) + _left_out(trace).get("event that is no JSON", 0) == 2


def test_no_depth_of_nesting_loses_the_events_beside_it(read: Read) -> None:
    for depth in range(900, 1000):
        event = json.dumps(_slice("deep", 1, 1, args={"x": 777})).replace("777", "[" * depth + "]" * depth)
        trace = read(f"[{event}, {json.dumps(_slice('flat', 2, 1))}]")
        assert "flat" in _names(trace)
        assert len(trace) + _left_out(trace).get("event that is no JSON", 0) == 2


def test_a_header_that_is_no_json_does_not_lose_the_events(read: Read) -> None:
    trace = read(_text(_file(_slice("a", 1, 1), driver="TS"), "1.2.3"))
    assert _names(trace) == ["a"]
    assert _notes(trace) == ["facts in front of the events cannot be read"]


def test_the_garbage_collector_is_as_it_was(read: Read) -> None:
    assert gc.isenabled()
    read([])
    assert gc.isenabled()
    gc.disable()
    try:
        with pytest.raises(TraceFileError):
            read(b"")
        assert not gc.isenabled()
    finally:
        gc.enable()


# ids and links


@pytest.mark.parametrize("key", ["External id", "external id", "External Id", "external_id", "External_Id"])
@pytest.mark.parametrize("launch", ["correlation", "Correlation", "correlation_id", "correlationId"])
def test_ids_are_found_in_any_spelling(read: Read, key: str, launch: str) -> None:
    where = {"pid": 1, "tid": 2, "ts": 2, "dur": 1}
    trace = joined(
        read(
            [
                _slice("op", 1, 9, args={key: 23}),
                {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", **where, "args": {key: 23, launch: 41}},
                {
                    "ph": "X",
                    "cat": "kernel",
                    "name": "k",
                    "pid": 0,
                    "tid": 7,
                    "ts": 5,
                    "dur": 1,
                    "args": {key: 23, launch: 41},
                },
            ]
        )
    )
    assert (trace.id.tolist(), trace.linked.tolist()) == ([23, 41, 41], [0, 23, 23])
    assert (trace.parent.tolist(), dict(trace.items)) == ([-1, 0, 1], {})


def test_a_kernel_belongs_to_the_op_of_its_id_and_not_to_one_with_its_launch_number(read: Read) -> None:
    call = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 2, "ts": 21, "dur": 1}
    kernel = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 30, "dur": 5}
    ids = {"External id": 41, "correlation": 23}
    trace = joined(
        read(
            [
                _slice("A", 1, 9, args={"External id": 23}),
                _slice("B", 20, 9, args={"External id": 41}),
                {**call, "args": ids},
                {**kernel, "args": ids},
            ]
        )
    )
    parents = {trace.name_of(at): trace.name_of(int(up)) if up >= 0 else None for at, up in enumerate(trace.parent)}
    assert parents == {"A": None, "B": None, "cudaLaunchKernel": "B", "k": "cudaLaunchKernel"}
    assert trace.linked[trace.named("k")].tolist() == [41]


def test_launch_numbers_in_place_of_op_ids_as_older_kineto_wrote_them_lead_to_no_op(read: Read) -> None:
    def launched(number: int, ts: int) -> list[dict[str, Any]]:
        ids = {"External id": number, "correlation": number}
        call = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 2, "ts": ts, "dur": 1}
        kernel = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": ts + 5, "dur": 1}
        return [{**call, "args": ids}, {**kernel, "args": ids}]

    ops = [_slice("A", 1, 9, args={"External id": 41}), _slice("B", 20, 9, args={"External id": 2})]
    trace = joined(read([*ops, *launched(2, 3), *launched(41, 23), *launched(50, 40)]))
    owners = {41: "A", 2: "B", 0: None}
    found = {int(trace.id[at]): owners[int(trace.linked[at])] for at in trace.named("k")}
    assert found == {2: "A", 41: "B", 50: None}
    (note,) = trace.facts["file"]["notes"]  # type: ignore[index]
    assert note.startswith("calls and device work have their launch number for an op id")


def test_an_op_id_that_happens_to_be_the_launch_number_is_one_where_the_op_around_the_call_has_it(read: Read) -> None:
    ids = {"External id": 41, "correlation": 41}
    call = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 2, "ts": 3, "dur": 1}
    trace = joined(read([_slice("A", 1, 9, args={"External id": 41}), {**call, "args": ids}]))
    assert trace.linked.tolist() == [0, 41]
    assert trace.facts["file"]["notes"] == []  # type: ignore[index]


ACCOUNT = {"host": "torch", "start_ns": 1, "end_ns": 90, "notes": [], "plugins": {"npu": {"produced": 4}}}


@pytest.mark.parametrize("has_account", [False, True])
@pytest.mark.parametrize("number", [0, 2], ids=["without an op id", "with the launch number for one"])
def test_a_file_with_the_account_of_a_session_has_the_links_of_the_session_and_no_guessed_ones(
    read: Read, number: int, has_account: bool
) -> None:
    ids = {"External id": number, "correlation": 2}
    call = {
        "ph": "X",
        "cat": "privateuse1_runtime",
        "name": "launch",
        "pid": 1,
        "tid": 2,
        "ts": 3,
        "dur": 1,
        "args": ids,
    }
    kernel = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 30, "dur": 1, "args": ids}
    account = {"devprof": {"version": "0.1", **ACCOUNT}} if has_account else {}
    trace = joined(read(_file(_slice("A", 1, 9, args={"External id": 41}), call, kernel, **account)))
    assert set(trace.linked[np.r_[trace.named("launch"), trace.named("k")]]) == {number if has_account else 41}
    assert trace.parent[trace.named("k")] == trace.named("launch")
    assert trace.facts.get("report") == (ACCOUNT if has_account else None)


def test_a_merged_file_has_guessed_links_where_a_rank_has_no_account(read: Read) -> None:
    call = {"ph": "X", "cat": "privateuse1_runtime", "name": "launch", "pid": 1, "tid": 2, "ts": 3, "dur": 1}
    for facts, expected in (({"report": ACCOUNT}, 0), ({}, 41)):
        ranks = [{"rank": 0, "facts": {"report": ACCOUNT}}, {"rank": 1, "facts": facts}]
        trace = joined(read(_file(_slice("A", 1, 9, args={"External id": 41}), call, devprof={"ranks": ranks})))
        assert trace.linked[trace.named("launch")] == expected


def test_device_work_without_launch_hangs_under_its_op(read: Read) -> None:
    kernel = {
        "ph": "X",
        "cat": "kernel",
        "name": "k",
        "pid": 0,
        "tid": 7,
        "ts": 30,
        "dur": 5,
        "args": {"External id": 4},
    }
    trace = joined(read([_slice("op", 1, 9, args={"External id": 4}), kernel]))
    assert trace.parent.tolist() == [-1, 0]


def test_ids_that_are_no_whole_numbers_of_64_bits_stay_items(read: Read) -> None:
    given = ["x", 2**70, 1.5, None, [1], 0]
    trace = read([_slice(f"op {at}", at, 1, args={"External id": value}) for at, value in enumerate(given)])
    assert trace.id.tolist() == [0] * 6
    assert [trace.item("External id", at) for at in range(6)] == ['"x"', str(2**70), "1.5", None, "[1]", "0"]


# arrows


def _flow(
    phase: str, number: object, ts: object, category: str = "ac2g", pid: int = 1, tid: int = 2
) -> dict[str, object]:
    return {"ph": phase, "id": number, "pid": pid, "tid": tid, "ts": ts, "cat": category, "name": category, "bp": "e"}


def test_an_end_of_an_arrow_belongs_to_the_slice_that_starts_there(read: Read) -> None:
    call = {"ph": "X", "cat": "cuda_runtime", "name": "call", "pid": 1, "tid": 2, "ts": 2, "dur": 1}
    kernel = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 5, "dur": 1}
    events = [_slice("op", 1, 9), call, _flow("s", 77, 2), kernel, _flow("f", 77, 5, pid=0, tid=7)]
    for order in (events, [events[2], events[4], events[0], events[1], events[3]]):
        trace = read(order)
        rows = zip(
            _names(trace), trace.flow_id.tolist(), trace.flow_type.tolist(), trace.flow_start.tolist(), strict=True
        )
        assert sorted(rows) == [("call", 77, 2, 1), ("k", 77, 2, 0), ("op", 0, 0, 0)]
        assert _left_out(trace) == {}


def test_ends_of_arrows_that_stand_on_nothing_are_counted(read: Read) -> None:
    trace = read(
        [_slice("op", 1, 9), _flow("s", 1, 1, "fwdbwd"), _flow("s", 2, 3), _flow("s", 3, 1), _flow("t", 4, 1, "mine")]
    )
    assert (trace.flow_id.tolist(), trace.flow_type.tolist()) == ([1], [1])
    assert _left_out(trace) == {
        "end of an arrow without a slice of its own": 2,
        "end of an arrow of a kind that is not Kineto's": 1,
    }


def test_arrows_whose_ids_are_texts_keep_apart(read: Read) -> None:
    events = [
        _slice("a", 1, 1),
        _flow("s", "0x10", 1),
        _slice("b", 2, 1),
        _flow("s", "me", 2),
        _slice("c", 3, 1),
        _flow("s", "you", 3),
    ]
    trace = read(events)
    assert trace.flow_id[0] == 16
    assert len(set(trace.flow_id.tolist())) == 3


# places


def test_places_and_rows_are_named_and_sorted_as_the_file_says(read: Read) -> None:
    def said(what: str, pid: object, tid: object, **args: object) -> dict[str, object]:
        return {"ph": "M", "name": what, "pid": pid, "tid": tid, "ts": 0, "args": args}

    trace = read(
        _file(
            said("process_name", 1, 0, name="python"),
            said("process_labels", 1, 0, labels="CPU"),
            said("process_sort_index", 1, 0, sort_index=1),
            said("process_name", 0, 0, name="python"),
            said("process_labels", 0, 0, labels="GPU 0"),
            said("process_sort_index", 0, 0, sort_index=5000000),
            said("thread_name", 1, 2, name="main"),
            said("thread_sort_index", 1, 2, sort_index=2),
            said("thread_name", 0, 7, name="stream 7"),
            said("process_labels", 3, 0, labels="GPU 3"),
            said("num_cpus", 1, 0, number=8),
            _slice("op", 1, 1),
            {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1, "dur": 1},
            deviceProperties=[{"id": 0, "name": "A100"}, "odd", {"id": []}],
        )
    )
    assert [(p.id, p.kind, p.name, p.label, p.sort_index, p.backend, dict(p.properties)) for p in trace.places] == [
        (1, PlaceKind.HOST, "python", "CPU", 1, "cpu", {}),
        (0, PlaceKind.DEVICE, "python", "GPU 0", 5000000, "cuda", {"id": 0, "name": "A100"}),
        (3, PlaceKind.DEVICE, "", "GPU 3", None, "cuda", {}),
    ]
    assert [(row.place, row.id, row.name, row.sort_index) for row in trace.rows] == [
        (0, 2, "main", 2),
        (1, 7, "stream 7", None),
    ]
    assert trace.facts["metadata_events"] == [{"name": "num_cpus", "pid": 1, "tid": 0, "args": {"number": 8}}]


def test_a_host_and_a_device_with_one_number_are_two_places(read: Read) -> None:
    kernel = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 0, "ts": 1, "dur": 1}
    trace = read([{**_slice("op", 1, 1), "pid": 0, "tid": 0}, kernel])
    assert [(place.id, place.kind) for place in trace.places] == [(0, PlaceKind.HOST), (0, PlaceKind.DEVICE)]
    assert trace.on_device.tolist() == [False, True]


def test_numbers_may_be_texts_and_texts_get_numbers(read: Read) -> None:
    trace = read(
        [{**_slice("a", 1, 1), "pid": "12", "tid": "34"}, {**_slice("b", 2, 1), "pid": "trainer", "tid": "loader"}]
    )
    assert (trace.places[0].id, trace.places[0].name) == (12, "")
    assert trace.places[1].name == "trainer"
    assert trace.rows[0].id == 34
    assert trace.rows[1].name == "loader"


def test_missing_numbers_are_none(read: Read) -> None:
    trace = read([{"ph": "X", "cat": "cpu_op", "name": "a", "ts": 1, "dur": 1}])
    assert (trace.places[0].id, trace.rows[0].id) == (0, 0)


@pytest.mark.parametrize(
    ("category", "backend"),
    [("cuda_runtime", "cuda"), ("xpu_runtime", "xpu"), ("privateuse1_runtime", "privateuseone")],
)
def test_the_backend_is_that_of_the_calls(read: Read, category: str, backend: str) -> None:
    kernel = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 0, "ts": 1, "dur": 1}
    trace = read([{**_slice("call", 1, 1), "cat": category}, kernel])
    assert [place.backend for place in trace.places] == ["cpu", backend]


def test_devices_have_the_backends_that_devprof_writes_for_their_numbers(read: Read) -> None:
    kernel = {"ph": "X", "cat": "kernel", "name": "k", "tid": 0, "ts": 1, "dur": 1}
    events = [{**kernel, "pid": pid} for pid in (0, 1, 2)]
    trace = read(_file(*events, devprof={"version": "1", "backends": {"0": "openreg", "1": ["x"], "7": "other"}}))
    assert [(place.id, place.backend) for place in trace.places] == [(0, "openreg"), (1, "cuda"), (2, "cuda")]
    assert "backends" not in trace.facts
    idle = {"ph": "M", "name": "process_name", "pid": 7, "tid": 0, "args": {"name": "other 0"}}
    known = read(_file(*events, idle, devprof={"version": "1", "backends": {"7": "other"}}))
    assert [(place.kind, place.backend) for place in known.places if place.id == 7] == [(PlaceKind.DEVICE, "other")]
    assert read(_file(*events[:1], devprof={"backends": 5})).places[0].backend == "cuda"


# kinds of events


@pytest.mark.parametrize(
    "kind", [kind for kind in ActivityType if "counter" not in kind.label and "xpu_scope" not in kind.label]
)
def test_every_category_of_kineto_is_its_type(read: Read, kind: ActivityType) -> None:
    trace = read([{**_slice("a", 1, 1), "cat": kind.label}])
    assert (trace.activity_type.tolist(), dict(trace.items)) == ([int(kind)], {})


def test_a_category_of_somebody_elses_is_kept(read: Read) -> None:
    kernel = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1, "dur": 1}
    odd = {**_slice("x", 2, 1), "cat": "fee"}
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
    assert _left_out(trace) == {"end of a slice that has no begin": 1}


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
        _file(
            _slice("a", 5, 1),
            {**span, "ts": 2, "dur": 8, "args": {"Op count": 4}},
            {**mark, "ts": 2},
            {**end, "ts": 11.5},
            baseTimeNanoseconds=_BASE,
        )
    )
    assert (_names(trace), len(trace.places)) == (["a"], 1)
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
    trace = joined(read([_slice("late", 9, 1), _slice("inner", 1, 2), _slice("outer", 1, 5)]))
    assert (_names(trace), trace.parent.tolist()) == (["outer", "inner", "late"], [-1, 0, -1])


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
    trace = read([_slice("a", 1, 1, args=args, tts=5, cname="good")])
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
        [_slice(f"op {at}", at, 1, args={key: values[at] for key, values in given.items()}) for at in range(6)]
    )
    assert [json.loads(str(trace.item("mixed", at))) for at in range(6)] == given["mixed"]
    assert [trace.item("number", at) for at in range(6)] == [1.0, 2.5, 3.0, 4.0, 5.0, 6.0]
    assert [json.loads(str(trace.item("grid", at))) for at in range(6)] == given["grid"]


@pytest.mark.parametrize("args", [None, 5, "x", [1], {}])
def test_args_that_are_no_object_are_kept_as_they_are(read: Read, args: object) -> None:
    trace = read([_slice("a", 1, 1, args={"k": 1}), _slice("b", 2, 1, args=args), _slice("c", 3, 1)])
    assert trace.items_of(0) == {"k": 1}
    assert trace.items_of(1) == ({} if args in (None, {}) else {"args": args if not isinstance(args, list) else "[1]"})
    assert trace.items_of(2) == {}


def test_more_keys_than_a_struct_is_made_for_are_read_too(read: Read) -> None:
    events = [_slice(f"op {at}", at, 1, args={f"key {at * 10 + k}": k for k in range(10)}) for at in range(12)]
    trace = read(events)
    assert [trace.items_of(at) for at in range(12)] == [event["args"] for event in events]


def test_names_that_are_no_text_are_written_as_json(read: Read) -> None:
    trace = read([{**_slice("", at, 1), "name": name} for at, name in enumerate([None, 5, [1], {"a": 1}, True])])
    assert _names(trace) == ["", "5", "[1]", '{"a": 1}', "true"]


def test_facts_of_the_file_are_kept_under_the_words_of_a_trace(read: Read) -> None:
    top = {
        "trace_id": "T",
        "with_stack": 1,
        "host_name": "h",
        "mine": {"a": 1},
        "devprof": {"version": "0.1", "report": {"r": 1}, "metadata": {"trace_id": "own"}},
    }
    facts = read(_file(_slice("a", 1, 1), **top)).facts
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
        _slice(f"op {at % 7}", at + 0.125, 1, args={"a": at, "b": [at % 3], "c": str(at % 5)} if at % 4 else {})
        for at in range(500)
    ]
    path.write_text(json.dumps(_file(*events)))
    assert_same(read_kineto(path, decoder=new_decoder(decoder)), read_kineto(path, decoder=new_decoder("json")))


def assert_same(one: Trace, other: Trace) -> None:
    for key in ("activity_type", "start_ns", "end_ns", "row", "id", "linked", "flow_id", "flow_type", "flow_start"):
        assert np.array_equal(getattr(one, key), getattr(other, key)), key
    assert _names(one) == _names(other)
    assert (one.places, one.rows, one.facts) == (other.places, other.rows, other.facts)
    assert one.items.keys() == other.items.keys()
    for at in range(0, len(one), max(len(one) // 100, 1)):
        assert one.items_of(at) == other.items_of(at)
