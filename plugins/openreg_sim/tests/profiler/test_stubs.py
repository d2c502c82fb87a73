"""Events for torch's legacy profiler: queued at once, measured later, forgotten in the end."""

from __future__ import annotations

import sys
import types
from typing import Any

import numpy as np
import pytest
from openreg_sim.ring import RING_DTYPE, CallKind
from openreg_sim.runtime import CostModel, ErrorCode, OpenRegError, Runtime, RuntimeConfig, use_runtime
from openreg_sim.stubs import OpenRegStubs


@pytest.fixture
def stubs(virtual: Runtime, monkeypatch: pytest.MonkeyPatch) -> OpenRegStubs:
    monkeypatch.delitem(sys.modules, "openreg_sim.device", raising=False)
    return OpenRegStubs()


def test_elapsed_time_is_the_devices_in_microseconds(virtual: Runtime, stubs: OpenRegStubs) -> None:
    start = stubs.record()
    virtual.launch("k", flops=1e9)
    end = stubs.record()
    truth = virtual.ground_truth()
    assert stubs.elapsed(start, end) == (truth["end_ns"][2] - truth["end_ns"][0]) / 1e3
    assert stubs.elapsed(start, start) == 0.0


def test_recording_waits_for_nothing(virtual: Runtime, stubs: OpenRegStubs) -> None:
    virtual.launch("k", flops=1e15)
    before_ns = virtual.host_clock.now_ns()
    stubs.record()
    assert virtual.host_clock.now_ns() == before_ns + virtual.config.cost.call_ns


def test_an_event_goes_with_its_handle(virtual: Runtime, stubs: OpenRegStubs) -> None:
    event = stubs.record()
    number = event.id
    assert virtual.event_query(number)
    del event
    with pytest.raises(OpenRegError) as caught:
        virtual.event_query(number)
    assert caught.value.code is ErrorCode.INVALID_HANDLE


def test_marks_and_ranges_can_be_read_with_their_times(virtual: Runtime, stubs: OpenRegStubs) -> None:
    stubs.range_push("outer")
    stubs.range_push("inner")
    virtual.launch("k", flops=1e9)
    stubs.mark("here")
    stubs.range_pop()
    stubs.range_pop()
    stubs.range_pop()
    marks = stubs.marks()
    assert [(mark.kind, mark.name) for mark in marks] == [
        ("push", "outer"),
        ("push", "inner"),
        ("mark", "here"),
        ("pop", "inner"),
        ("pop", "outer"),
        ("pop", ""),
    ]
    assert stubs.elapsed(marks[1].event, marks[3].event) == stubs.elapsed(marks[1].event, marks[2].event) > 0


def test_each_device_is_current_during_its_visit_and_the_old_one_afterwards(
    virtual: Runtime, stubs: OpenRegStubs
) -> None:
    virtual.set_device(1)
    seen: list[tuple[int, int]] = []
    stubs.on_each_device(lambda device: seen.append((device, virtual.current_device())))
    with pytest.raises(ZeroDivisionError):
        stubs.on_each_device(lambda device: 1 // 0)
    assert (seen, virtual.current_device()) == ([(0, 0), (1, 1)], 1)


def test_synchronize_waits_for_the_current_device(virtual: Runtime, stubs: OpenRegStubs) -> None:
    virtual.launch("k", flops=1e12, device=1)
    virtual.set_device(1)
    stubs.synchronize()
    assert virtual.stream_query(1)
    assert stubs.enabled()


class _Library:
    """A native device, as far as it is called: it queues what is recorded, on device 1, stream 7."""

    def __init__(self) -> None:
        self.queue: list[tuple[int, int, int, int]] = []
        self.device = 1
        self.last_event = 0

    def orEventCreate(self) -> int:
        self.last_event += 1
        return self.last_event

    def orEventRecord(self, event: int, device: int, stream: int) -> None:
        self.queue.append((CallKind.EVENT_RECORD, event, device, stream))

    def orEventDestroy(self, event: int) -> None:
        self.queue.append((CallKind.EVENT_DESTROY, event, 0, 0))

    def orCurrentDevice(self) -> int:
        return self.device

    def orCurrentStream(self, device: int) -> int:
        return 7

    def orSetDevice(self, device: int) -> int:
        self.device = device
        return 0

    def drain_into(self, runtime: Runtime, host_ns: int) -> None:
        queue, self.queue = self.queue, []
        records = np.zeros(len(queue), RING_DTYPE)
        for record, (kind, event, device, stream) in zip(records, queue, strict=True):
            record["kind"], record["event"], record["device"], record["stream"] = kind, event, device, stream
            record["host_start_ns"] = record["host_end_ns"] = host_ns
        runtime.replay(records)


def test_with_the_native_device_events_go_through_its_ring(monkeypatch: pytest.MonkeyPatch) -> None:
    library = _Library()
    module: Any = types.ModuleType("openreg_sim.device")
    module.native = lambda: library
    monkeypatch.setitem(sys.modules, "openreg_sim.device", module)
    cost = CostModel(kernel_fixed_ns=0, flops_per_s=1e9, launch_latency_ns=0)
    with use_runtime(Runtime(RuntimeConfig.virtual_clock(cost=cost))) as runtime:
        runtime.set_drain(lambda: library.drain_into(runtime, 0))
        stubs = OpenRegStubs()
        start = stubs.record()
        end = stubs.record()
        assert (library.queue, len(runtime._submission.truth())) == (
            [(CallKind.EVENT_RECORD, 1, 1, 7), (CallKind.EVENT_RECORD, 2, 1, 7)],
            0,
        )
        assert stubs.elapsed(start, end) == cost.call_ns / 1e3
        assert library.queue == []
        seen: list[tuple[int, int]] = []
        stubs.on_each_device(lambda device: seen.append((device, library.device)))
        assert (seen, library.device) == ([(0, 0), (1, 1)], 1)
        del start, end
        assert library.queue == [(CallKind.EVENT_DESTROY, 1, 0, 0), (CallKind.EVENT_DESTROY, 2, 0, 0)]
