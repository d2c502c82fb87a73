from __future__ import annotations

import struct
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from cuda_cupti.decode import Records, decode
from cuda_cupti.devices import DeviceFacts, devices_of
from cuda_cupti.layouts import expected
from cuda_cupti.memory import MemoryTotals
from cuda_cupti.output import TYPES, ExternalKinds, Output, to_batches
from hypothesis import given
from hypothesis import strategies as st

from devprof.link import join_launches
from devprof.model import ActivityType, GenericTraceActivity
from plugins.cuda_cupti.tests.structs import KINDS, VERSIONS, pack, struct_of

MEMCPY, MEMSET, DRIVER, RUNTIME, DEVICE, CONTEXT, KERNEL, OVERHEAD, MEMCPY2 = 1, 2, 4, 5, 8, 9, 10, 17, 22
EVENT, SYNC, EXTERNAL, MEMORY, GRAPH = 36, 38, 39, 49, 51
LAUNCH_KERNEL, GET_DEVICE, CU_LAUNCH_KERNEL, CU_MEMCPY_ASYNC, CU_CTX_GET_CURRENT = 211, 17, 307, 277, 304
NONE = 0xFFFFFFFF
TIMES = {"start": 100, "end": 300}
H200 = DeviceFacts(
    id=0,
    name="NVIDIA H200",
    compute_major=9,
    max_threads_per_block=1024,
    max_threads_per_multiprocessor=2048,
    max_blocks_per_multiprocessor=32,
    regs_per_block=65536,
    regs_per_multiprocessor=65536,
    shared_mem_per_block=49152,
    shared_mem_per_block_optin=232448,
    shared_mem_per_multiprocessor=233472,
    reserved_shared_mem_per_block=1024,
    num_sms=132,
)


def read(*packed: bytes, release: str = "13.0", names: Mapping[int, bytes] | None = None) -> Records:
    return decode(b"".join(packed), expected(VERSIONS[release]), (names or {}).get)


def made(*packed: bytes, release: str = "13.0", **arguments: Any) -> list[GenericTraceActivity]:
    return activities(to_batches([read(*packed, release=release)], **arguments))


def activities(output: Output) -> list[GenericTraceActivity]:
    return [activity for batch in output.batches for activity in batch.activities()]


def test_no_records_make_nothing() -> None:
    assert to_batches([]) == Output()


def test_a_kernel_carries_its_launch_its_op_its_user_range_and_its_thread_apart() -> None:
    call = pack(RUNTIME, "13.0", cbid=LAUNCH_KERNEL, threadId=77, correlationId=5, start=50, end=90)
    ids = [
        pack(EXTERNAL, "13.0", externalKind=k, externalId=i, correlationId=5) for k, i in ((5, 11), (4, 22), (3, 33))
    ]
    kernel = pack(KERNEL, "13.0", correlationId=5, deviceId=1, contextId=2, streamId=7, name=9, **TIMES)
    output = to_batches([read(kernel, names={9: b"_Z4axpyIfEvPT_S0_i"}), read(*ids, call)])
    work, launch = activities(output)
    assert (work.activity_name, work.start_ns, work.end_ns) == ("void axpy<float>(float*, float, int)", 100, 300)
    assert (work.id, work.linked, work.linked_user, work.thread_id) == (5, 11, 22, 77)
    assert (work.device, work.resource, work.flow) == (1, 7, None)
    assert (launch.id, launch.linked, launch.linked_user, launch.thread_id) == (5, 11, 22, 77)
    assert join_launches(output.batches).launch.tolist() == [1, -1]


def test_what_was_pushed_is_translated_by_the_session_that_pushed_it() -> None:
    ids = [pack(EXTERNAL, "13.0", externalKind=5, externalId=i, correlationId=c) for i, c in ((1000, 5), (2000, 6))]
    kernels = [pack(KERNEL, "13.0", correlationId=c, **TIMES) for c in (5, 6)]
    of_session = ExternalKinds(ids_of=lambda pushed: np.where(pushed < 1500, pushed + np.uint64(1), np.uint64(0)))
    assert [a.linked for a in made(*ids, *kernels, external=of_session)] == [1001, 0]


def test_an_external_id_beyond_63_bits_was_not_ours() -> None:
    pushed = pack(EXTERNAL, "13.0", externalKind=5, externalId=(1 << 64) - 1, correlationId=5)
    assert [a.linked for a in made(pushed, pack(KERNEL, "13.0", correlationId=5, **TIMES))] == [0]


