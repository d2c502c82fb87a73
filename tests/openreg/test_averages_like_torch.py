"""A training step on the simulated device: events and averages are torch's own, field by field, except where torch is wrong."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import torch
from simland import BOTH
from torch.profiler import profile, record_function

from devprof import analysis
from devprof.store import Trace
from devprof.torch import trace_of
from tests.cases.like_torch import GROUPINGS, averages_read, differing, events_read, unlike

Found = dict[str, list[tuple[str, Any, Any]]]


@pytest.fixture(scope="module")
def prof(_device: None) -> Any:
    """A training step; its backward ops run on a thread of torch's own."""
    torch.manual_seed(0)
    model = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True).to("openreg")
    optimizer = torch.optim.Adam(model.parameters())
    inputs = torch.randn(8, 16, 64).to("openreg")

    def step() -> None:
        with record_function("forward"):
            loss = model(inputs).pow(2).mean()
        with record_function("backward"):
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    step()
    with profile(activities=list(BOTH), record_shapes=True, profile_memory=True, with_flops=True) as prof:
        step()
        torch.openreg.synchronize()
    return prof


@pytest.fixture(scope="module")
def trace(prof: Any) -> Trace:
    return trace_of(prof)


def test_events_are_torchs_but_for_the_memory_of_other_threads_and_the_threads_of_spans(
    prof: Any, trace: Trace
) -> None:
    found: Found = differing(events_read(analysis.events(trace), trace), events_read(prof.events(), trace))
    # spans of ranges on the device belong to no thread; torch says the one that stopped the profile
    assert {(name, mine) for name, mine, _ in found.pop("thread")} == {
        ("forward", 0),
        ("backward", 0),
        ("Optimizer.step#Adam.step", 0),
    }
    # `backward` waits while another thread allocates and frees, and torch takes that for its own
    assert {name for differences in found.values() for name, _, _ in differences} <= {"backward"}
    assert found.keys() <= {
        "device_memory_usage",
        "self_device_memory_usage",
        "cpu_memory_usage",
        "self_cpu_memory_usage",
    }


@pytest.mark.parametrize(("by_shape", "by_stack", "by_overload"), GROUPINGS)
def test_averages_are_torchs_but_for_the_memory_of_other_threads(
    prof: Any, trace: Trace, by_shape: bool, by_stack: int, by_overload: bool
) -> None:
    mine = analysis.key_averages(trace, by_shape, by_stack, by_overload)
    found = differing(averages_read(mine), averages_read(prof.key_averages(by_shape, by_stack, by_overload)))
    assert {name for differences in found.values() for name, _, _ in differences} <= {"backward"}
    assert all(name.endswith("memory_usage") for name in found)


def test_every_byte_of_the_device_is_counted_once(trace: Trace) -> None:
    memory = trace.named("[memory]")
    on_device = trace.items["Device Type"].dense(len(trace))[memory] != 0
    reported = int(trace.items["Bytes"].dense(len(trace))[memory][on_device].sum())
    assert sum(one.self_device_memory_usage for one in analysis.events(trace)) == reported


def test_the_table_is_torchs(prof: Any, trace: Trace) -> None:
    asked: dict[str, Any] = {"sort_by": "self_cpu_time_total", "row_limit": 200}
    mine, theirs = analysis.key_averages(trace).table(**asked), prof.key_averages().table(**asked)
    assert unlike(mine, theirs, without="backward", in_order=False) == []


def test_launches_of_a_thread_that_torch_does_not_record_stay_on_that_thread() -> None:
    """torch puts them under whatever the thread that stops the profile did meanwhile, here under the range that waits."""
    done = threading.Event()

    def work() -> None:
        torch.ones(8, device="openreg").mul(2)
        done.set()

    def body() -> None:
        with record_function("waits"):
            worker = threading.Thread(target=work)
            worker.start()
            worker.join()

    with profile(activities=list(BOTH)) as prof:
        body()
        torch.openreg.synchronize()
    assert done.is_set()
    theirs = [one for one in prof.events() if one.activity_type == "privateuse1_runtime" and one.cpu_parent is not None]
    mine = [one for one in analysis.events(trace_of(prof)) if one.activity_type == "privateuse1_runtime"]
    assert {one.cpu_parent.name for one in theirs} == {"waits"}
    assert {one.cpu_parent for one in mine} == {None}
