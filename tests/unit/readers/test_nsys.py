"""Nsight Systems' SQLite exports."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from devprof.errors import TraceFileError
from devprof.model import ActivityType
from devprof.pipeline.files import load_nsys
from devprof.store import PlaceKind, Trace

Write = Callable[..., Path]

_T = 1_700_000_000_123_456_789  # Unix ns of the session's start
_PID, _TID = 4000, 4001
_PROCESS = _PID << 24
_THREAD = _PROCESS | _TID
_TEXTS = [
    (1, "cudaLaunchKernel_v7000"),
    (2, "void add<float>(float*, float*)"),
    (3, "add"),
    (4, "step"),
    (5, "cuMemcpyHtoDAsync_v2"),
    (6, "worker"),
    (7, "cudaMemsetAsync_v3020"),
    (8, "cudaStreamSynchronize_v3020"),
    (9, "cudaGraphLaunch_v10000"),
]
_START = [(_T, "2023-11-14 22:13:20", "2023-11-14 22:13:20")]


def _range(
    start: int, end: int | None, text: str | None = None, text_id: int | None = None, kind: int = 59, domain: int = 0
) -> tuple[object, ...]:
    return (start, end, kind, None, None, None, text, _THREAD, None, text_id, domain)


def _call(start: int, end: int, correlation: int, name: int, thread: int = _THREAD) -> tuple[object, ...]:
    return (start, end, 0, thread, correlation, name, 0, None)


def _work(
    start: int, end: int, correlation: int, *more: object, process: int = _PROCESS, stream: int = 7
) -> tuple[object, ...]:
    return (start, end, 0, 1, None, stream, correlation, process, *more)


def _kernel(start: int, end: int, correlation: int, process: int = _PROCESS) -> tuple[object, ...]:
    return _work(start, end, correlation, 2, 3, None, 32, 57, 1, 2, 128, 1, 1, 16, 48, None, process=process)


@pytest.fixture
def example(nsys: Write) -> Path:
    return nsys(
        StringIds=_TEXTS,
        TARGET_INFO_SESSION_START_TIME=_START,
        TARGET_INFO_GPU=[(0, 3, "NVIDIA H100", "0000:43:00.0", 80 << 30, 132, 9, 0)],
        TARGET_INFO_CUDA_DEVICE=[(3, 0, _PID, "uuid")],
        ANALYSIS_DETAILS=[(0, 5000, 10, 5010)],
        PROCESSES=[(_PROCESS, _PID, "python3")],
        ThreadNames=[(6, 0, _THREAD)],
        NVTX_EVENTS=[
            _range(0, None, "Domain!", kind=75, domain=1),
            _range(100, 1000, text_id=4),
            _range(150, 500, "aten::add, seq = 5", domain=1),
            _range(160, None, "here", kind=34),
        ],
        RUNTIME=[
            _call(200, 260, 11, 1),
            _call(600, 700, 12, 5),
            _call(720, 730, 13, 7),
            _call(800, 990, 14, 8),
            _call(991, 995, 15, 9),
        ],
        KERNEL=[_kernel(300, 450, 11)],
        MEMCPY=[_work(700, 900, 12, 4096, 1, 0, 2)],
        MEMSET=[_work(910, 920, 13, 0, 64, 2, stream=8)],
        SYNCHRONIZATION=[_work(805, 985, 14, 3, 0)],
        GRAPH_TRACE=[_work(1100, 1200, 15, 77, 78)],
    )


def _seen(trace: Trace, base_ns: int = _T) -> list[tuple[object, ...]]:
    names = [trace.name_of(event) for event in range(len(trace))]
    times = zip((trace.start_ns - base_ns).tolist(), (trace.end_ns - base_ns).tolist(), strict=True)
    parents = [names[parent] if parent >= 0 else None for parent in trace.parent.tolist()]
    kinds = [ActivityType(kind).label for kind in trace.activity_type.tolist()]
    return sorted(zip(names, times, kinds, parents, strict=True), key=lambda row: row[1])


def test_ranges_calls_and_device_work_form_one_tree_in_unix_time(example: Path) -> None:
    assert _seen(load_nsys(example)) == [
        ("step", (100, 1000), "user_annotation", None),
        ("aten::add", (150, 500), "cpu_op", "step"),
        ("here", (160, 160), "cpu_instant_event", "aten::add"),
        ("cudaLaunchKernel", (200, 260), "cuda_runtime", "aten::add"),
        ("void add<float>(float*, float*)", (300, 450), "kernel", "cudaLaunchKernel"),
        ("cuMemcpyHtoDAsync_v2", (600, 700), "cuda_driver", "step"),
        ("Memcpy HtoD (Pageable -> Device)", (700, 900), "gpu_memcpy", "cuMemcpyHtoDAsync_v2"),
        ("cudaMemsetAsync", (720, 730), "cuda_runtime", "step"),
        ("cudaStreamSynchronize", (800, 990), "cuda_runtime", "step"),
        ("Stream Sync", (805, 985), "cuda_sync", "cudaStreamSynchronize"),
        ("Memset (Device)", (910, 920), "gpu_memset", "cudaMemsetAsync"),
        ("cudaGraphLaunch", (991, 995), "cuda_runtime", "step"),
        ("CUDA graph", (1100, 1200), "kernel", "cudaGraphLaunch"),
    ]


def test_places_rows_and_window_are_those_of_the_file(example: Path) -> None:
    trace = load_nsys(example)
    assert (trace.window_start_ns, trace.window_end_ns) == (_T + 10, _T + 5010)
    assert [(place.id, place.kind, place.name, place.backend) for place in trace.places] == [
        (_PID, PlaceKind.HOST, "python3", "cpu"),
        (0, PlaceKind.DEVICE, "NVIDIA H100", "cuda"),
    ]
    assert dict(trace.places[1].properties) == {
        "id": 3,
        "totalGlobalMem": 80 << 30,
        "numSms": 132,
        "computeMajor": 9,
        "computeMinor": 0,
        "name": "NVIDIA H100",
    }
    assert sorted((row.place, row.id, row.name) for row in trace.rows) == [(0, _TID, "worker"), (1, 7, ""), (1, 8, "")]


def test_items_have_kinetos_keys(example: Path) -> None:
    trace = load_nsys(example)
    items = {trace.name_of(event): trace.items_of(event) for event in range(len(trace))}
    assert items["void add<float>(float*, float*)"] == {
        "device": 0,
        "context": 1,
        "stream": 7,
        "registers per thread": 32,
        "shared memory": 64,
        "grid": (57, 1, 2),
        "block": (128, 1, 1),
    }
    assert items["Memcpy HtoD (Pageable -> Device)"] == {"device": 0, "context": 1, "stream": 7, "bytes": 4096}
    assert items["aten::add"] == {"Sequence number": 5, "domain": "Domain!"}
    assert items["CUDA graph"]["graph id"] == 77
    assert items["Stream Sync"]["cuda_sync_kind"] == "Stream Sync"


def test_without_a_session_start_the_times_stay_and_a_note_says_so(nsys: Write) -> None:
    trace = load_nsys(nsys(StringIds=_TEXTS, RUNTIME=[_call(200, 260, 11, 1)]))
    assert _seen(trace, 0) == [("cudaLaunchKernel", (200, 260), "cuda_runtime", None)]
    assert trace.facts["file"]["notes"] == [  # type: ignore[index]
        "the file does not say when its session began: its times count from there, not from 1970"
    ]


@pytest.mark.parametrize("table", ["RUNTIME", "KERNEL", "MEMCPY", "MEMSET", "NVTX_EVENTS", "StringIds"])
def test_any_of_the_tables_may_be_the_only_one(nsys: Write, table: str) -> None:
    assert len(load_nsys(nsys(**{table: []}))) == 0


def test_processes_that_use_the_same_correlation_ids_are_kept_apart(nsys: Write) -> None:
    other = (_PID + 1) << 24
    trace = load_nsys(
        nsys(
            StringIds=_TEXTS,
            RUNTIME=[_call(0, 10, 1, 1), _call(0, 20, 1, 1, thread=other | 5)],
            KERNEL=[_kernel(30, 40, 1), _kernel(50, 60, 1, process=other)],
        )
    )
    launch_of = {
        int(trace.start_ns[event]): int(trace.end_ns[trace.parent[event]])
        for event in trace.of_type(ActivityType.CONCURRENT_KERNEL)
    }
    assert launch_of == {30: 10, 50: 20}
    assert [trace.item("file correlation", event) for event in range(4)] == [1, 1, 1, 1]
    assert len({int(number) for number in trace.id}) == 2
    devices = [place for place in trace.places if place.kind is PlaceKind.DEVICE]
    assert [(place.label, place.id != devices[0].id) for place in devices] == [
        ("GPU 0", False),
        ("GPU 0 of process 4001", True),
    ]


def test_work_that_does_not_say_its_process_is_not_joined_to_a_guess(nsys: Write) -> None:
    other = (_PID + 1) << 24
    calls = [_call(0, 10, 1, 1), _call(0, 20, 1, 1, thread=other | 5)]
    trace = load_nsys(
        nsys(StringIds=_TEXTS, RUNTIME=calls, KERNEL=[(*_kernel(30, 40, 1)[:7], None, *_kernel(30, 40, 1)[8:])])
    )
    (kernel,) = trace.of_type(ActivityType.CONCURRENT_KERNEL)
    assert trace.parent[kernel] == -1


def test_a_range_without_end_is_marked(nsys: Write) -> None:
    trace = load_nsys(nsys(NVTX_EVENTS=[_range(0, None, "open"), _range(5, 90, "closed")]))
    assert _seen(trace, 0) == [
        ("open", (0, 90), "user_annotation", None),
        ("closed", (5, 90), "user_annotation", "open"),
    ]
    assert [trace.item("finished", int(trace.named(name)[0])) for name in ("open", "closed")] == [False, None]


def test_words_come_from_the_file_where_it_has_them(nsys: Write) -> None:
    path = nsys(
        ENUM_CUDA_MEMCPY_OPER=[(42, "CUDA_MEMCPY_KIND_UVM_DTOH", "Unified Device-to-Host")],
        ENUM_CUDA_MEM_KIND=[(9, "X", "Attic")],
        ENUM_NSYS_EVENT_TYPE=[(500, "NvtxPushPopRange", "x")],
        MEMCPY=[_work(0, 1, 1, 64, 42, 9, 77)],
        NVTX_EVENTS=[_range(0, 2, "renumbered", kind=500)],
    )
    assert [name for name, *_ in _seen(load_nsys(path), 0)] == ["Memcpy DtoH (Attic -> Unknown)", "renumbered"]


def test_wrong_values_are_counted_or_refused(nsys: Write) -> None:
    path = nsys(
        StringIds=[*_TEXTS, (10, b"\xff\xfe")],
        TARGET_INFO_SESSION_START_TIME=[("yesterday", None, None)],
        RUNTIME=[(1, "x", 0, _THREAD, 1, 1, 0, None), (2**63 - 1, 5, 0, _THREAD, 2, 1, 0, None), _call(0, 1, 3, 999)],
        NVTX_EVENTS=[(0, 2**63 - 1, 59, None, None, None, b"\xff", -5, 7, "no", None)],
        KERNEL=[_work(0, 1, 2, 2, 3, None, 32, *[2**63 - 1] * 6, 16, 48, None, process=-(2**63), stream=-(2**63))],
    )
    trace = load_nsys(path)
    assert [name for name, *_ in _seen(trace, 0)] == [
        "<text 999 is not in the file>",
        "void add<float>(float*, float*)",
    ]
    assert trace.facts["file"]["left_out"] == {  # type: ignore[index]
        "NVTX_EVENTS: a time that cannot be": 1,
        "CUPTI_ACTIVITY_KIND_RUNTIME: no integer where one must be": 1,
        "CUPTI_ACTIVITY_KIND_RUNTIME: a time that cannot be": 1,
    }


def test_a_damaged_database_is_refused_or_read_and_nothing_else(example: Path, tmp_path: Path) -> None:
    content = example.read_bytes()
    outcomes = set()
    for at in range(100, len(content), 509):
        path = tmp_path / "damaged.sqlite"
        path.write_bytes(content[:at] + bytes(byte ^ 0xA5 for byte in content[at : at + 24]) + content[at + 24 :])
        try:
            outcomes.add(type(load_nsys(path)))
        except TraceFileError:
            outcomes.add(TraceFileError)
    assert outcomes == {Trace, TraceFileError}


def test_a_truncated_database_is_refused(example: Path, tmp_path: Path) -> None:
    path = tmp_path / "half.sqlite"
    path.write_bytes(example.read_bytes()[:9000])
    with pytest.raises(TraceFileError, match="cannot be read as an Nsight Systems export"):
        load_nsys(path)


def test_an_nvprof_export_and_another_database_are_refused(write: Write) -> None:
    with pytest.raises(TraceFileError, match="use load_nvprof"):
        load_nsys(write({"StringTable": ("_id_ INTEGER, value TEXT", [])}))
    with pytest.raises(TraceFileError, match=r"expected a table among CUPTI_ACTIVITY_KIND_RUNTIME.*; found cats"):
        load_nsys(write({"cats": ("name TEXT", [])}))