def test_an_external_id_without_a_call_is_nothing() -> None:
    assert made(pack(EXTERNAL, "13.0", externalKind=5, externalId=1, correlationId=5)) == []


def test_correlation_0_joins_nothing() -> None:
    pushed = pack(EXTERNAL, "13.0", externalKind=5, externalId=9, correlationId=0)
    call = pack(RUNTIME, "13.0", cbid=LAUNCH_KERNEL, threadId=7, **TIMES)
    kernel, runtime = made(pushed, call, pack(KERNEL, "13.0", **TIMES))
    assert [(a.id, a.linked) for a in (kernel, runtime)] == [(0, 0), (0, 0)]
    assert kernel.thread_id == 0


@pytest.mark.parametrize(
    ("start", "end", "reason"),
    [
        (0, 0, "CUPTI gave no start time"),
        (0, 5, "CUPTI gave no start time"),
        (5, 0, "still running when it was flushed"),
        (9, 5, "CUPTI's times are not in order"),
        (5, 1 << 63, "CUPTI's time is after the year 2262"),
        ((1 << 64) - 1, 5, "CUPTI's time is after the year 2262"),
    ],
)
@pytest.mark.parametrize("kind", [MEMCPY, MEMSET, RUNTIME, KERNEL, OVERHEAD, MEMCPY2, SYNC, GRAPH])
def test_a_record_without_usable_times_is_counted_by_what_is_wrong(
    kind: int, start: int, end: int, reason: str
) -> None:
    output = to_batches([read(pack(kind, "13.0", start=start, end=end), pack(kind, "13.0", **TIMES))])
    assert ([a.start_ns for a in activities(output)], output.lost) == ([100], {reason: 1})


@pytest.mark.parametrize(("kind", "member"), [(EVENT, "deviceTimestamp"), (MEMORY, "timestamp")])
@pytest.mark.parametrize(
    ("at", "reason"), [(0, "CUPTI gave no start time"), ((1 << 64) - 1, "CUPTI's time is after the year 2262")]
)
def test_an_instant_without_a_usable_time_is_counted_by_what_is_wrong(
    kind: int, member: str, at: int, reason: str
) -> None:
    packed = [pack(kind, "13.0", **{member: one}) for one in (at, 40)]
    output = to_batches([read(*packed)], memory=MemoryTotals())
    assert ([a.start_ns for a in activities(output)], output.lost) == ([40], {reason: 1})


def test_noise_is_left_out_and_counted_as_kineto_does_unless_it_caused_something() -> None:
    noise = [
        pack(RUNTIME, "13.0", cbid=c, correlationId=i, **TIMES) for i, c in enumerate((10, 16, 17, 133, 134, 136), 1)
    ]
    queries = [pack(DRIVER, "13.0", cbid=CU_CTX_GET_CURRENT, correlationId=20, **TIMES)]
    cause = pack(RUNTIME, "13.0", cbid=GET_DEVICE, correlationId=30, **TIMES)
    output = to_batches([read(*noise, *queries, cause, pack(MEMSET, "13.0", correlationId=30, **TIMES))])
    assert ([a.activity_name for a in activities(output)], output.filtered) == (
        ["Memset (Unknown)", "cudaGetDevice"],
        7,
    )


