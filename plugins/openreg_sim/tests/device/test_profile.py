"""What torch's own profiler shows of the device: each op once, nothing of the numerics behind it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from openreg_sim.runtime.cost import kernel_of
from torch import nn
from torch.profiler import ProfilerActivity, profile

CLOCKS_DIFFER_NS = 1000
"""The profiler reads a counter and converts it to Unix time, with an error of some hundred nanoseconds."""

ONE_KERNEL: dict[str, Callable[[torch.Tensor], Any]] = {
    "aten::add": lambda x: x + x,
    "aten::mm": lambda x: torch.mm(x, x),
    "aten::exp": lambda x: x.exp(),
    "aten::add_": lambda x: x.add_(x),
    "aten::gelu": nn.functional.gelu,
    "aten::tanh": torch.tanh,
    "aten::_softmax": lambda x: torch.ops.aten._softmax(x, 1, False),
    "aten::sum": lambda x: x.sum(1),
    "aten::topk": lambda x: x.topk(2),
    "aten::cat": lambda x: torch.cat([x, x]),
    "aten::native_layer_norm": lambda x: torch.native_layer_norm(x, (4,), None, None, 1e-5),
    "aten::native_dropout": lambda x: torch.native_dropout(x, 0.5, True),
    "aten::_foreach_mul": lambda x: torch._foreach_mul([x, x], 2.0),
    "aten::native_batch_norm": lambda x: torch.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-5),
}


def _profile(call: Callable[[], Any], **options: Any) -> list[Any]:
    call()
    with profile(activities=[ProfilerActivity.CPU], **options) as prof:
        call()
    return [event for event in prof.events() if event.name.startswith(("aten::", "["))]


@pytest.mark.parametrize("name", ONE_KERNEL)
def test_operator_appears_once_and_launches_once(name: str, calls: Any) -> None:
    """An op is one event and one launch: neither its CPU kernel's ops nor a doubled outer op show."""
    x = torch.rand(4, 4, device="openreg")
    events = _profile(lambda: ONE_KERNEL[name](x))
    assert [event.name for event in events] == [name]
    assert calls.launches() == ["uniform_kernel", kernel_of(name), kernel_of(name)]


def test_convolution_is_one_launch_each_way(calls: Any) -> None:
    """A convolution and its backward are one kernel each, below the ops that every device has."""
    layer, x = nn.Conv2d(3, 4, 3).to("openreg"), torch.randn(2, 3, 8, 8, device="openreg", requires_grad=True)
    calls.clear()
    layer(x).backward(torch.ones(2, 4, 6, 6, device="openreg"))
    assert [name for name in calls.launches() if "conv" in name] == [
        "convolution_overrideable_kernel",
        "convolution_backward_overrideable_kernel",
    ]


def test_memory_events_are_the_devices_only() -> None:
    """An op shows the memory of its result, on the device; what the CPU kernel needs is not to be seen."""
    x = torch.rand(64, 64, device="openreg")
    events = _profile(lambda: torch.linalg.svd(x), profile_memory=True)
    assert (
        sum(event.self_device_memory_usage for event in events if event.name == "aten::_linalg_svd")
        == 2 * 64 * 64 * 4 + 256
    )
    assert {event.self_cpu_memory_usage for event in events} == {0}


def test_out_of_memory_is_an_event_of_the_profile() -> None:
    """The profiler is told before the error is raised."""
    x = torch.ones(1000, device="openreg")
    torch.openreg.set_memory_limit(torch.openreg.memory_allocated() + 100)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as prof, pytest.raises(torch.OutOfMemoryError):
        x.exp()
    assert "[OutOfMemory]" in [event.name for event in prof.events()]


def test_launch_lies_within_its_operator(calls: Any) -> None:
    """Host times of every launch of a training step lie within an op that launches such a kernel."""
    layer = nn.TransformerEncoderLayer(16, 2, 32, device="openreg")
    optimizer = torch.optim.Adam(layer.parameters())

    def step() -> None:
        layer(torch.randn(3, 2, 16, device="openreg")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    step()
    calls.clear()
    with profile(activities=[ProfilerActivity.CPU]) as prof:
        step()
    spans: dict[str, list[tuple[int, int]]] = {}
    for event in prof.profiler.kineto_results.events():
        spans.setdefault(kernel_of(event.name()), []).append((event.start_ns(), event.end_ns()))
    outside = [
        name
        for row, name in zip(calls.rows("LAUNCH"), calls.launches(), strict=True)
        if not any(
            start - CLOCKS_DIFFER_NS <= row["host_start_ns"] <= row["host_end_ns"] <= end + CLOCKS_DIFFER_NS
            for start, end in spans.get(name, [])
        )
    ]
    assert outside == []
    assert len(calls.launches()) > 60


def test_waiting_for_the_device_shows_no_frames_of_the_runtime() -> None:
    """With stacks, a wait is one frame of the device's, whatever the runtime does in it."""
    x = torch.ones(4, device="openreg")
    with profile(activities=[ProfilerActivity.CPU], with_stack=True) as prof:
        for _ in range(5):
            x.sum().item()
    names = [event.name() for event in prof.profiler.kineto_results.events()]
    assert names.count("aten::item") == 5
    frames: list[str] = []
    pending = list(prof.profiler.kineto_results.experimental_event_tree())
    while pending:
        event = pending.pop()
        pending.extend(event.children)
        frames.append(event.name)
    ours = [name.rpartition(": ")[2] for name in frames if "openreg_sim" in name and "_on_api_call" in name]
    others = [name for name in frames if "openreg_sim/runtime" in name]
    assert (len(ours), others) == (5, [])


def test_dispatch_modes_see_every_operator() -> None:
    """A mode of torch's, here the one that counts operations, works over the device."""
    from torch.utils.flop_counter import FlopCounterMode

    x = torch.ones(4, 8, device="openreg")
    with FlopCounterMode(display=False) as counter:
        x @ x.t()
    assert counter.get_total_flops() == 2 * 4 * 8 * 4
