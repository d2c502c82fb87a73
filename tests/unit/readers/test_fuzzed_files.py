"""Whatever bytes a file holds, the outcome is a trace or a `TraceFileError`, and the same by every decoder."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from devprof.errors import TraceFileError
from devprof.pipeline.files import joined
from devprof.store import Trace
from devprof.store.readers import read_kineto
from tests.unit.readers.decoders import DECODERS, new_decoder

by_decoder = pytest.mark.parametrize("decoder", DECODERS)

EVENTS: list[dict[str, Any]] = [
    {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "ts": 0.5, "args": {"name": "python"}},
    {"ph": "M", "name": "process_labels", "pid": 0, "tid": 0, "ts": 0.5, "args": {"labels": "GPU 0"}},
    {"ph": "M", "name": "thread_name", "pid": 1, "tid": 2, "ts": 0.5, "args": {"name": "main"}},
    {
        "ph": "X",
        "cat": "cpu_op",
        "name": "aten::mm",
        "pid": 1,
        "tid": 2,
        "ts": 5126278757915.303,
        "dur": 9.5,
        "args": {"External id": 3, "Input Dims": [[2, 3], []], "Sequence number": 5, "note": "caf\u00e9"},
    },
    {
        "ph": "X",
        "cat": "cuda_runtime",
        "name": "cudaLaunchKernel",
        "pid": 1,
        "tid": 2,
        "ts": 5126278757916.303,
        "dur": 1,
        "args": {"External id": 3, "correlation": 9, "cbid": 211},
    },
    {"ph": "s", "id": 9, "pid": 1, "tid": 2, "ts": 5126278757916.303, "cat": "ac2g", "name": "ac2g"},
    {
        "ph": "X",
        "cat": "kernel",
        "name": "k<float>",
        "pid": 0,
        "tid": 7,
        "ts": 5126278757918.001,
        "dur": 4,
        "args": {"External id": 3, "correlation": 9, "grid": [1, 2, 3], "blocks per SM": 0.25, "yes": True},
    },
    {"ph": "f", "id": 9, "pid": 0, "tid": 7, "ts": 5126278757918.001, "cat": "ac2g", "name": "ac2g", "bp": "e"},
    {"ph": "C", "cat": "mtia_counters", "name": "power", "pid": 1, "tid": 2, "ts": 7, "args": {"W": 7.5}},
    {"ph": "B", "cat": "mine", "name": "b", "pid": 1, "tid": 3, "ts": 8},
    {"ph": "E", "cat": "mine", "name": "b", "pid": 1, "tid": 3, "ts": 9},
    {
        "ph": "X",
        "cat": "Trace",
        "name": "P (0)",
        "pid": "Spans",
        "tid": "P",
        "ts": 1,
        "dur": 9,
        "args": {"Op count": 1},
    },
    {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": 5126278757999.303},
]
_TOP = {"schemaVersion": 1, "deviceProperties": [{"id": 0}], "baseTimeNanoseconds": 1790857026000000000}
_TEXT = json.dumps({**_TOP, "traceEvents": EVENTS, "traceName": "t"}).encode()

_TOKENS = [b'"', b"{", b"}", b"[", b"]", b",", b":", b"\\", b"null", b"-1", b"1e999", b"NaN", b"nan", b"true", b'"x"']
_TOKENS += [b"{}", b"[]", b"9" * 30, b"0.5", b"\xff", b"\\u0000", b"\\ud800", b"\x00", b"[[[[", b'{"ph":"X"}', b"},{"]
_TOKENS += [b'"ts":"7"', b'"dur":null', b'"pid":{}', b'"args":[1]', b'"traceEvents":[', b'"id":"0x1"', b'"cat":5']


def _mutated(edits: list[tuple[int, int, bytes]]) -> bytes:
    text = _TEXT
    for at, length, new in edits:
        at %= len(text) + 1
        text = text[:at] + new + text[at + length :]
    return text


_EDITS = st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 12), st.sampled_from(_TOKENS)), min_size=1, max_size=5)


def _outcome(path: Path, *, decoder: str, piece_bytes: int) -> Trace | str:
    try:
        return joined(read_kineto(path, decoder=new_decoder(decoder), piece_bytes=piece_bytes, max_bytes=1 << 20))
    except TraceFileError as error:
        return str(error)


def _seen(trace: Trace | str) -> object:
    """Return all that a trace says, whatever order keys are in."""
    if isinstance(trace, str):
        return trace
    columns = ("activity_type", "start_ns", "end_ns", "row", "id", "linked", "flow_id", "flow_start", "parent")
    names = [trace.name_of(event) for event in range(len(trace))]
    items = [sorted((key, repr(value)) for key, value in trace.items_of(event).items()) for event in range(len(trace))]
    counters = sorted((key, column.values.tolist()) for key, column in trace.counters.items())
    fixed = [np.asarray(getattr(trace, key)).tolist() for key in columns]
    facts = json.dumps(trace.facts, sort_keys=True)
    return repr((names, items, counters, fixed, trace.places, trace.rows, facts))


@by_decoder
@example(edits=[(400, 8, b'"'), (2269, 12, b'"')], piece_bytes=64)  # what a cut that was no good had seen came first
@settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(edits=_EDITS, piece_bytes=st.sampled_from([64, 700, 1 << 20]))
def test_edited_json_reads_the_same_by_every_decoder(
    tmp_path: Path, decoder: str, edits: list[tuple[int, int, bytes]], piece_bytes: int
) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(_mutated(edits))
    one, other = (_outcome(path, decoder=name, piece_bytes=piece_bytes) for name in (decoder, "json"))
    assert _seen(one) == _seen(other)


@by_decoder
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(content=st.binary(max_size=300), packed=st.booleans())
def test_any_bytes_are_a_trace_or_an_error(tmp_path: Path, decoder: str, content: bytes, packed: bool) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(gzip.compress(content) if packed else content)
    assert isinstance(_outcome(path, decoder=decoder, piece_bytes=64), Trace | str)


@by_decoder
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(edits=st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), min_size=1, max_size=6))
def test_damaged_packed_files_are_a_trace_or_an_error(
    tmp_path: Path, decoder: str, edits: list[tuple[int, int]]
) -> None:
    packed = bytearray(gzip.compress(_TEXT))
    for at, byte in edits:
        packed[at % len(packed)] = byte
    path = tmp_path / "t.json.gz"
    path.write_bytes(packed)
    assert isinstance(_outcome(path, decoder=decoder, piece_bytes=700), Trace | str)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
_EVENT = st.fixed_dictionaries(
    {},
    optional={
        "ph": st.sampled_from(list("XiMCsfBEben")) | _JSON,
        "cat": st.sampled_from(["cpu_op", "kernel", "cuda_runtime", "Trace", "x"]) | _JSON,
        "name": st.sampled_from(["a", "process_name", "thread_sort_index"]) | _JSON,
        "pid": st.sampled_from([0, 1, "1", "Spans"]) | _JSON,
        "tid": st.sampled_from([0, 7, "7"]) | _JSON,
        "ts": st.floats(0, 1e16) | st.integers(0, 10**16) | _JSON,
        "dur": st.floats(0, 1e6) | _JSON,
        "id": st.integers(0, 9) | _JSON,
        "args": st.dictionaries(st.sampled_from(["External id", "correlation", "name", "grid", "v"]), _JSON, max_size=3)
        | _JSON,
        "other": _JSON,
    },
)


@by_decoder
@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(events=st.lists(_EVENT | _JSON, max_size=6), base=_JSON | st.integers(0, 2**62))
def test_any_events_read_the_same_by_every_decoder(tmp_path: Path, decoder: str, events: list[Any], base: Any) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"traceEvents": events, "baseTimeNanoseconds": base}))
    one, other = (_outcome(path, decoder=name, piece_bytes=1 << 20) for name in (decoder, "json"))
    assert isinstance(one, Trace)
    assert _seen(one) == _seen(other)