def test_a_driver_call_that_puts_work_on_a_device_is_shown_where_no_call_of_the_runtime_stands_for_it() -> None:
    calls = [
        pack(DRIVER, "13.0", cbid=CU_MEMCPY_ASYNC, correlationId=1, **TIMES),
        pack(DRIVER, "13.0", cbid=CU_MEMCPY_ASYNC, correlationId=2, **TIMES),
        pack(RUNTIME, "13.0", cbid=41, correlationId=2, **TIMES),
        pack(DRIVER, "13.0", cbid=CU_MEMCPY_ASYNC, correlationId=3, **TIMES),
    ]
    copies = [pack(MEMCPY, "13.0", correlationId=i, copyKind=1, srcKind=2, dstKind=3, **TIMES) for i in (1, 2)]
    output = to_batches([read(*calls, *copies)])
    found = [(a.activity_type.label, a.activity_name, a.id) for a in activities(output)]
    assert found == [
        ("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 1),
        ("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 2),
        ("cuda_runtime", "cudaMemcpyAsync", 2),
        ("cuda_driver", "cuMemcpyHtoDAsync_v2", 1),
        ("cuda_driver", "cuMemcpyHtoDAsync_v2", 3),
    ]


def test_where_both_are_shown_the_runtimes_call_is_the_launch() -> None:
    runtime = pack(RUNTIME, "13.0", cbid=LAUNCH_KERNEL, correlationId=5, threadId=3, start=50, end=90)
    driver = pack(DRIVER, "13.0", cbid=CU_LAUNCH_KERNEL, correlationId=5, threadId=3, start=60, end=80)
    output = to_batches([read(driver, runtime, pack(KERNEL, "13.0", correlationId=5, **TIMES))])
    names = [a.activity_name for a in activities(output)]
    assert names == ["unnamed kernel", "cudaLaunchKernel", "cuLaunchKernel"]
    assert join_launches(output.batches).launch.tolist() == [1, -1, -1]


def test_a_call_with_an_unknown_number_is_shown_with_it() -> None:
    assert [a.activity_name for a in made(pack(RUNTIME, "13.0", cbid=54321, **TIMES))] == ["cbid_54321"]


def test_kernels_of_one_graph_launch_share_it_and_are_told_apart_by_their_node() -> None:
    call = pack(RUNTIME, "13.0", cbid=311, correlationId=5, start=50, end=90)
    nodes = [pack(KERNEL, "13.0", correlationId=5, graphId=2, graphNodeId=(2 << 32) + n, **TIMES) for n in range(3)]
    output = to_batches([read(*nodes, call)])
    assert [a.metadata.get("graph node id") for a in activities(output)] == [*((2 << 32) + n for n in range(3)), None]
    assert join_launches(output.batches).launch.tolist() == [3, 3, 3, -1]


def test_a_graph_that_was_recorded_as_a_whole_is_one_kernel() -> None:
    (graph,) = made(pack(GRAPH, "13.0", correlationId=5, deviceId=1, streamId=7, graphId=4, contextId=2, **TIMES))
    assert (graph.activity_type.label, graph.activity_name, graph.device, graph.resource) == (
        "kernel",
        "CUDA graph 4",
        1,
        7,
    )
    assert dict(graph.metadata) == {"context": 2, "graph id": 4}


def test_a_kernel_has_kinetos_args_in_kinetos_order() -> None:
    record = pack(
        KERNEL,
        "13.1",
        **TIMES,
        queued=7,
        contextId=3,
        registersPerThread=32,
        staticSharedMemory=1024,
        dynamicSharedMemory=4096,
        gridX=264,
        gridY=2,
        gridZ=1,
        blockX=128,
        blockY=2,
        blockZ=1,
        graphId=4,
        graphNodeId=5,
        priority=-3,
        channelID=6,
        channelType=1,
    )
    (kernel,) = made(record, release="13.1", devices={0: H200})
    assert list(kernel.metadata.items()) == [
        ("queued", 7),
        ("context", 3),
        ("registers per thread", 32),
        ("shared memory", 5120),
        ("blocks per SM", 4.0),
        ("warps per SM", 32.0),
        ("grid", (264, 2, 1)),
        ("block", (128, 2, 1)),
        ("est. achieved occupancy %", 50),
        ("graph id", 4),
        ("graph node id", 5),
        ("priority", -3),
        ("channel", 6),
        ("channel_type", 1),
    ]


def test_a_kernel_on_an_unknown_device_has_no_estimate() -> None:
    (kernel,) = made(pack(KERNEL, "13.0", gridX=1, gridY=1, gridZ=1, blockX=32, blockY=1, blockZ=1, **TIMES))
    assert set(kernel.metadata) == {"queued", "context", "registers per thread", "shared memory", "grid", "block"}


def test_a_copy_between_devices_says_between_which() -> None:
    places = {"deviceId": 1, "srcDeviceId": 1, "dstDeviceId": 2, "contextId": 4, "srcContextId": 4, "dstContextId": 5}
    (copy,) = made(
        pack(MEMCPY2, "13.0", correlationId=9, copyKind=10, srcKind=3, dstKind=3, bytes=400, **places, **TIMES)
    )
    assert (copy.activity_name, copy.id, copy.device) == ("Memcpy PtoP (Device -> Device)", 9, 1)
    assert list(copy.metadata.items()) == [
        *(("fromDevice", 1), ("inDevice", 1), ("toDevice", 2), ("fromContext", 4), ("inContext", 4), ("toContext", 5)),
        *(("bytes", 400), ("memory bandwidth (GB/s)", 2.0)),
    ]


def test_a_copy_that_took_no_time_has_no_bandwidth() -> None:
    (copy,) = made(pack(MEMCPY, "13.0", bytes=400, start=5, end=5))
    assert dict(copy.metadata) == {"context": 0, "bytes": 400}


def test_a_batch_of_copies_says_how_many() -> None:
    one, many = made(*(pack(MEMCPY, "13.0", copyCount=n, **TIMES) for n in (1, 8)))
    assert ("copy count" in one.metadata, many.metadata["copy count"]) == (False, 8)


@pytest.mark.parametrize(
    ("kinds", "name"),
    [((8, 3, 3), "Memcpy DtoD (Device -> Device)"), ((0, 0, 9), "Memcpy <unknown> (Unknown -> Unrecognized)")],
)
def test_copies_are_named_as_in_kineto(kinds: tuple[int, int, int], name: str) -> None:
    copy, source, target = kinds
    assert [
        a.activity_name for a in made(pack(MEMCPY, "13.0", copyKind=copy, srcKind=source, dstKind=target, **TIMES))
    ] == [name]


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (0, "Unknown Sync"),
        (1, "Event Sync"),
        (2, "Stream Wait Event"),
        (3, "Stream Sync"),
        (4, "Context Sync"),
        (9, "Unknown Sync"),
    ],
)
def test_waits_are_named_as_in_kineto(kind: int, name: str) -> None:
    (wait,) = made(pack(SYNC, "13.0", type=kind, streamId=7, **TIMES))
    assert (wait.activity_name, wait.metadata["cuda_sync_kind"], wait.metadata["stream"]) == (name, name, 7)
    assert wait.resource == 1_000_007


