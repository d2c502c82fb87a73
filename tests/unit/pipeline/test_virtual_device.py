"""The simulated device under a virtual clock, without torch: the trace is what the device says happened, to the nanosecond."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

pytest.importorskip("openreg_sim", reason="the simulated device is not installed")

import numpy as np
from openreg_sim import activity
from openreg_sim.activity import ExternalCorrelationKind
from openreg_sim.profiler import OpenRegProfiler
from openreg_sim.ring import CopyKind
from openreg_sim.runtime import Call, Runtime, RuntimeConfig, use_runtime

from devprof.capture import CaptureSession, LaneResult
from devprof.contract import SessionConfig
from devprof.host import HostRecording
from devprof.pipeline import assemble, known_ops, process, user_parents
from devprof.registry import PluginInfo, RegisteredProfiler
from devprof.store import Trace
from tests.unit.pipeline.recordings import AT_ZERO_NS, clock, op, recording, user

OPERATOR, USER = ExternalCorrelationKind.OPERATOR, ExternalCorrelationKind.USER
STEP, EMPTY_STEP = 1, 2
FIRST_OP, N_OPS = 10, 5
WORK = (Call.LAUNCH, Call.MEMCPY, Call.MEMSET)
START, END = AT_ZERO_NS, AT_ZERO_NS + 1_000


def host() -> HostRecording:
    """A step with some ops, and an empty one."""
    ops = [op(f"op {number}", 10, 20, FIRST_OP + number, STEP) for number in range(N_OPS)]
    return recording(user("step", 0, 100, STEP), *ops, user("empty step", 200, 300, EMPTY_STEP))


@contextmanager
def under(kind: ExternalCorrelationKind, id: int) -> Iterator[None]:
    activity.orActivityPushExternalCorrelationId(kind, id)
    yield
    activity.orActivityPopExternalCorrelationId(kind)


def do_something(runtime: Runtime, choose: random.Random) -> None:
    """One call, on one of two devices with two streams each."""
    device, stream = choose.randrange(2), choose.randrange(2)
    size = choose.randrange(10**6)
    match choose.randrange(4):
        case 0 | 1:
            runtime.launch(f"kernel {size % 3}", device=device, stream=stream, flops=size * 100)
        case 2:
            runtime.memcpy(CopyKind.HOST_TO_DEVICE, size, device=device, stream=stream)
        case 3:
            runtime.memset(size, device=device, stream=stream)


def run(runtime: Runtime, seed: int) -> None:
    """A step of random work: some under ops, some under the step alone."""
    choose = random.Random(seed)
    with under(USER, STEP):
        for number in range(N_OPS):
            with under(OPERATOR, FIRST_OP + number):
                for _ in range(choose.randrange(4)):
                    do_something(runtime, choose)
        with under(OPERATOR, STEP):
            do_something(runtime, choose)
    do_something(runtime, choose)


def captured(runtime: Runtime, seed: int) -> LaneResult:
    for device in range(2):
        runtime.create_stream(device)
    profiler = OpenRegProfiler()
    kinds = frozenset(profiler.available_activities())
    plugin = RegisteredProfiler("openreg", profiler, profiler.capabilities(), kinds, PluginInfo("openreg"))  # type: ignore[arg-type]
    # the ids are pushed by hand, as torch pushes them; devprof's own host would be asked
    session = CaptureSession([plugin], SessionConfig(host="torch", now_ns=lambda: START))
    session.prepare(kinds)
    session.start()
    run(runtime, seed)
    (result,) = session.stop(lambda _: True, START, END)
    assert session.finish().complaints() == []
    return result


def trace_of(result: LaneResult, recorded: HostRecording) -> Trace:
    lane = process(
        result,
        start_ns=START,
        end_ns=END,
        known_ops=known_ops(recorded),
        user_parents=user_parents(recorded),
        widened_by_ns=0,
    )
    return assemble(recorded, [lane], clock=clock(), window_start_ns=START, window_end_ns=END, pid=7)


@pytest.mark.parametrize("seed", range(5))
def test_all_device_work_is_there_at_its_exact_time_under_its_launch_and_its_range(seed: int) -> None:
    with use_runtime(Runtime(RuntimeConfig.virtual_clock())) as runtime:
        result = captured(runtime, seed)
        trace = trace_of(result, host())
        truth = [row for row in runtime.ground_truth() if Call(int(row["call"])) in WORK]
        names = [runtime.name_of(int(row["name"])) for row in truth]
    work = [int(event) for event in np.flatnonzero(trace.on_device & np.isin(trace.activity_type, [3, 4, 5]))]
    origin = min(int(row["start_ns"]) for row in truth)
    ours = min(int(trace.start_ns[event]) for event in work)

    def told(event: int) -> tuple[object, ...]:
        launch = int(trace.parent[event])
        above = int(trace.parent[launch])
        row = trace.rows[trace.row[event]]
        assert trace.id[launch] == trace.id[event]
        assert trace.linked[event] == (trace.id[above] if above >= 0 else 0)
        return (
            trace.name_of(event),
            trace.places[row.place].id,
            row.id,
            int(trace.start_ns[event]) - ours,
            int(trace.end_ns[event]) - ours,
            int(trace.linked[event]),
            int(trace.linked_user[event]),
        )

    happened = [
        (
            name,
            int(row["device"]),
            int(row["stream"]),
            int(row["start_ns"]) - origin,
            int(row["end_ns"]) - origin,
            int(row["op_id"]),
            int(row["user_id"]),
        )
        for name, row in zip(names, truth, strict=True)
    ]
    assert sorted(map(told, work)) == sorted(happened)
    assert result.ledger.clean
    assert (
        max(int(trace.end_ns[event]) for event in work) > END
    )  # the window is real time, and does not cut virtual work


def test_the_step_is_on_every_stream_that_it_used_from_its_first_to_its_last_work() -> None:
    with use_runtime(Runtime(RuntimeConfig.virtual_clock())) as runtime:
        trace = trace_of(captured(runtime, 3), host())
    spans = np.flatnonzero(trace.activity_type == 2)
    assert {trace.name_of(int(span)) for span in spans} == {"step"}
    under_it = np.flatnonzero((trace.linked_user == STEP) & np.isin(trace.activity_type, [3, 4, 5]))
    wanted = {
        row: (
            int(trace.start_ns[under_it[trace.row[under_it] == row]].min()),
            int(trace.end_ns[under_it[trace.row[under_it] == row]].max()),
        )
        for row in set(trace.row[under_it].tolist())
    }
    assert {int(trace.row[span]): (int(trace.start_ns[span]), int(trace.end_ns[span])) for span in spans} == wanted


def test_two_runs_give_the_same_device_records() -> None:
    traces = []
    for _ in range(2):
        with use_runtime(Runtime(RuntimeConfig.virtual_clock())) as runtime:
            traces.append(trace_of(captured(runtime, 4), host()))
    one, other = traces
    on_device = one.on_device
    for column in ("start_ns", "end_ns", "id", "linked", "linked_user", "row", "parent", "flow_id"):
        assert getattr(one, column)[on_device].tolist() == getattr(other, column)[on_device].tolist()
