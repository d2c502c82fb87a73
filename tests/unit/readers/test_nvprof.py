"""nvprof's exports, as `torch.autograd.profiler.load_nvprof` reads them, and further."""

from __future__ import annotations

import shutil
import sqlite3
import struct
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from devprof.errors import TraceFileError
from devprof.pipeline.files import load_nvprof
from devprof.store import PlaceKind, Trace

Write = Callable[..., Path]

_T = 1_624_406_786_345_062_842  # Unix ns
_PID, _TID = 9970, 0xF0123456
_TEXTS = [
    (1, "aten::add, seq = 5, op_id = 12, sizes = [[2, 3], [2, 3], []]"),
    (2, "step"),
    (3, "_Z3addPfS_"),
    (4, "aten::empty"),
    (5, "here"),
    (6, "Tesla V100"),
]


def _object(pid: int = _PID, tid: int = _TID) -> bytes:
    return struct.pack("<III", pid, tid, 0)


def _marker(number: int, start: int, end: int | None, name: int) -> list[tuple[object, ...]]:
    begin = (None, 2, _T + start, number, 2, _object(), name, 0)
    return [begin] if end is None else [begin, (None, 4, _T + end, number, 2, _object(), 0, 0)]


def _call(cbid: int, start: int, end: int, correlation: int) -> tuple[object, ...]:
    return (None, cbid, _T + start, _T + end, _PID, _TID - 2**32, correlation, 0)


def _kernel(start: int, end: int, correlation: int, name: int = 3, stream: int = 7) -> tuple[object, ...]:
    fixed = (None, b"\0", 1, 32, 2, 2, _T + start, _T + end, _T + end, 0, 1, stream)
    return (*fixed, 57, 1, 2, 128, 1, 1, 16, 48, 0, 0, correlation, 669, name)


@pytest.fixture
def example(nvprof: Write) -> Path:
    return nvprof(
        StringTable=_TEXTS,
        MARKER=[*_marker(1, 0, 1000, 2), *_marker(2, 100, 500, 1), *_marker(3, 120, 130, 4)],
        RUNTIME=[
            _call(211, 200, 260, 487),
            _call(41, 600, 700, 488),
            _call(51, 720, 730, 489),
            _call(9999, 800, 810, 490),
        ],
        DRIVER=[_call(307, 850, 860, 491)],
        CONCURRENT_KERNEL=[_kernel(300, 450, 487)],
        MEMCPY=[(None, 1, 1, 3, 0, 4096, _T + 700, _T + 900, 0, 1, 7, 488, 0)],
        MEMSET=[(None, 0, 64, _T + 910, _T + 920, 0, 1, 8, 489, 0, 3)],
        DEVICE=[(None, 16 << 30, 80, 7, 0, 0, 6)],
    )


def _seen(trace: Trace) -> list[tuple[object, ...]]:
    names = [trace.name_of(event) for event in range(len(trace))]
    times = zip((trace.start_ns - _T).tolist(), (trace.end_ns - _T).tolist(), strict=True)
    parents = [names[parent] if parent >= 0 else None for parent in trace.parent.tolist()]
    return list(zip(names, times, parents, trace.linked.tolist(), strict=True))


def test_ranges_calls_and_device_work_form_one_tree(example: Path) -> None:
    assert sorted(_seen(load_nvprof(example)), key=lambda row: row[1]) == [
        ("step", (0, 1000), None, 0),
        ("aten::add", (100, 500), "step", 1),
        ("aten::empty", (120, 130), "aten::add", 2),
        ("cudaLaunchKernel", (200, 260), "aten::add", 2),
        ("add(float*, float*)", (300, 450), "cudaLaunchKernel", 2),
        ("cudaMemcpyAsync", (600, 700), "step", 1),
        ("Memcpy HtoD (Pageable -> Device)", (700, 900), "cudaMemcpyAsync", 1),
        ("cudaMemsetAsync", (720, 730), "step", 1),
        ("cuda_runtime call 9999", (800, 810), "step", 1),
        ("cuda_driver call 307", (850, 860), "step", 1),
        ("Memset (Device)", (910, 920), "cudaMemsetAsync", 1),
    ]


def test_what_a_range_of_emit_nvtx_says_becomes_items(example: Path) -> None:
    trace = load_nvprof(example)
    (add,) = trace.named("aten::add")
    assert trace.items_of(int(add)) == {
        "Sequence number": 5,
        "Record function id": 12,
        "Input Dims": "[[2, 3], [2, 3], []]",
    }
    assert [trace.activity_type[trace.named(name)[0]] for name in ("step", "aten::add", "aten::empty")] == [1, 0, 0]


def test_a_kernel_keeps_its_figures_and_its_device(example: Path) -> None:
    trace = load_nvprof(example)
    (kernel,) = trace.of_type(5)  # type: ignore[arg-type]
    assert trace.items_of(int(kernel)) == {
        "device": 0,
        "context": 1,
        "stream": 7,
        "registers per thread": 32,
        "local memory per thread": 0,
        "shared memory": 64,
        "grid": (57, 1, 2),
        "block": (128, 1, 1),
    }
    row = trace.rows[trace.row[kernel]]
    place = trace.places[row.place]
    assert (row.id, place.id, place.kind, place.name, place.backend) == (7, 0, PlaceKind.DEVICE, "Tesla V100", "cuda")
    assert place.properties == {
        "id": 0,
        "totalGlobalMem": 16 << 30,
        "numSms": 80,
        "computeMajor": 7,
        "computeMinor": 0,
        "name": "Tesla V100",
    }