def test_a_wait_for_no_one_stream_stands_on_the_devices_row() -> None:
    output = to_batches([read(pack(SYNC, "13.0", type=4, streamId=NONE, cudaEventId=NONE, **TIMES))])
    (wait,) = activities(output)
    assert (wait.metadata["stream"], [(r.id, r.name) for r in output.resources]) == (-1, [(999_999, "device (sync)")])


def test_a_wait_is_on_the_device_that_any_record_gives_its_context() -> None:
    context = pack(CONTEXT, "13.0", contextId=1, deviceId=3)
    kernel = pack(KERNEL, "13.0", contextId=2, deviceId=5, **TIMES)
    waits = [pack(SYNC, "13.0", type=4, streamId=NONE, contextId=c, **TIMES) for c in (1, 2, 9)]
    assert [a.device for a in made(context, kernel, *waits) if a.activity_type is ActivityType.CUDA_SYNC] == [3, 5, 0]
    assert [a.device for a in made(context, *waits)] == [3, 3, 3]


def test_a_wait_finds_its_event_by_cuptis_number_before_anything_else() -> None:
    recordings = [
        pack(EVENT, "13.0", correlationId=10, contextId=1, eventId=4, streamId=7, cudaEventSyncId=1),
        pack(EVENT, "13.0", correlationId=20, contextId=1, eventId=4, streamId=8, cudaEventSyncId=2),
    ]
    wait = pack(
        SYNC, "13.0", type=2, correlationId=30, contextId=1, streamId=9, cudaEventId=4, cudaEventSyncId=1, **TIMES
    )
    (found,) = made(*recordings, wait)
    assert {key: value for key, value in found.metadata.items() if key.startswith("wait_on")} == {
        "wait_on_stream": 7,
        "wait_on_cuda_event_record_corr_id": 10,
        "wait_on_cuda_event_id": 4,
    }


@pytest.mark.parametrize(
    ("recorded", "waits_at", "found"),
    [
        ([10, 20, 40], 30, 20),
        ([40], 30, -1),
        ([0xFFFFFFF0, 8], 5, 0xFFFFFFF0),
        ([], 30, -1),
    ],
)
def test_without_a_number_a_wait_is_for_the_last_recording_before_it_also_where_the_counter_wraps(
    recorded: list[int], waits_at: int, found: int
) -> None:
    events = [pack(EVENT, "12.8", correlationId=c, contextId=1, eventId=4, cudaEventSyncId=NONE) for c in recorded]
    other = pack(EVENT, "12.8", correlationId=29, contextId=2, eventId=4, cudaEventSyncId=NONE)
    wait = pack(SYNC, "12.8", type=1, correlationId=waits_at, contextId=1, cudaEventId=4, cudaEventSyncId=NONE, **TIMES)
    (made_wait,) = made(*events, other, wait, release="12.8")
    assert made_wait.metadata["wait_on_cuda_event_record_corr_id"] == found


