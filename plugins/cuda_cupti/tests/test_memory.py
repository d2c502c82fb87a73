"""Allocations and releases as torch's memory events: whose memory, how much, and how much there is after it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from cuda_cupti.decode import decode
from cuda_cupti.layouts import ActivityKind, expected
from cuda_cupti.memory import MemoryTotals
from cuda_cupti.output import ExternalKinds, to_batches
from hypothesis import given
from hypothesis import strategies as st

from devprof.model import ActivityType, GenericTraceActivity
from plugins.cuda_cupti.tests.golden_runs import golden_run
from plugins.cuda_cupti.tests.structs import VERSIONS, pack

MEMORY, RUNTIME, EXTERNAL = ActivityKind.MEMORY2, ActivityKind.RUNTIME, ActivityKind.EXTERNAL_CORRELATION
ALLOCATE, RELEASE = 1, 2
PINNED, DEVICE, ARRAY, MANAGED, OF_A_MODULE, MANAGED_OF_A_MODULE = 2, 3, 4, 5, 6, 7
TOTALS = ("Bytes", "Total Allocated", "Total Reserved")


def memory(operation: int, n_bytes: int, at_ns: int, release: str = "13.0", **fields: Any) -> bytes:
    given = {"memoryKind": DEVICE, "processId": 70, "address": 64, **fields}
    return pack(MEMORY, release, memoryOperationType=operation, bytes=n_bytes, timestamp=at_ns, **given)


def pool(n_bytes: int, address: int = 4096, kind: int = 1) -> tuple[int, ...]:
    """A pool of ``cudaMallocAsync``, as an operation's record describes it: type, address, threshold, size, used size."""
    return kind, address, 0, n_bytes, 0


def reports(
    *packed: bytes, totals: MemoryTotals | None = None, lost: dict[str, int] | None = None
) -> list[GenericTraceActivity]:
    records = decode(b"".join(packed), expected(VERSIONS["13.0"]), {}.get)
    output = to_batches([records], types=frozenset(), memory=totals or MemoryTotals())
    (lost if lost is not None else {}).update(output.lost)
    return [one for batch in output.batches for one in batch.activities()]


def items(found: Sequence[GenericTraceActivity], *keys: str) -> list[tuple[object, ...]]:
    return [tuple(one.metadata[key] for key in keys) for one in found]


def test_an_allocation_and_its_release_are_instants_of_torchs_name_and_keys() -> None:
    found = reports(memory(ALLOCATE, 512, 9, deviceId=1), memory(RELEASE, 512, 10, deviceId=1))
    assert [(one.activity_type, one.activity_name, one.start_ns, one.end_ns, one.id) for one in found] == [
        (ActivityType.CPU_INSTANT_EVENT, "[memory]", 9, 9, 0),
        (ActivityType.CPU_INSTANT_EVENT, "[memory]", 10, 10, 0),
    ]
    assert [dict(one.metadata) for one in found] == [
        {"Device Type": 1, "Device Id": 1, "Addr": 64, "Bytes": sign * 512, "Total Allocated": total,
         "Total Reserved": total, "Device": "cuda:1"} for sign, total in ((1, 512), (-1, 0))
    ]  # fmt: skip


def test_it_stands_on_the_thread_that_called_and_belongs_to_its_op() -> None:
    (found,) = reports(
        pack(RUNTIME, "13.0", cbid=20, start=5, end=9, threadId=77, correlationId=3),
        pack(EXTERNAL, "13.0", externalKind=5, externalId=11, correlationId=3),
        pack(EXTERNAL, "13.0", externalKind=4, externalId=22, correlationId=3),
        memory(ALLOCATE, 512, 6, correlationId=3),
    )
    assert (found.thread_id, found.linked, found.linked_user) == (77, 11, 22)


def test_without_its_call_it_stands_on_the_main_thread() -> None:
    (found,) = reports(memory(ALLOCATE, 512, 6, correlationId=3))
    assert (found.thread_id, found.linked) == (70, 0)


def test_each_device_and_the_pinned_memory_of_the_host_have_totals_of_their_own() -> None:
    kinds = [(DEVICE, 0), (DEVICE, 1), (PINNED, 0), (ARRAY, 0), (MANAGED, 1), (PINNED, 1)]
    found = reports(*(memory(ALLOCATE, 1 << n, n + 1, memoryKind=k, deviceId=d) for n, (k, d) in enumerate(kinds)))
    assert items(found, "Device", "Device Type", "Device Id", "Total Allocated") == [
        ("cuda:0", 1, 0, 1),
        ("cuda:1", 1, 1, 2),
        ("cpu:pinned", 0, -1, 4),
        ("cuda:0", 1, 0, 1 + 8),
        ("cuda:1", 1, 1, 2 + 16),
        ("cpu:pinned", 0, -1, 4 + 32),
    ]


