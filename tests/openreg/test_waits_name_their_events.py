"""A wait for an event names the call that recorded it by the number which that call has in the trace, under both hosts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from openreg_sim.runtime import runtime

import devprof
from devprof.analysis.device_order import DeviceOrder
from devprof.store import Trace

RECORDED_BY = "wait_on_cuda_event_record_corr_id"


def two_streams() -> None:
    """A long kernel, and on another stream one that waits for it."""
    device, event = runtime(), runtime().event_create()
    side = device.create_stream(0)
    with devprof.record_function("range"):
        device.launch("long", flops=5e9)
        device.event_record(event)
        device.stream_wait_event(event, stream=side)
        device.launch("waits", flops=1e9, stream=side)
    device.device_synchronize()


@pytest.fixture(params=["python", "torch"])
def trace(request: Any, monkeypatch: pytest.MonkeyPatch) -> Trace:
    monkeypatch.setenv("DEVPROF_SYNC_EVENTS", "1")
    with devprof.profile(activities=["cpu", "openreg"], host=request.param) as prof:
        two_streams()
    found: Trace = prof.trace
    return found


def named(trace: Trace, name: str) -> int:
    (event,) = trace.named(name)
    return int(event)


def wait_for_the_event(trace: Trace) -> int:
    (found,) = (event for event in range(len(trace)) if trace.item(RECORDED_BY, event) is not None)
    return found


def test_a_wait_names_the_call_that_recorded_its_event(trace: Trace, tmp_path: Path) -> None:
    devprof.export.chrome_trace(trace, tmp_path / "t.json")
    for one in (trace, devprof.load(tmp_path / "t.json")):
        assert one.item(RECORDED_BY, wait_for_the_event(one)) == one.id[named(one, "orEventRecord")]


def test_what_the_critical_path_is_made_of_knows_what_the_other_stream_waited_for(trace: Trace) -> None:
    assert DeviceOrder(trace).waits == {named(trace, "waits"): [named(trace, "long")]}
