"""What the simulator says happened is what the trace says, for any program."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import random_work
import simland
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_work import ACTIONS, N_PLACES, N_SLOTS, Expected, Step

STEPS = st.builds(Step, st.sampled_from(ACTIONS), st.integers(0, N_PLACES - 1), st.integers(0, N_SLOTS - 1))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    random_work.run(random_work.generate(0))
    return tmp_path_factory.mktemp("random")


@settings(max_examples=25, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=st.lists(STEPS, max_size=30))
def test_a_trace_tells_what_the_program_did_and_what_the_simulator_says_of_it(folder: Path, steps: list[Step]) -> None:
    expected: list[Expected] = []
    session = simland.record(lambda: expected.extend(random_work.run(steps)), folder)
    work = sorted(session.trace.work(), key=lambda one: one.launch)
    ops = session.trace.ops()
    assert [(one.name, ops[one.op_id].name, *one.row) for one in work] == [one[:-1] for one in expected]
    ranges = session.trace.ranges()
    innermost = [ranges[one.user_id].name if one.user_id else None for one in session.worked]
    assert innermost == [one.range for one in expected]
    assert simland.disagreements(session) == []
    assert simland.partial_overlaps(session.trace) == []
    assert session.report.clean
    assert (session.ledger.device_work, session.ledger.linked, session.ledger.produced) == (
        len(expected), len(expected), len(expected) + len(session.did),
    )  # fmt: skip


LEAST_NS = 250_000_000
"""A session of `clocked_program.py` waits for a kernel that takes longer than this."""
CLOCKS: dict[str, dict[str, Any]] = {
    "fast, and far off": {"clock_offset_ticks": 3_000_000_000_000_000, "clock_drift_ppm": 800.0},
    "slow, and coarse": {"clock_offset_ticks": -77, "clock_drift_ppm": -450.0, "ticks_per_second": 19_200_000},
}


@pytest.mark.parametrize("clock", CLOCKS)
def test_times_are_within_the_stated_uncertainty_whatever_the_devices_clock_does(said_by: Any, clock: str) -> None:
    facts = said_by("clocked_program.py", json.dumps(CLOCKS[clock]))
    assert facts["disagreements"] == [[], [], []]
    assert facts["clean"] == [True, True, True]
    assert min(facts["work"]) > 10
    for fit in facts["clocks"]:
        # the allowance means something: over the session the clock itself is off by far more
        assert 0 < fit["uncertainty_ns"] < abs(CLOCKS[clock]["clock_drift_ppm"]) * 1e-6 * LEAST_NS
        assert fit["drift_ppm"] * CLOCKS[clock]["clock_drift_ppm"] < 0


def test_with_a_virtual_clock_durations_order_and_all_other_times_are_exact(virtual_runs: Any) -> None:
    for facts in virtual_runs:
        assert {seed: session["disagreements"] for seed, session in facts["random"].items()} == {
            str(seed): [] for seed in range(8)
        }
        assert all(session["records"] for session in facts["random"].values())


def test_with_a_virtual_clock_two_runs_leave_the_same_device_records_byte_for_byte(virtual_runs: Any) -> None:
    first, second = (
        json.dumps({s: run["random"][s]["records"] for s in run["random"]}).encode() for run in virtual_runs
    )
    assert first == second
