"""Calls that the native device queued become the same work as calls made here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from openreg_sim.ring import RING_DTYPE, CallKind, CopyKind
from openreg_sim.runtime import Call, CostModel, Runtime, RuntimeConfig

T = 1_700_000_000_000_000_000
Ring = Callable[..., np.ndarray]


@pytest.fixture
def real(hand_clock: Any) -> Runtime:
    cost = CostModel(flops_per_s=1e9, bytes_per_s=1e30, kernel_fixed_ns=0, launch_latency_ns=10)
    return Runtime(RuntimeConfig(cost=cost), hand_clock.clock())


def test_a_queued_launch_keeps_its_own_times_thread_and_ids(real: Runtime, ring: Ring) -> None:
    real.set_names(lambda number: f"aten::op{number}_.out", lambda number: [("float32", (number,))])
    real.replay(
        ring(
            host_start_ns=T,
            host_end_ns=T + 5,
            thread_id=77,
            op_id=11,
            user_id=22,
            name=3,
            signature=4_000,
            device=1,
            stream=6,
        )
    )
    (row,) = real.ground_truth()
    names = ("call", "host_start_ns", "host_end_ns", "thread_id", "op_id", "user_id", "device", "stream")
    assert tuple(int(row[name]) for name in names) == (Call.LAUNCH, T, T + 5, 77, 11, 22, 1, 6)
    assert (int(row["start_ns"]), int(row["end_ns"])) == (T + 10, T + 10 + 4_000)
    assert real.name_of(int(row["name"])) == "op3_kernel"
    assert real.streams() == [(0, 0, 0), (1, 0, 0), (1, 6, 0)]


def test_names_and_signatures_are_asked_for_once(real: Runtime, ring: Ring) -> None:
    asked: list[Any] = []
    real.set_names(lambda n: asked.append(("name", n)) or "k", lambda n: asked.append(("signature", n)) or ())
    real.replay(ring(5, name=1, signature=2))
    real.replay(ring(5, name=1, signature=2))
    assert asked == [("name", 1), ("signature", 2)]


def test_queued_calls_are_processed_in_order(real: Runtime, ring: Ring, truth_columns: Any) -> None:
    records = ring(8, host_start_ns=T, host_end_ns=T + 1)
    records["kind"][[1, 2, 3, 4, 5]] = [
        CallKind.EVENT_RECORD,
        CallKind.STREAM_WAIT_EVENT,
        CallKind.MEMCPY,
        CallKind.EVENT_DESTROY,
        CallKind.MEMSET,
    ]
    records["event"][[1, 2, 4]] = 9
    records["device"][[2, 3]] = 1
    records["copy_kind"][3], records["peer"][3] = CopyKind.PEER_TO_PEER, 0
    records["bytes"][[3, 5]] = [25_000, 1_000]
    real.set_names(lambda n: "k", lambda n: [("float32", (10**6,))])
    real.replay(records)
    end = T + 10 + 10**6
    copied = end + 3_000 + 1_000
    assert truth_columns(real, "call", "device", "start_ns", "end_ns") == [
        (Call.LAUNCH, 0, T + 10, end),
        (Call.EVENT_RECORD, 0, end, end),
        (Call.STREAM_WAIT_EVENT, 1, T, end),
        (Call.MEMCPY, 1, end, copied),
        (Call.MEMSET, 0, end, end + 1),
        (Call.LAUNCH, 0, end + 1, end + 1 + 10**6),
        (Call.LAUNCH, 0, end + 1 + 10**6, end + 1 + 2 * 10**6),
    ]


def test_in_virtual_time_the_queued_times_do_not_count(virtual: Runtime, ring: Ring, truth_columns: Any) -> None:
    virtual.replay(ring(2, host_start_ns=[T, T + 999], host_end_ns=[T + 5, T + 9_999]))
    cost_ns, t0 = virtual.config.cost.call_ns, 1_000_000_000
    assert truth_columns(virtual, "host_start_ns", "host_end_ns") == [
        (t0, t0 + cost_ns),
        (t0 + cost_ns, t0 + 2 * cost_ns),
    ]


def test_every_answer_brings_in_what_is_queued_first(real: Runtime, ring: Ring) -> None:
    answers: dict[str, Callable[[], object]] = {
        "stream_query": real.stream_query,
        "stream_synchronize": real.stream_synchronize,
        "device_synchronize": real.device_synchronize,
        "event_query": lambda: real.event_query(1),
        "event_synchronize": lambda: real.event_synchronize(1),
        "ground_truth": real.ground_truth,
        "streams": real.streams,
    }
    drained: list[str] = []
    for name, answer in answers.items():
        real.set_drain(lambda name=name: drained.append(name))
        answer()
    assert drained == list(answers)


def test_elapsed_time_of_queued_events(real: Runtime, ring: Ring) -> None:
    records = ring(3, host_start_ns=T, host_end_ns=T, event=[1, 0, 2])
    records["kind"] = [CallKind.EVENT_RECORD, CallKind.LAUNCH, CallKind.EVENT_RECORD]
    real.set_names(lambda n: "k", lambda n: [("float32", (5_000_000,))])
    real.replay(records)
    real.event_synchronize(2)
    assert real.event_elapsed_ms(1, 2) == (5_000_000 + 10) / 1e6


def test_a_record_of_no_known_kind_is_refused_by_name(virtual: Runtime, ring: Ring) -> None:
    with pytest.raises(ValueError, match="ring record of unknown kind 99"):
        virtual.replay(ring(1, kind=99))


def test_a_ring_record_has_eighty_bytes() -> None:
    assert RING_DTYPE.itemsize == 80