@pytest.mark.parametrize("kind", [OF_A_MODULE, MANAGED_OF_A_MODULE])
def test_static_memory_of_modules_is_no_allocation(kind: int) -> None:
    assert reports(memory(ALLOCATE, 512, 9, memoryKind=kind)) == []


def test_totals_go_by_time_and_not_by_the_order_in_buffers() -> None:
    found = reports(memory(RELEASE, 100, 30), memory(ALLOCATE, 100, 10), memory(ALLOCATE, 7, 20))
    assert items(found, *TOTALS) == [(100, 100, 100), (7, 107, 107), (-100, 7, 7)]


def test_what_was_there_before_counts_where_it_is_released() -> None:
    found = reports(memory(ALLOCATE, 10, 1), memory(RELEASE, 300, 2), memory(ALLOCATE, 5, 3))
    assert items(found, "Total Allocated") == [(300,), (0,), (5,)]


def test_a_later_piece_goes_on_from_the_earlier() -> None:
    totals = MemoryTotals()
    reports(memory(ALLOCATE, 10, 1, memoryPoolConfig=pool(64)), totals=totals)
    found = reports(memory(ALLOCATE, 5, 2), memory(RELEASE, 15, 3), totals=totals)
    assert items(found, *TOTALS) == [(5, 15, 69), (-15, 0, 54)]


def test_a_pool_is_reserved_whole_and_only_the_programs_own() -> None:
    found = reports(
        memory(ALLOCATE, 100, 1),
        memory(ALLOCATE, 10, 2, memoryPoolConfig=pool(64)),
        memory(ALLOCATE, 20, 3, memoryPoolConfig=pool(32, address=8192)),
        memory(ALLOCATE, 30, 4, memoryPoolConfig=pool(128)),
        memory(ALLOCATE, 40, 5, memoryPoolConfig=pool(10**9, kind=2)),  # of another process: its id, no size
    )
    assert items(found, *TOTALS) == [
        (100, 100, 100),
        (10, 110, 164),
        (20, 130, 196),
        (30, 160, 260),
        (40, 200, 300),
    ]


def test_a_record_without_a_time_is_counted_and_not_shown() -> None:
    lost: dict[str, int] = {}
    assert reports(memory(ALLOCATE, 512, 0), memory(ALLOCATE, 512, 1 << 63), lost=lost) == []
    assert lost == {"CUPTI gave no start time": 1, "CUPTI's time is after the year 2262": 1}


def test_nobody_who_did_not_ask_gets_reports() -> None:
    records = decode(memory(ALLOCATE, 512, 9), expected(VERSIONS["13.0"]), {}.get)
    assert to_batches([records]).batches == ()


@given(st.lists(st.tuples(st.sampled_from([ALLOCATE, RELEASE]), st.integers(0, 2**40), st.integers(0, 2)), max_size=30))
def test_totals_are_never_negative_and_change_by_what_came_and_went(calls: list[tuple[int, int, int]]) -> None:
    found = reports(*(memory(o, n, at, deviceId=d) for at, (o, n, d) in enumerate(calls, 1)))
    for device in range(3):
        rows = items([one for one in found if one.metadata["Device Id"] == device], *TOTALS)
        sizes, allocated, reserved = np.array(rows, dtype=np.int64).reshape(-1, 3).T
        assert (allocated >= 0).all()
        assert (reserved >= allocated).all()
        assert np.diff(allocated).tolist() == sizes[1:].tolist()


@given(st.lists(st.binary(min_size=120, max_size=120), max_size=20))
def test_whatever_the_records_hold_there_is_a_report_for_each(bodies: list[bytes]) -> None:
    lost: dict[str, int] = {}
    totals, head = MemoryTotals(), int(MEMORY).to_bytes(4, "little")
    for _ in range(2):
        rows = [head + b"\1\0\0\0" + body for body in bodies]
        found = reports(*rows, memory(ALLOCATE, 5, 9), totals=totals, lost=lost)
    static = sum(body[0] in (OF_A_MODULE, MANAGED_OF_A_MODULE) and not any(body[1:4]) for body in bodies)
    assert len(found) + sum(lost.values()) == len(bodies) + 1 - static


def test_a_real_gpus_allocations_come_back_to_the_byte() -> None:
    run = golden_run("h200_cupy")
    output = to_batches(run.records(), {0: run.facts}, frozenset(), ExternalKinds(op=5, user=4), memory=MemoryTotals())
    found = [one for batch in output.batches for one in batch.activities()]
    assert items(found, "Device", *TOTALS) == [
        ("cuda:0", 4 << 20, 4 << 20, 4 << 20),
        ("cuda:0", 1 << 20, 5 << 20, 5 << 20),
        ("cuda:0", -(1 << 20), 4 << 20, 4 << 20),
    ]
    assert [one.linked for one in found] == [300, 0, 0]
    assert {one.thread_id for one in found} == {run.about["main_tid"]}
