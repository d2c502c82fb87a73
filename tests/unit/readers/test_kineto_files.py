"""Chrome JSON as a file: packed, cut off, damaged, or made to harm; it is never trusted."""

from __future__ import annotations

import gc
import gzip
import json
from pathlib import Path

import pytest

from devprof.errors import TraceFileError
from devprof.pipeline.files import load_kineto
from devprof.store.readers.json_repeated import REPEATED
from tests.unit.readers.kineto_json import Read, file_of, left_out, names_of, not_strict, notes_of, slice_of, written_as

# the file


def test_objects_bare_lists_and_packed_files_read_the_same(read: Read, tmp_path: Path) -> None:
    events = [slice_of("a", 1, 5), slice_of("b", 2, 1)]
    packed = tmp_path / "packed.json.gz"
    packed.write_bytes(
        gzip.compress(json.dumps(events[:1]).encode()[:-1])
        + gzip.compress(b"," + json.dumps(events[1]).encode() + b"]")
    )
    for trace in (
        read(file_of(*events)),
        read(events),
        read(b"\xef\xbb\xbf" + json.dumps(events).encode()),
        read(packed.read_bytes()),
    ):
        assert (names_of(trace), trace.start_ns.tolist()) == (["a", "b"], [1000, 2000])
        assert (left_out(trace), notes_of(trace)) == ({}, [])


def test_pieces_of_any_size_read_the_same(read: Read) -> None:
    args = {"list": [{"a": 1}, {"b": [2]}], "text": 'a}, {"ph": "X"}, {b', "n": 3}
    events = [slice_of(f"op {at}", at, 1, args={**args, "External id": at + 1}) for at in range(50)]
    whole = read(file_of(*events, trailing=[[1], [2]]))
    for size in (1, 7, 100, 333, 1000, 5000):
        trace = read(file_of(*events, trailing=[[1], [2]]), piece_bytes=size)
        assert names_of(trace) == names_of(whole)
        assert trace.id.tolist() == whole.id.tolist() == list(range(1, 51))
        assert [trace.items_of(at) for at in (0, 49)] == [whole.items_of(at) for at in (0, 49)]
        assert (left_out(trace), trace.facts["metadata"]) == ({}, whole.facts["metadata"])


def test_a_truncated_file_gives_what_could_be_read_and_says_so(read: Read) -> None:
    text = json.dumps(file_of(*(slice_of(f"op {at}", at, 1) for at in range(100))))
    for length in range(len(text) // 2, len(text) - 2, 97):
        trace = read(text[:length])
        whole = text[:length].count('"dur": 1}')
        assert names_of(trace) == [f"op {at}" for at in range(whole)]
        assert notes_of(trace) == ["the file ends before its JSON does"]


def test_a_truncated_packed_file_gives_what_could_be_read_and_says_so(read: Read) -> None:
    events = [slice_of(f"op {at}", at, 1, args={"noise": str(at * 7919 % 10007)}) for at in range(3000)]
    packed = gzip.compress(json.dumps(file_of(*events)).encode())
    trace = read(packed[: len(packed) // 2])
    assert 500 < len(trace) < 2500
    assert names_of(trace) == [f"op {at}" for at in range(len(trace))]
    assert notes_of(trace) == ["the file ends before its JSON does: the gzip stream ends too early"]


def test_an_event_that_is_no_json_is_stepped_over_and_counted(read: Read) -> None:
    good = [json.dumps(slice_of(f"op {at}", at, 1)) for at in range(4)]
    quote = '{"ph":"X","cat":"cpu_op","name":"say "hi"","pid":1,"tid":2,"ts":9,"dur":1}'
    trace = read(
        f'{{"traceEvents": [{good[0]}, {quote}, {good[1]}, {good[2]}, {{"ph": X}}, {good[3]}], "traceName": "t"}}'
    )
    assert names_of(trace) == ["op 0", "op 1", "op 2", "op 3"]
    assert left_out(trace) == {"event that is no JSON": 2}


@pytest.mark.parametrize("word", ["NaN", "nan", "-nan", "inf", "-inf", "Infinity", "-Infinity"])
def test_a_number_that_is_none_is_read_as_one_and_texts_are_left_alone(read: Read, word: str) -> None:
    text = json.dumps(slice_of("a: nan, inf", 1, 1, args={"x": 777, "y": "nan"})).replace("777", word)
    trace = read(f"[{text}]")
    assert names_of(trace) == ["a: nan, inf"]
    assert trace.item("y", 0) == "nan"
    assert str(trace.item("x", 0)) == str(float(word))


def test_what_is_no_utf8_is_replaced_and_nothing_else(read: Read) -> None:
    text = json.dumps(file_of(slice_of("caf\u00e9", 1, 1), slice_of("BAD", 2, 1)), ensure_ascii=False).encode()
    trace = read(text.replace(b"BAD", b"b\xff\xfed"))
    assert names_of(trace) == ["caf\u00e9", "b\ufffd\ufffdd"]


def test_of_a_key_that_is_there_twice_the_later_one_holds(read: Read) -> None:
    text = (
        '[{"ph":"B","ph":"X","cat":"cpu_op","name":"a","name":"b","pid":1,"tid":1,"ts":1,"dur":1,"args":{"k":1,"k":2}}]'
    )
    trace = read(text)
    assert (names_of(trace), trace.items_of(0)) == (["b"], {"k": 2})
    assert not_strict(trace) == {REPEATED: 3}


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
    assert not_strict(read(text)) == {REPEATED: count}


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
    for content in ([], file_of()):
        assert len(read(content)) == 0


def test_things_that_are_no_events_are_counted(read: Read) -> None:
    trace = read([1, "x", None, [], slice_of("a", 1, 1), {}, {"ph": "Z", "ts": 1}, {"ph": ["X"], "ts": 1}])
    assert names_of(trace) == ["a"]
    assert left_out(trace) == {
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
    text = json.dumps(slice_of("a", 1, 1, args={"x": 777, "y": 1})).replace("777", value)
    trace = read(f"[{text}, {json.dumps(slice_of('b', 2, 1))}]")
    assert (names_of(trace), trace.item("y", 0), left_out(trace)) == (["a", "b"], 1, {})
    assert "9" * 5000 in str(trace.item("x", 0))


@pytest.mark.parametrize("depth", [1_000, 200_000])
def test_deep_nesting_is_read_or_counted_and_never_a_crash(read: Read, depth: int) -> None:
    deep = "[" * depth + "]" * depth
    event = json.dumps(slice_of("deep", 1, 1, args={"x": 777})).replace("777", deep)
    trace = read(f"[{event}, {json.dumps(slice_of('flat', 2, 1))}]")
    assert "flat" in names_of(trace)
    assert len(trace) + left_out(trace).get("event that is no JSON", 0) == 2


def test_no_depth_of_nesting_loses_the_events_beside_it(read: Read) -> None:
    for depth in range(900, 1000):
        event = json.dumps(slice_of("deep", 1, 1, args={"x": 777})).replace("777", "[" * depth + "]" * depth)
        trace = read(f"[{event}, {json.dumps(slice_of('flat', 2, 1))}]")
        assert "flat" in names_of(trace)
        assert len(trace) + left_out(trace).get("event that is no JSON", 0) == 2


def test_a_header_that_is_no_json_does_not_lose_the_events(read: Read) -> None:
    trace = read(written_as(file_of(slice_of("a", 1, 1), driver="TS"), "1.2.3"))
    assert names_of(trace) == ["a"]
    assert notes_of(trace) == ["facts in front of the events cannot be read"]


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
