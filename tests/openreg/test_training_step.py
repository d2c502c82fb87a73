"""A transformer's training step under a schedule: every record of every cycle belongs where it says.

Forward on the main thread, backward on the threads that autograd keeps for each device, Adam on the main thread again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import simland
import torch
from openreg_sim.runtime import runtime
from openreg_sim.runtime.cost import kernel_of
from simland import LONG_KERNEL, Did, Session, device_events, host_events, listed_work
from torch.autograd.profiler_util import _format_time
from torch.profiler import record_function, schedule

import devprof
from devprof.torch.verify import verify

PHASES = ["wait", "warm-up", "active", "active"] * 2 + ["after"]
STEPS_OF_CYCLE = [["ProfilerStep#2", "ProfilerStep#3"], ["ProfilerStep#6", "ProfilerStep#7"]]


class Cycles(NamedTuple):
    """Two cycles of a schedule.

    Attributes:
        sessions: each cycle as it was when its trace was ready.
        did: every call of the devices over all steps, recorded or not.
    """

    sessions: list[Session]
    did: list[Did]


class Kept:
    """What torch listed at the end of a cycle; it keeps only the latest."""

    def __init__(self, prof: Any) -> None:
        self._events, self._averages = prof.events(), prof.key_averages()

    def events(self) -> Any:
        return self._events

    def key_averages(self) -> Any:
        return self._averages


def step_of_a_model() -> Callable[[], None]:
    """Return a training step that has run once."""
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
    return step


@pytest.fixture(scope="module")
def cycles(_device: None, tmp_path_factory: pytest.TempPathFactory) -> Cycles:
    """Train for nine steps. In each warm-up a long kernel is launched that still runs when recording starts."""
    folder = tmp_path_factory.mktemp("training")
    step = step_of_a_model()
    torch.openreg.synchronize()
    sessions: list[Session] = []

    def ready(prof: Any) -> None:
        trace = simland.exported(prof, folder)
        sessions.append(Session(Kept(prof), trace, devprof.report_of(prof), [], []))

    runtime().forget_truth()
    plan = schedule(wait=1, warmup=1, active=2, repeat=2)
    with simland.profile(schedule=plan, on_trace_ready=ready) as prof:
        for phase in PHASES:
            step()
            if phase == "warm-up":
                simland.long_kernel(0)
            prof.step()
    did = simland.truth(recorded=False)
    for session in sessions:
        window = range(session.report.start_ns, session.report.end_ns + 1)
        session.did = [one for one in did if one.kinds and one.host_start_ns in window]
    return Cycles(sessions, did)


@pytest.fixture(params=[0, 1], ids=["first cycle", "second cycle"])
def session(request: pytest.FixtureRequest, cycles: Cycles) -> Session:
    return cycles.sessions[request.param]


def test_there_is_one_whole_trace_per_cycle_with_its_active_steps_and_no_other(cycles: Cycles) -> None:
    assert [steps_in(session) for session in cycles.sessions] == STEPS_OF_CYCLE
    assert [session.report.clean for session in cycles.sessions] == [True, True]


def steps_in(session: Session) -> list[str]:
    return sorted(one.name for one in session.trace.ranges().values() if one.name.startswith("ProfilerStep"))


def test_the_trace_tells_what_the_simulator_did(session: Session) -> None:
    """Names, streams, order, times, ops, launches and user ranges; see `simland.disagreements`."""
    assert len(session.worked) > 100
    assert simland.disagreements(session) == []


def test_what_was_recorded_is_in_one_of_the_two_traces(cycles: Cycles) -> None:
    """So the plugin recorded in the active steps only: nothing had to be left out."""
    recorded = [one for one in cycles.did if one.kinds]
    assert recorded == [one for session in cycles.sessions for one in session.did]
    assert [session.ledger.dropped for session in cycles.sessions] == [{}, {}]


def test_a_kernel_of_the_warm_up_that_runs_on_is_not_in_the_trace(cycles: Cycles, session: Session) -> None:
    (long,) = (
        one for one in cycles.did if one.name == LONG_KERNEL and one.start_ns < session.report.start_ns < one.end_ns
    )
    assert long.kinds == 0
    assert LONG_KERNEL not in [one.name for one in session.trace.work()]
    # it held the stream up, and so is known to have run
    assert min(one.start_ns for one in session.worked) == long.end_ns


def test_every_record_belongs_to_the_op_that_launched_it(session: Session) -> None:
    """Kernels are named after their op, copies and sets are those of two ops."""
    ops = session.trace.ops()
    of_moves = {"Memset (Device)": "aten::zero_", "Memcpy DtoD (Device -> Device)": "aten::copy_"}
    told = [(one.name, ops[one.op_id].name) for one in session.trace.work()]
    assert told == [(name if name in of_moves else kernel_of(op), of_moves.get(name, op)) for name, op in told]
    assert (session.ledger.device_work, session.ledger.linked) == (len(told), len(told))


def test_backward_runs_on_a_thread_of_its_own_and_its_work_belongs_to_its_ops(session: Session) -> None:
    ops, calls = session.trace.ops(), {one.launch: one for one in session.trace.launches()}
    main = {one.tid for one in session.trace.ranges().values()}
    elsewhere = [one for one in session.trace.work() if calls[one.launch].tid not in main]
    assert len(main) == 1
    assert len({calls[one.launch].tid for one in elsewhere}) == 1
    assert [ops[one.op_id].tid for one in elsewhere] == [calls[one.launch].tid for one in elsewhere]
    assert {"aten::native_layer_norm_backward", "aten::_softmax_backward_data", "aten::threshold_backward"} <= {
        ops[one.op_id].name for one in elsewhere
    }
    on_main = {"aten::_foreach_addcdiv_", "aten::native_layer_norm"}
    assert {ops[one.op_id].name for one in elsewhere} & on_main == set()


def test_torch_shows_backwards_work_under_the_backward_nodes(session: Session) -> None:
    owners = {
        kernel.name: _outermost(event).name
        for event in host_events(session.prof)
        for kernel in event.kernels
        if kernel.name in ("native_layer_norm_backward_kernel", "threshold_backward_kernel")
    }
    assert owners == {
        "native_layer_norm_backward_kernel": "autograd::engine::evaluate_function: NativeLayerNormBackward0",
        "threshold_backward_kernel": "autograd::engine::evaluate_function: ReluBackward0",
    }


def _outermost(event: Any) -> Any:
    while event.cpu_parent is not None:
        event = event.cpu_parent
    return event


def test_arrows_lead_from_forward_ops_to_their_backward_nodes(session: Session) -> None:
    starts, finishes = session.trace.arrow_ends("fwdbwd", "s"), session.trace.arrow_ends("fwdbwd", "f")
    assert starts.keys() == finishes.keys()
    assert {len(ends) for ends in (*starts.values(), *finishes.values())} == {1}
    at = {(one.tid, one.start_ns, one.args.get("Sequence number")): one for one in session.trace.ops().values()}
    pairs = set()
    for arrow, (start,) in starts.items():
        (finish,) = finishes[arrow]
        (number,) = _numbers_at(at, session, start) & _numbers_at(at, session, finish)
        forward = at[start["tid"], session.trace.ns(start["ts"]), number]
        backward = at[finish["tid"], session.trace.ns(finish["ts"]), number]
        assert forward.start_ns < backward.start_ns
        assert forward.tid != backward.tid
        pairs.add((forward.name, backward.name))
    assert {
        ("aten::native_layer_norm", "NativeLayerNormBackward0"),
        ("aten::addmm", "AddmmBackward0"),
        ("aten::relu", "ReluBackward0"),
        ("aten::mean", "MeanBackward0"),
    } <= pairs


def _numbers_at(at: Any, session: Session, end: Any) -> set[int]:
    return {number for tid, start_ns, number in at if (tid, start_ns) == (end["tid"], session.trace.ns(end["ts"]))}


def test_each_range_with_work_is_on_its_stream_once_and_the_others_are_not(session: Session) -> None:
    """The ranges' extents are compared in `simland.disagreements`; backward's holds what its own thread launched."""
    on_device = [(one.op_id, one.name, one.row) for one in session.trace.slices("gpu_user_annotation")]
    with_work = [
        (number, one.name, (0, 0)) for number, one in session.trace.ranges().items() if "zero_grad" not in one.name
    ]
    assert sorted(on_device) == sorted(with_work)
    names = ["forward", "backward", "Optimizer.step#Adam.step"] * 2 + steps_in(session)
    assert sorted(name for _, name, _ in on_device) == sorted(names)
    assert {one.args["derived"] for one in session.trace.slices("gpu_user_annotation")} == {True}


def test_ranges_on_the_device_are_no_work(session: Session) -> None:
    """They are listed as what they are, and neither ops nor the table's footer count them."""
    events = session.prof.events()
    spans = [e for e in events if e.device_type == torch.autograd.DeviceType.PrivateUse1 and e.is_user_annotation]
    assert len(spans) == 8
    assert {event.linked_correlation_id for event in spans} == {0}
    over_records = sum(event.time_range.elapsed_us() for event in device_events(session.prof))
    assert sum(event.self_device_time_total for event in host_events(session.prof)) == pytest.approx(over_records)
    assert simland.footer(session.prof.key_averages().table()) == _format_time(over_records)
    owned = listed_work(kernel for event in host_events(session.prof) for kernel in event.kernels)
    assert owned == Counter((e.name, 0, e.time_range.elapsed_us()) for e in device_events(session.prof))


def test_no_two_slices_of_the_stream_overlap_in_part(session: Session) -> None:
    assert simland.partial_overlaps(session.trace) == []


def test_the_demos_own_checks_pass(session: Session) -> None:
    checks = verify(session.prof, session.trace.document, session.report)
    assert [check for check in checks if not check.passed] == []
