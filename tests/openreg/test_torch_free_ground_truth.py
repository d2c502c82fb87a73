"""Without torch, too: what the simulator says happened is what the trace says, for any program."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import free_work
import pytest
from free_work import ACTIONS, N_PLACES, N_SLOTS, Program, Step
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openreg_sim.runtime import Runtime, RuntimeConfig, use_runtime

STEPS = st.builds(Step, st.sampled_from(ACTIONS), st.integers(0, N_PLACES - 1), st.integers(0, N_SLOTS - 1))


@pytest.fixture
def program() -> Iterator[Program]:
    """Programs on a runtime of their own: the torch of this process has another one, and does not see this one."""
    with use_runtime(Runtime(RuntimeConfig(clock_drift_ppm=300.0))) as runtime:
        yield Program(runtime)


@settings(max_examples=60, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=st.lists(STEPS, max_size=40))
def test_a_trace_tells_what_the_program_did_and_what_the_simulator_says_of_it(
    program: Program, steps: list[Step]
) -> None:
    session = free_work.record(program.runtime, lambda: program.run(steps))
    assert free_work.told(session.trace) == session.expected
    assert free_work.disagreements(session) == []
    assert free_work.partial_overlaps(session.trace) == []
    assert session.warned == []
    assert session.ledger.device_work == len(session.expected)
    assert session.ledger.linked == sum(one.op is not None for one in session.expected)
    assert session.ledger.clean


RUN = """
    import sys
    sys.modules["torch"] = None  # as on a machine without torch
    import free_work
    from openreg_sim.runtime import Runtime, RuntimeConfig, use_runtime

    facts = {}
    for seed in range(8):
        with use_runtime(Runtime(RuntimeConfig.virtual_clock())) as runtime:
            program = free_work.Program(runtime)
            session = free_work.record(runtime, lambda: program.run(free_work.generate(seed)))
            facts[seed] = {
                "as expected": free_work.told(session.trace) == session.expected,
                "disagreements": free_work.disagreements(session, exact=True),
                "warned": session.warned,
                "records": free_work.device_records(session.trace),
            }
    free_work.say(facts=facts, torch=sorted(name for name in sys.modules if name.startswith("torch.")))
"""


@pytest.fixture(scope="module")
def virtual_runs(said: Any) -> list[Any]:
    """The same programs without torch under a virtual clock, in two processes."""
    return [said(RUN) for _ in range(2)]


def test_without_torch_under_a_virtual_clock_everything_is_exact(virtual_runs: Any) -> None:
    for run in virtual_runs:
        assert run["torch"] == []
        found = {seed: {key: facts[key] for key in facts if key != "records"} for seed, facts in run["facts"].items()}
        assert found == {str(seed): {"as expected": True, "disagreements": [], "warned": []} for seed in range(8)}
        assert all(len(facts["records"]) > 5 for facts in run["facts"].values())


def test_without_torch_two_runs_leave_the_same_device_records_byte_for_byte(virtual_runs: Any) -> None:
    first, second = (
        json.dumps({seed: facts["records"] for seed, facts in run["facts"].items()}).encode() for run in virtual_runs
    )
    assert first == second


CLOCKS = {
    "fast, and far off": {"clock_offset_ticks": 3_000_000_000_000_000, "clock_drift_ppm": 800.0},
    "slow, and coarse": {"clock_offset_ticks": -77, "clock_drift_ppm": -450.0, "ticks_per_second": 19_200_000},
}

CLOCKED = """
    import json, sys
    sys.modules["torch"] = None
    import free_work
    from openreg_sim.runtime import Runtime, RuntimeConfig, use_runtime

    with use_runtime(Runtime(RuntimeConfig(**json.loads(sys.argv[1])))) as runtime:
        program = free_work.Program(runtime)

        def body():
            expected = program.run(free_work.generate(1))
            runtime.launch("long", device=0, stream=0, flops=2.75e12)  # 275 ms, for the drift to show
            runtime.device_synchronize(0)
            return expected

        session = free_work.record(runtime, body)
    free_work.say(found=free_work.disagreements(session), clock=session.ledger.clock, warned=session.warned)
"""


@pytest.mark.parametrize("clock", CLOCKS)
def test_times_are_within_the_stated_uncertainty_whatever_the_devices_clock_does(said: Any, clock: str) -> None:
    facts = said(CLOCKED, json.dumps(CLOCKS[clock]))
    assert (facts["found"], facts["warned"]) == ([], [])
    drift_ppm = float(CLOCKS[clock]["clock_drift_ppm"])
    assert 0 < facts["clock"]["uncertainty_ns"] < abs(drift_ppm) * 1e-6 * 250_000_000
    assert facts["clock"]["drift_ppm"] * drift_ppm < 0
