"""Streams, events and devices, through torch's generic classes and through `torch.openreg`."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import torch


def test_accelerator_is_the_device() -> None:
    """`torch.accelerator` finds the device, and counts, switches and waits through it."""
    assert (str(torch.accelerator.current_accelerator()), torch.accelerator.device_count()) == ("openreg", 2)
    torch.accelerator.set_device_index(1)
    assert (torch.openreg.current_device(), str(torch.ones(1, device="openreg").device)) == (1, "openreg:1")
    torch.accelerator.synchronize()
    assert torch.accelerator.current_stream() == torch.openreg.default_stream(1)
    assert torch.get_device_module("openreg") is torch.openreg


def test_device_contexts_nest_and_restore() -> None:
    """`torch.openreg.device` and `device_of` change the device within their block only."""
    on_one = torch.ones(1, device="openreg:1")
    with torch.openreg.device("openreg:1"):
        with torch.openreg.device(None), torch.openreg.device_of(torch.ones(1)):
            assert torch.openreg.current_device() == 1
        with torch.openreg.device(0):
            assert torch.openreg.current_device() == 0
            with torch.openreg.device_of(on_one):
                assert torch.openreg.current_device() == 1
        assert torch.openreg.current_device() == 1
    assert torch.openreg.current_device() == 0


@pytest.mark.parametrize("device", [2, "openreg:7", "cpu"])
def test_devices_that_do_not_exist_are_refused(device: int | str) -> None:
    """A wrong device is named, with what was expected."""
    with pytest.raises(ValueError, match="expected an"):
        torch.openreg.set_device(device)


def test_current_device_and_stream_belong_to_the_thread() -> None:
    """A new thread starts on device 0 and its default stream, whatever another thread has chosen."""
    torch.openreg.set_device(1)
    torch.openreg.set_stream(torch.openreg.Stream(1))
    seen: list[tuple[int, Any]] = []
    thread = threading.Thread(
        target=lambda: seen.append((torch.openreg.current_device(), torch.openreg.current_stream(1)))
    )
    thread.start()
    thread.join()
    assert seen == [(0, torch.openreg.default_stream(1))]


def test_work_goes_to_the_current_stream(calls: Any) -> None:
    """Each form of choosing a stream decides where work is queued, and only within its block."""
    x = torch.ones(4, device="openreg")
    first, second = torch.Stream(device="openreg"), torch.openreg.Stream()
    calls.clear()
    x.exp()
    with first:
        x.exp()
        with torch.openreg.stream(second):
            x.exp()
        x.exp()
    with torch.openreg.stream(None):
        x.exp()
    numbers = [0, first.stream_id, second.stream_id, first.stream_id, 0]
    assert calls.rows("LAUNCH")["stream"].tolist() == numbers
    assert len({0, first.stream_id, second.stream_id}) == 3


def test_streams_of_both_devices_are_chosen_apart(calls: Any) -> None:
    """Each device has its own current stream; choosing one for device 1 leaves device 0's."""
    x, y = torch.ones(4, device="openreg:0"), torch.ones(4, device="openreg:1")
    stream = torch.Stream(device="openreg:1")
    calls.clear()
    with stream:
        x.exp()
        y.exp()
    rows = calls.rows("LAUNCH")
    assert list(zip(rows["device"].tolist(), rows["stream"].tolist(), strict=True)) == [(0, 0), (1, stream.stream_id)]


def test_events_time_the_work_between_them(calls: Any) -> None:
    """The time between two events is the runtime's, in milliseconds; the second comes after the work between them."""
    x = torch.ones(1 << 20, device="openreg")
    start, end = torch.Event("openreg", enable_timing=True), torch.openreg.Event(enable_timing=True)
    calls.clear()
    start.record()
    x.exp()
    end.record()
    end.synchronize()
    first, last = calls.rows("EVENT_RECORD")
    (launch,) = calls.rows("LAUNCH")
    assert end.query()
    assert start.elapsed_time(end) == pytest.approx(int(last["end_ns"] - first["end_ns"]) / 1e6)
    assert first["end_ns"] <= launch["start_ns"] < launch["end_ns"] <= last["end_ns"]


def test_events_hold_up_other_streams(calls: Any) -> None:
    """Work of a stream that waits for an event starts after the work before the event, on another device too."""
    x, y = torch.ones(1 << 22, device="openreg:0"), torch.ones(4, device="openreg:1")
    side = torch.Stream(device="openreg:1")
    calls.clear()
    x.exp()
    event = torch.openreg.current_stream(0).record_event()
    side.wait_event(event)
    with side:
        y.exp()
    slow, held = calls.rows("LAUNCH")
    assert slow["end_ns"] <= held["start_ns"]


def test_streams_wait_for_each_other_and_can_be_asked(calls: Any) -> None:
    """`wait_stream`, `query` and `synchronize` of a stream; after a synchronize it is done."""
    x = torch.ones(1 << 22, device="openreg")
    side = torch.openreg.Stream()
    calls.clear()
    x.exp()
    side.wait_stream(torch.openreg.current_stream())
    with side:
        x.exp()
    side.synchronize()
    assert side.query()
    first, second = calls.rows("LAUNCH")
    assert first["end_ns"] <= second["start_ns"]
    assert calls.names()[-1] == "STREAM_SYNCHRONIZE"


def test_events_that_were_not_recorded_have_no_times() -> None:
    """Asking for the time to one is an error."""
    start, end = torch.Event("openreg", enable_timing=True), torch.Event("openreg", enable_timing=True)
    start.record()
    with pytest.raises(ValueError, match="must be recorded"):
        start.elapsed_time(end)


def test_synchronize_waits_until_the_work_is_done() -> None:
    """After a synchronize the host's clock has passed the end of all work, which was ahead of the host."""
    from openreg_sim.runtime import runtime

    x = torch.ones(1 << 22, device="openreg")
    for _ in range(200):
        x.zero_()
    torch.openreg.synchronize()
    assert runtime().now_ns() >= int(runtime().ground_truth()["end_ns"].max())


def test_reading_a_value_waits_for_the_device(calls: Any) -> None:
    """`item`, `equal` and operators with sizes that depend on data make the host wait, as on a real device."""
    x = torch.ones(4, device="openreg")
    calls.clear()
    x[0].item()
    assert calls.names() == ["MEMCPY", "STREAM_SYNCHRONIZE"]
    calls.clear()
    x.equal(x)
    x.nonzero()
    assert calls.names() == ["LAUNCH", "STREAM_SYNCHRONIZE"] * 2


def test_module_answers_what_generic_programs_ask() -> None:
    """The rest of the module's questions."""
    module = torch.openreg
    assert (module.is_available(), module.is_initialized(), module._is_in_bad_fork()) == (True, True, False)
    assert (module.get_amp_supported_dtype(), module.is_bf16_supported()) == ([torch.float16, torch.bfloat16], True)
    assert module.get_device_name(1) == "OpenReg simulated device 1"
    assert module.get_device_properties().total_memory == 16 << 30
    assert sorted(name for name in module.__all__ if not hasattr(module, name)) == []
    assert repr(torch.openreg.Stream(1)).startswith("torch.Stream device_type=openreg, device_index=1")