def test_markers_and_calls_of_a_thread_share_its_row(example: Path) -> None:
    trace = load_nvprof(example)
    assert {
        (trace.places[row.place].id, row.id) for row in trace.rows if trace.places[row.place].kind is PlaceKind.HOST
    } == {(_PID, _TID)}


def test_arrows_lead_from_launches_to_their_work(example: Path) -> None:
    trace = load_nvprof(example)
    flows = {
        trace.name_of(event): (int(trace.flow_id[event]), int(trace.flow_type[event]), int(trace.flow_start[event]))
        for event in range(len(trace))
        if trace.flow_id[event]
    }
    assert flows == {
        "cudaLaunchKernel": (487, 2, 1),
        "add(float*, float*)": (487, 2, 0),
        "cudaMemcpyAsync": (488, 2, 1),
        "Memcpy HtoD (Pageable -> Device)": (488, 2, 0),
        "cudaMemsetAsync": (489, 2, 1),
        "Memset (Device)": (489, 2, 0),
    }


@pytest.mark.parametrize(
    ("cbid", "name"), [(13, "cudaLaunch"), (211, "cudaLaunchKernel"), (430, "cudaLaunchKernelExC")]
)
def test_a_launch_is_known_by_name_whatever_its_number(nvprof: Write, cbid: int, name: str) -> None:
    path = nvprof(StringTable=_TEXTS, RUNTIME=[_call(cbid, 0, 10, 1)], CONCURRENT_KERNEL=[_kernel(20, 30, 1)])
    trace = load_nvprof(path)
    assert _seen(trace) == [(name, (0, 10), None, 0), ("add(float*, float*)", (20, 30), name, 0)]
    assert trace.facts["file"]["notes"] == []  # type: ignore[index]


def test_a_kernel_started_by_an_unknown_call_is_kept_and_noted(nvprof: Write) -> None:
    path = nvprof(StringTable=_TEXTS, RUNTIME=[_call(888, 0, 10, 1)], CONCURRENT_KERNEL=[_kernel(20, 30, 1)])
    trace = load_nvprof(path)
    assert _seen(trace)[1] == ("add(float*, float*)", (20, 30), "cuda_runtime call 888", 0)
    assert trace.facts["file"]["notes"] == [  # type: ignore[index]
        "1 kernels or more were started by cuda_runtime call 888, which is no known launch call"
    ]


def test_one_launch_may_start_many_kernels(nvprof: Write) -> None:
    kernels = [_kernel(20 + at, 21 + at, 9) for at in range(200)]
    trace = load_nvprof(nvprof(StringTable=_TEXTS, RUNTIME=[_call(311, 0, 10, 9)], CONCURRENT_KERNEL=kernels))
    assert [parent for _, _, parent, _ in _seen(trace)] == [None] + ["cudaGraphLaunch"] * 200
    assert trace.flow_start.tolist() == [1] + [0] * 200