def _last_before_in_words(correlation: int, recorded: list[int]) -> int:
    distances = [((correlation - one) % (1 << 32), one) for one in recorded]
    distance, found = min(distances, default=(1 << 32, -1))
    return found if distance < 1 << 31 else -1


_CORRELATIONS = st.sampled_from([0, 1, 2, 3, 1 << 31, (1 << 31) + 1, NONE - 1, NONE]) | st.integers(0, NONE)
_PLACES = st.tuples(st.integers(0, 2), st.integers(0, 2), _CORRELATIONS)


@given(st.lists(_PLACES, max_size=12), st.lists(_PLACES, min_size=1, max_size=6))
def test_many_recordings_are_looked_up_as_one_would_by_hand(
    recorded: list[tuple[int, int, int]], wanted: list[tuple[int, int, int]]
) -> None:
    events = [pack(EVENT, "13.0", contextId=c, eventId=e, correlationId=i) for c, e, i in recorded]
    waits = [pack(SYNC, "13.0", type=1, contextId=c, cudaEventId=e, correlationId=i, **TIMES) for c, e, i in wanted]
    found = [one.metadata["wait_on_cuda_event_record_corr_id"] for one in made(*events, *waits)]
    assert found == [
        _last_before_in_words(i, [at for context, event, at in recorded if (context, event) == (c, e)])
        for c, e, i in wanted
    ]


@pytest.mark.parametrize("number", [0, 10**9])
def test_waits_whose_number_no_recording_has_are_joined_in_time(number: int) -> None:
    n = 20_000
    events = [pack(EVENT, "13.0", eventId=3, correlationId=2 * i + 1, cudaEventSyncId=0) for i in range(n)]
    wait = {"type": 1, "cudaEventId": 3, "cudaEventSyncId": number, **TIMES}
    waits = [pack(SYNC, "13.0", correlationId=2 * i + 2, **wait) for i in range(n)]
    records = read(*events, *waits)
    began = time.perf_counter()
    output = to_batches([records], types={ActivityType.CUDA_SYNC})
    took_s = time.perf_counter() - began
    (batch,) = output.batches
    joined = batch.metadata["wait_on_cuda_event_record_corr_id"].values
    assert joined.tolist() == [2 * i + 1 for i in range(n)]
    assert took_s < 5, "20,000 waits take 20 ms; pair by pair they take a minute"


def test_a_device_that_no_record_can_hold_costs_its_own_record_alone() -> None:
    bad = pack(EVENT, "13.0", deviceTimestamp=40, deviceId=NONE, contextId=5, correlationId=7)
    wait = pack(SYNC, "13.0", type=4, contextId=5, **TIMES)
    kernel = pack(KERNEL, "13.0", deviceId=1, contextId=2, **TIMES)
    found = made(bad, wait, kernel)
    assert [(a.activity_type.label, a.device) for a in found] == [("kernel", 1), ("cuda_sync", 1), ("cuda_event", -1)]


