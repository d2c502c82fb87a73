"""Records become columns with the names, keys and types that traces of CUDA devices have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from openreg_sim.activity import RECORD_DTYPE
from openreg_sim.decode import batches_of
from openreg_sim.ring import CopyKind
from openreg_sim.runtime import CostModel, DuplicateRecords, ReorderRecords, Runtime, RuntimeConfig, use_runtime

from devprof.model import ActivityType, GenericTraceActivity, MetadataKind

KERNEL, COPY, SET = ActivityType.CONCURRENT_KERNEL, ActivityType.GPU_MEMCPY, ActivityType.GPU_MEMSET
SYNC, LAUNCH = ActivityType.CUDA_SYNC, ActivityType.PRIVATEUSE1_RUNTIME


def _facts(records: list[GenericTraceActivity]) -> list[tuple[str, dict[str, Any]]]:
    return [(record.activity_name, dict(record.metadata)) for record in records]


def test_a_kernel_has_grid_and_block(virtual: Runtime, capture: Any) -> None:
    logger = capture(lambda: virtual.launch("k", grid=(3, 2, 1), block=(64, 1, 1)), KERNEL)
    assert _facts(logger.activities) == [("k", {"grid": (3, 2, 1), "block": (64, 1, 1)})]


def test_copies_and_sets_have_bytes_and_bandwidth(capture: Any) -> None:
    cost = CostModel(copy_fixed_ns=0, kernel_fixed_ns=0, bytes_per_s=4e9, copy_bytes_per_s=dict.fromkeys(CopyKind, 2e9))
    with use_runtime(Runtime(RuntimeConfig.virtual_clock(cost=cost))) as runtime:

        def work() -> None:
            for kind in (CopyKind.HOST_TO_DEVICE, CopyKind.DEVICE_TO_HOST, CopyKind.DEVICE_TO_DEVICE):
                runtime.memcpy(kind, 1_000)
            runtime.memset(1_000)
            runtime.memset(0)

        logger = capture(work, COPY, SET)
    assert _facts(logger.activities) == [
        ("Memcpy HtoD (Pageable -> Device)", {"bytes": 1_000, "memory bandwidth (GB/s)": 2.0}),
        ("Memcpy DtoH (Device -> Pageable)", {"bytes": 1_000, "memory bandwidth (GB/s)": 2.0}),
        ("Memcpy DtoD (Device -> Device)", {"bytes": 1_000, "memory bandwidth (GB/s)": 2.0}),
        ("Memset (Device)", {"bytes": 1_000, "memory bandwidth (GB/s)": 4.0}),
        ("Memset (Device)", {"bytes": 0}),
    ]


def test_a_copy_between_devices_says_from_where_to_where(virtual: Runtime, capture: Any) -> None:
    logger = capture(lambda: virtual.memcpy(CopyKind.PEER_TO_PEER, 10, device=1, peer=0), COPY)
    ((name, metadata),) = _facts(logger.activities)
    ends = {key: metadata[key] for key in ("fromDevice", "inDevice", "toDevice")}
    assert (name, ends) == (
        "Memcpy PtoP (Device -> Device)",
        {"fromDevice": 0, "inDevice": 1, "toDevice": 1},
    )


def test_waits_of_the_host_have_a_row_beside_the_streams(virtual: Runtime, capture: Any) -> None:
    def work() -> None:
        event, side = virtual.event_create(), virtual.create_stream()
        virtual.event_record(event)
        virtual.stream_wait_event(event, 0, side)
        virtual.event_synchronize(event)
        virtual.stream_synchronize(0, side)
        virtual.device_synchronize()

    records = capture(work, SYNC).activities
    assert [(record.activity_name, record.resource) for record in records] == [
        ("Stream Wait Event", 1),
        ("Event Sync", 1_000_000),
        ("Stream Sync", 1_000_001),
        ("Context Sync", 1_000_000),
    ]
    event = {"wait_on_stream": 0, "wait_on_cuda_event_id": 1 << 32, "wait_on_cuda_event_record_corr_id": 1}
    assert [dict(record.metadata) for record in records] == [
        {"cuda_sync_kind": "Stream Wait Event", **event},
        {"cuda_sync_kind": "Event Sync", **event},
        {"cuda_sync_kind": "Stream Sync"},
        {"cuda_sync_kind": "Context Sync"},
    ]


def test_launches_are_on_the_hosts_side_and_name_the_call(virtual: Runtime, capture: Any) -> None:
    def work() -> None:
        virtual.launch("k", device=1)
        virtual.event_record(virtual.event_create(), 1)
        virtual.free(virtual.allocate(1))

    records = capture(work, LAUNCH).activities
    assert [(r.activity_name, r.device, r.resource, dict(r.metadata)) for r in records] == [
        ("orLaunchKernel", 0, 0, {"cbid": 1}),
        ("orEventRecord", 0, 0, {"cbid": 4}),
        ("orMalloc", 0, 0, {"cbid": 10}),
        ("orFree", 0, 0, {"cbid": 11}),
    ]


def test_keys_that_devprof_writes_itself_are_left_to_it(virtual: Runtime, capture: Any) -> None:
    def work() -> None:
        virtual.launch("k")
        virtual.memcpy(CopyKind.PEER_TO_PEER, 1, peer=1)
        virtual.device_synchronize()

    keys = {key for record in capture(work).activities for key in record.metadata}
    assert keys.isdisjoint({"device", "stream", "correlation", "External id"})


def test_columns_have_one_type_each(virtual: Runtime, capture: Any) -> None:
    logger = capture(lambda: (virtual.launch("k"), virtual.memset(5), virtual.device_synchronize()))
    kinds = {key: column.kind for batch in logger.batches for key, column in batch.metadata.items()}
    assert kinds == {
        "cbid": MetadataKind.INT,
        "grid": MetadataKind.INT_LIST,
        "block": MetadataKind.INT_LIST,
        "bytes": MetadataKind.INT,
        "memory bandwidth (GB/s)": MetadataKind.FLOAT,
        "cuda_sync_kind": MetadataKind.STRING,
    }


@pytest.mark.parametrize("rule", [ReorderRecords(seed=3), DuplicateRecords(every=1)])
def test_ids_find_their_records_in_any_order_and_number(
    virtual: Runtime, configure: Any, process: Any, rule: Any
) -> None:
    session = configure(KERNEL)
    virtual.inject(rule)
    session.start()
    for number in range(1, 30):
        session.push_correlation_id(number)
        virtual.launch(f"k{number}")
        session.pop_correlation_id()
    session.stop()
    records = process(session).activities
    assert {(r.activity_name, r.linked) for r in records} == {(f"k{number}", number) for number in range(1, 30)}


def test_no_records_make_no_batches() -> None:
    assert list(batches_of(np.zeros(0, RECORD_DTYPE))) == []