@pytest.mark.parametrize(
    ("markers", "calls", "says"),
    [
        ([*_marker(1, 0, 10, 2), *_marker(1, 20, 30, 2)], [], "duplicate key: marker id 1"),
        ([*_marker(1, 0, None, 2), *_marker(1, 20, None, 2)], [], "duplicate key: marker id 1"),
    ],
)
def test_a_key_that_is_there_twice_is_refused(nvprof: Write, markers: list, calls: list, says: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(TraceFileError, match=says):
        load_nvprof(nvprof(StringTable=_TEXTS, MARKER=markers, RUNTIME=calls))


def test_a_range_without_its_end_lasts_to_the_end_of_the_ranges_and_says_so(nvprof: Write) -> None:
    instant = (None, 1, _T + 40, 3, 2, _object(), 5, 0)
    stray = (None, 4, _T + 30, 77, 2, _object(), 0, 0)
    markers = [*_marker(1, 0, None, 2), *_marker(2, 10, 50, 4), instant, stray]
    trace = load_nvprof(nvprof(StringTable=_TEXTS, MARKER=markers))
    assert _seen(trace) == [
        ("step", (0, 50), None, 0),
        ("aten::empty", (10, 50), "step", 1),
        ("here", (40, 40), "aten::empty", 0),
    ]
    assert [trace.item("finished", event) for event in range(3)] == [False, None, None]
    assert trace.facts["file"]["left_out"] == {"marker ends without their start": 1}  # type: ignore[index]


def test_work_whose_times_were_not_collected_is_counted(nvprof: Write) -> None:
    kernels = [_kernel(20, 30, 1), (*_kernel(0, 0, 2)[:6], 0, 0, 0, *_kernel(0, 0, 2)[9:])]
    trace = load_nvprof(nvprof(StringTable=_TEXTS, CONCURRENT_KERNEL=kernels))
    assert len(trace) == 1
    assert trace.facts["file"]["left_out"] == {  # type: ignore[index]
        "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: times were not collected": 1
    }


def test_records_that_hold_no_integer_where_one_must_be_are_counted(nvprof: Write) -> None:
    bad = list(_kernel(20, 30, 1))
    calls = [_call(211, 0, 10, 1), (None, 211, "soon", _T, _PID, _TID, 2, 0), (None, 211, _T, b"\1", _PID, _TID, 3, 0)]
    bad[9] = "device zero"
    trace = load_nvprof(nvprof(StringTable=_TEXTS, RUNTIME=calls, CONCURRENT_KERNEL=[bad]))
    assert [name for name, *_ in _seen(trace)] == ["cudaLaunchKernel"]
    assert trace.facts["file"]["left_out"] == {  # type: ignore[index]
        "CUPTI_ACTIVITY_KIND_RUNTIME: no integer where one must be": 2,
        "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: no integer where one must be": 1,
    }


def test_extreme_numbers_are_counted_or_kept_and_never_a_crash(nvprof: Write) -> None:
    huge, low = 2**63 - 1, -(2**63)
    calls = [
        (None, huge, _T, _T + 1, huge, low, huge, huge),
        (None, 211, low, huge, _PID, _TID, 1, 0),
        (None, low, _T, _T + 2, low, huge, low, low),
    ]
    kernel = list(_kernel(0, 5, 1))
    kernel[9:12], kernel[12:25] = [huge, low, huge], [huge] * 12 + [low]
    markers = [(None, huge, _T, low, low, b"", low, low), (None, 0, huge, huge, 2, None, 0, 0)]
    markers = [tuple(b"" if value is None and at == 5 else value for at, value in enumerate(row)) for row in markers]
    trace = load_nvprof(nvprof(StringTable=_TEXTS, RUNTIME=calls, CONCURRENT_KERNEL=[kernel], MARKER=markers))
    assert len(trace) == 4
    assert trace.facts["file"]["left_out"] == {  # type: ignore[index]
        "CUPTI_ACTIVITY_KIND_MARKER: a time that cannot be": 1,
        "CUPTI_ACTIVITY_KIND_RUNTIME: a time that cannot be": 1,
    }


def test_tables_with_records_that_are_not_read_are_named(nvprof: Write) -> None:
    trace = load_nvprof(nvprof(OVERHEAD=[(None, 1, 1, _object(), _T, _T + 1)]))
    assert len(trace) == 0
    assert trace.facts["file"]["tables_not_read"] == ["CUPTI_ACTIVITY_KIND_OVERHEAD"]  # type: ignore[index]


def test_a_missing_column_is_named_with_those_that_are_there(write: Write) -> None:
    path = write({"CUPTI_ACTIVITY_KIND_RUNTIME": ("start INT, end INT, cbid INT", [])})
    with pytest.raises(
        TraceFileError, match=r"CUPTI_ACTIVITY_KIND_RUNTIME of this nvprof export lacks processId, threadId, "
    ):
        load_nvprof(path)


def test_another_database_is_refused_with_what_was_expected_and_found(write: Write) -> None:
    with pytest.raises(TraceFileError, match=r"expected a table among CUPTI_ACTIVITY_KIND_RUNTIME.*; found cats"):
        load_nvprof(write({"cats": ("name TEXT", [])}))


def test_an_nsight_export_is_sent_to_the_other_loader(write: Write) -> None:
    with pytest.raises(TraceFileError, match="use load_nsys"):
        load_nvprof(write({"StringIds": ("id INTEGER, value TEXT", [])}))


@pytest.mark.parametrize("content", [b"", b"SQLite format 2\0", b'{"traceEvents": []}', b"\x1f\x8b\x08"])
def test_a_file_that_is_no_database_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "trace.db"
    path.write_bytes(content)
    with pytest.raises(TraceFileError, match="expected an SQLite file"):
        load_nvprof(path)


def test_a_missing_file_and_a_directory_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none.db", tmp_path):
        with pytest.raises(TraceFileError, match="cannot be opened"):
            load_nvprof(path)


def test_a_damaged_database_is_refused_or_read_and_nothing_else(example: Path, tmp_path: Path) -> None:
    content = example.read_bytes()
    outcomes = set()
    for at in range(100, len(content), 251):
        path = tmp_path / "damaged.db"
        path.write_bytes(content[:at] + bytes(byte ^ 0xFF for byte in content[at : at + 16]) + content[at + 16 :])
        try:
            outcomes.add(type(load_nvprof(path)))
        except TraceFileError:
            outcomes.add(TraceFileError)
    assert outcomes == {Trace, TraceFileError}


def test_the_file_is_not_written_to(example: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy #1 100%.db"  # a name that a URI must quote
    shutil.copy(example, copy)
    copy.chmod(0o444)
    before = copy.read_bytes()
    assert len(load_nvprof(copy)) == 11
    assert copy.read_bytes() == before
    with closing(sqlite3.connect(copy)) as connection:
        assert connection.execute("SELECT count(*) FROM StringTable").fetchone() == (6,)