@pytest.mark.parametrize(
    ("maker", "kind", "name"),
    [
        ("kernels", KERNEL, "CONCURRENT_KERNEL"),
        ("runtime_calls", RUNTIME, "RUNTIME"),
        ("memory_reports", MEMORY, "MEMORY2"),
    ],
)
def test_where_one_kind_cannot_be_converted_its_records_are_lost_by_number_and_no_others(
    maker: str, kind: int, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ValueError("no such value")

    monkeypatch.setattr(f"cuda_cupti.output.{maker}", broken)
    others = {KERNEL, RUNTIME, MEMORY, MEMSET} - {kind}
    packed = [pack(one, "13.0", timestamp=5) if one == MEMORY else pack(one, "13.0", **TIMES) for one in others]
    of_kind = [pack(kind, "13.0", **({"timestamp": 5} if kind == MEMORY else TIMES)) for _ in range(3)]
    output = to_batches([read(*packed, *of_kind)], memory=MemoryTotals())
    assert sum(map(len, output.batches)) == 3
    assert output.lost == {f"{name} records that cannot be converted (ValueError('no such value'))": 3}


def test_events_of_80_bytes_do_not_lose_the_buffer() -> None:
    events = [pack(EVENT, "13.5", correlationId=i, streamId=7, eventId=i, deviceTimestamp=100 + i) for i in (1, 2)]
    found = made(*events, pack(KERNEL, "13.5", **TIMES), release="13.5")
    assert [(a.activity_name, a.start_ns, a.end_ns) for a in found] == [
        ("unnamed kernel", 100, 300),
        ("cudaEvent", 101, 102),
        ("cudaEvent", 102, 103),
    ]


def test_overheads_are_named_and_on_their_thread() -> None:
    rows = [
        pack(OVERHEAD, "13.0", overheadKind=7 << 16, objectKind=2, objectId=(41, 42, 0), **TIMES),
        pack(OVERHEAD, "13.0", overheadKind=99, objectKind=3, objectId=(1, 2, 3), **TIMES),
    ]
    assert [(a.activity_name, a.thread_id) for a in made(*rows)] == [
        ("Activity Buffer Request", 42),
        ("Unrecognized", 0),
    ]


@pytest.mark.parametrize("kind", TYPES)
def test_only_what_was_asked_for_is_handed_over(kind: ActivityType) -> None:
    everything = [
        pack(k, "13.0", **({"deviceTimestamp": 5} if k == EVENT else {"timestamp": 5} if k == MEMORY else TIMES))
        for k in (MEMCPY, MEMCPY2, MEMSET, RUNTIME, KERNEL, OVERHEAD, EVENT, SYNC, MEMORY, GRAPH)
    ]  # of memory only where totals are given
    driver = pack(DRIVER, "13.0", cbid=CU_LAUNCH_KERNEL, **TIMES)
    assert {a.activity_type for a in made(*everything, driver, types={kind})} == {kind}
    assert {a.activity_type for a in made(*everything, driver)} == TYPES


def test_a_device_record_says_what_the_device_is() -> None:
    record = pack(
        DEVICE,
        "13.0",
        id=1,
        name=8,
        globalMemorySize=1 << 37,
        numMultiprocessors=132,
        numThreadsPerWarp=32,
        maxWarpsPerMultiprocessor=64,
        maxBlocksPerMultiprocessor=32,
        maxSharedMemoryPerMultiprocessor=233472,
        maxRegistersPerMultiprocessor=65536,
        maxRegistersPerBlock=65536,
        maxSharedMemoryPerBlock=49152,
        maxThreadsPerBlock=1024,
        computeCapabilityMajor=9,
        uuid=tuple(range(16)),
    )
    records = read(record, names={8: b"NVIDIA H200"})
    facts = devices_of(records)[1]
    assert (facts.name, facts.uuid) == ("NVIDIA H200", "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f")
    assert (facts.max_threads_per_multiprocessor, facts.num_sms, facts.total_global_mem) == (2048, 132, 1 << 37)
    output = to_batches([records])
    assert [(d.id, d.name) for d in output.devices] == [(1, "NVIDIA H200")]
    assert output.properties == (facts.properties(),)


def test_what_the_caller_knows_of_a_device_goes_before_its_record() -> None:
    output = to_batches([read(pack(DEVICE, "13.0", id=0))], {0: H200})
    assert output.properties == (H200.properties(),)


@given(
    st.sampled_from(list(VERSIONS)),
    st.lists(st.tuples(st.sampled_from(list(KINDS)), st.binary(max_size=244)), max_size=12),
)
def test_whatever_the_records_say_batches_come_out_and_every_record_is_accounted_for(
    release: str, parts: list[tuple[int, bytes]]
) -> None:
    layout = expected(VERSIONS[release])
    raw = b""
    for kind, body in parts:
        if struct_of(kind, release):
            raw += struct.pack("<I", kind) + body.ljust(248, b"\xab")[: layout.strides[kind] - 4]
    records = decode(raw, layout, lambda pointer: b"\xff_Z1" + bytes([pointer % 256]))
    output = to_batches([records], dict.fromkeys((0, 2880154539), H200), memory=MemoryTotals())
    modules = sum(int(np.isin(rows["memoryKind"], (6, 7)).sum()) for kind, rows in records.of.items() if kind == MEMORY)
    shown_kinds = {MEMCPY, MEMCPY2, MEMSET, DRIVER, RUNTIME, KERNEL, 3, OVERHEAD, EVENT, SYNC, MEMORY, GRAPH}
    given_in = sum(len(rows) for kind, rows in records.of.items() if kind in shown_kinds)
    shown = sum(map(len, output.batches))
    assert shown + sum(output.lost.values()) + output.filtered + modules == given_in
