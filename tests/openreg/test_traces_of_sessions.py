"""`trace_of` on the simulated device: event by event what Kineto writes, and what the simulator says happened."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from simland import BOTH
from torch.profiler import profile, record_function

import devprof.torch
from devprof.model import ActivityType
from devprof.store import PlaceKind, Trace

sys.path.append(str(Path(__file__).parents[1] / "torch" / "support"))

from kineto_file import shown_by_file, shown_by_trace

WORK = (ActivityType.CONCURRENT_KERNEL, ActivityType.GPU_MEMCPY, ActivityType.GPU_MEMSET)


def a_training_step(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad()
    with record_function("forward"):
        loss = model(torch.ones(8, 16, device="openreg")).square().mean()
    with record_function("backward"):
        loss.backward()
    optimizer.step()


@pytest.fixture(scope="module")
def session(_device: None, tmp_path_factory: pytest.TempPathFactory) -> tuple[Trace, Path]:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4)).to("openreg")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    a_training_step(model, optimizer)
    torch.openreg.synchronize()
    with profile(activities=BOTH, record_shapes=True, profile_memory=True, with_stack=True) as prof:
        for _ in range(3):
            a_training_step(model, optimizer)
            prof.step()
    trace = devprof.torch.trace_of(prof)
    path = tmp_path_factory.mktemp("sink") / "kineto.json"
    prof.export_chrome_trace(str(path))
    return trace, path


def test_a_training_step_is_event_by_event_what_kineto_writes(session: tuple[Trace, Path]) -> None:
    given, expected = shown_by_trace(session[0]), shown_by_file(session[1])
    assert given.lines - expected.lines == {}
    assert expected.lines - given.lines == {}
    assert given.arrows == expected.arrows
    assert given.processes == expected.processes
    assert given.threads == expected.threads


def test_every_piece_of_device_work_leads_to_its_launch_and_to_the_op_that_launched_it(
    session: tuple[Trace, Path],
) -> None:
    trace, _ = session
    work = trace.of_type(*WORK)
    assert len(work) > 30
    launch = trace.parent[work]
    assert (trace.activity_type[launch] == ActivityType.PRIVATEUSE1_RUNTIME).all()
    assert (trace.id[launch] == trace.id[work]).all()
    assert (trace.start_ns[launch] <= trace.start_ns[work]).all()
    op = trace.parent[launch]
    assert (trace.activity_type[op] == ActivityType.CPU_OP).all()
    assert (trace.id[op] == trace.linked[work]).all()


def test_device_places_carry_the_backends_name_and_the_devices_properties(session: tuple[Trace, Path]) -> None:
    trace, _ = session
    devices = [place for place in trace.places if place.kind is PlaceKind.DEVICE]
    assert {place.backend for place in devices} == {"openreg"}
    assert {place.id for place in devices} <= set(range(torch.openreg.device_count()))
    assert all(place.name for place in devices)
    assert (trace.on_device == np.isin(trace.activity_type, [2, 3, 4, 5, 15])).all()


def test_device_totals_are_those_of_torchs_own_events() -> None:
    a = torch.ones(32, 32, device="openreg")
    torch.openreg.synchronize()
    with profile(activities=BOTH) as prof:
        for _ in range(5):
            a = a @ a
        a.to("cpu")
    trace = devprof.torch.trace_of(prof)
    work = trace.of_type(*WORK)
    own = [event for event in prof.events() if event.device_type == torch.autograd.DeviceType.PrivateUse1]
    assert sorted(trace.name_of(int(event)) for event in work) == sorted(event.name for event in own)
    assert sum(trace.duration_ns[work]) / 1000 == pytest.approx(sum(event.time_range.elapsed_us() for event in own))


def test_two_streams_and_two_devices_have_rows_of_their_own() -> None:
    side = torch.openreg.Stream()
    a, b = torch.ones(8, 8, device="openreg:0"), torch.ones(8, 8, device="openreg:1")
    torch.openreg.synchronize()
    with profile(activities=BOTH) as prof:
        a @ a
        with torch.openreg.stream(side):
            a @ a
        b @ b
    trace = devprof.torch.trace_of(prof)
    kernels = trace.of_type(ActivityType.CONCURRENT_KERNEL)
    rows = {(trace.places[trace.rows[row].place].id, trace.rows[row].id) for row in trace.row[kernels]}
    assert len(rows) == 3
    assert {device for device, _ in rows} == {0, 1}
