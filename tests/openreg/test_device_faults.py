"""A bad day of the device's profiling library: the account says what was lost, one warning says so, the trace is valid."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import simland
import torch
from openreg_sim.activity import RECORD_BYTES, ActivityKind
from openreg_sim.profiler import MAX_BUFFERS
from openreg_sim.runtime import (
    ClockStep,
    DropRecords,
    DuplicateRecords,
    FaultRule,
    LateFlush,
    ReorderRecords,
    SmallBuffers,
    runtime,
)
from simland import Did, Session, device_events, host_events

KERNEL, CALL, IDS = ActivityKind.KERNEL, ActivityKind.RUNTIME, ActivityKind.EXTERNAL_CORRELATION
NO_BUFFER = "no activity buffer"
N_LAUNCHES = 12


@cache
def tensor() -> torch.Tensor:
    return torch.ones(64, 64, device="openreg")


def twelve_kernels() -> None:
    for _ in range(N_LAUNCHES):
        tensor() + tensor()


@pytest.fixture(autouse=True, scope="module")
def _warm(_device: None) -> None:
    twelve_kernels()
    torch.openreg.synchronize()


@pytest.fixture
def faulty(tmp_path: Path) -> Any:
    """Run a session in which the device has these faults."""

    def run(*rules: FaultRule, body: Any = twelve_kernels) -> Session:
        runtime().inject(*rules)
        try:
            return simland.record(body, tmp_path)
        finally:
            runtime().clear_faults()

    return run


def assert_valid(session: Session) -> None:
    """Whatever is missing: arrows have both ends, rows are clean, torch's sums hold, and the account closes."""
    trace, ledger = session.trace, session.ledger
    assert trace.arrow_ends("ac2g", "s").keys() == trace.arrow_ends("ac2g", "f").keys()
    assert simland.partial_overlaps(trace) == []
    assert ledger.emitted == len(trace.work()) + len(trace.launches())
    assert ledger.device_work == len(trace.work()) == len(device_events(session.prof))
    assert ledger.linked == sum(len(event.kernels) for event in host_events(session.prof))
    in_file = trace.document["devprof"]["plugins"]["openreg"]
    assert {key: in_file[key] for key in ("produced", "dropped", "rejected")} == {
        "produced": ledger.produced, "dropped": dict(ledger.dropped), "rejected": dict(ledger.rejected),
    }  # fmt: skip


def assert_next_session_is_whole(tmp_path: Path) -> None:
    session = simland.record(twelve_kernels, tmp_path)
    assert simland.disagreements(session) == []
    assert session.report.clean
    assert session.warned == []


def n_records(did: list[Did]) -> int:
    """Return how many records these calls leave with the device's library: ids, the call, its work."""
    return sum(bool(one.op_id) + bool(one.user_id) + 1 + one.is_work for one in did)


def told_of(session: Session) -> tuple[dict[str, int], dict[str, int], dict[str, int], int]:
    """Return dropped, rejected, notes and the number of records that the trace has."""
    ledger = session.ledger
    return dict(ledger.dropped), dict(ledger.rejected), dict(ledger.notes), ledger.emitted


def test_kernels_that_were_dropped_are_counted(faulty: Any, tmp_path: Path) -> None:
    session = faulty(DropRecords(every=3, kind=KERNEL))
    assert told_of(session) == ({NO_BUFFER: 4}, {}, {}, 8 + 13)
    kept = [one.op_id for number, one in enumerate(session.worked, 1) if number % 3]
    assert [one.op_id for one in session.trace.work()] == kept
    assert session.loss_warnings == [f"devprof: openreg: 4 of 25 records were lost ({NO_BUFFER}: 4)"]
    assert_valid(session)
    assert_next_session_is_whole(tmp_path)


def test_kernels_whose_launches_were_dropped_still_belong_to_their_ops(faulty: Any) -> None:
    session = faulty(DropRecords(every=3, kind=CALL))
    assert told_of(session) == ({NO_BUFFER: 4}, {}, {"device work without a launch": 4}, 12 + 9)
    assert [one.op_id for one in session.trace.work()] == [one.op_id for one in session.worked]
    assert len(session.trace.arrow_ends("ac2g", "s")) == 8
    assert len(session.loss_warnings) == 1
    assert_valid(session)


def test_kernels_whose_ids_were_dropped_are_kept_unlinked(faulty: Any) -> None:
    session = faulty(DropRecords(every=3, kind=IDS))
    assert told_of(session) == ({NO_BUFFER: 4}, {}, {"unlinked": 4}, 25)
    assert (session.ledger.device_work, session.ledger.linked) == (12, 8)
    assert [one.op_id for one in session.trace.work()] == [
        one.op_id if number % 3 else 0 for number, one in enumerate(session.worked, 1)
    ]
    assert len(session.loss_warnings) == 1
    assert_valid(session)


def test_without_any_ids_the_warning_says_that_nothing_is_linked(faulty: Any) -> None:
    session = faulty(DropRecords(every=1, kind=IDS))
    assert told_of(session) == ({NO_BUFFER: 12}, {}, {"unlinked": 12}, 25)
    (warning,) = session.loss_warnings
    assert "12 of 37 records were lost" in warning
    assert "0 of 12 device records linked to an op" in warning
    assert_valid(session)


def test_records_that_vanish_without_a_count_leave_a_valid_trace(faulty: Any) -> None:
    """A library that loses records and does not know it: nobody can count them, and nothing else suffers."""
    session = faulty(DropRecords(every=3, kind=KERNEL, counted=False))
    assert told_of(session) == ({}, {}, {}, 8 + 13)
    assert len(session.trace.arrow_ends("ac2g", "s")) == 8
    assert_valid(session)


def test_buffers_of_one_record_lose_nothing_while_there_are_enough(faulty: Any) -> None:
    session = faulty(SmallBuffers(RECORD_BYTES))
    assert simland.disagreements(session) == []
    assert session.report.clean
    assert session.warned == []


def test_what_is_beyond_the_last_buffer_is_dropped_and_counted(faulty: Any) -> None:
    def body() -> None:
        for _ in range(400):
            tensor() + tensor()

    session = faulty(SmallBuffers(RECORD_BYTES), body=body)
    lost = n_records(session.did) - MAX_BUFFERS
    assert lost > 0
    # a launch leaves three records: its op's id, the call, the kernel; the calls came one after the other
    whole, rest = divmod(MAX_BUFFERS, 3)
    assert [one.op_id for one in session.trace.work()] == [one.op_id for one in session.worked[:whole]]
    assert told_of(session) == ({NO_BUFFER: lost}, {}, {}, 2 * whole + max(0, rest - 1))
    assert len(session.loss_warnings) == 1
    assert_valid(session)


def test_a_flush_that_is_late_at_the_start_costs_nothing(faulty: Any) -> None:
    session = faulty(LateFlush(flushes=1, forced=True))
    assert simland.disagreements(session) == []
    assert session.warned == []


def test_what_a_late_flush_at_the_stop_leaves_behind_is_counted_and_is_not_in_the_next_trace(
    faulty: Any, tmp_path: Path
) -> None:
    session = faulty(LateFlush(flushes=2, forced=True))
    n_lost = n_records(session.did)
    assert told_of(session) == ({NO_BUFFER: n_lost}, {}, {}, 0)
    assert session.loss_warnings == [
        f"devprof: openreg: {n_lost} of {n_lost} records were lost ({NO_BUFFER}: {n_lost})"
    ]
    assert "aten::add" in [event.name for event in session.prof.events()]
    assert_valid(session)
    assert_next_session_is_whole(tmp_path)


@pytest.mark.parametrize(
    ("rule", "n_repeated"),
    [(DuplicateRecords(3, KERNEL), 4), (DuplicateRecords(3, CALL), 4), (DuplicateRecords(1), 25)],
    ids=["kernels", "calls", "everything"],
)
def test_records_that_come_twice_are_in_the_trace_once_and_their_time_counts_once(
    faulty: Any, rule: FaultRule, n_repeated: int
) -> None:
    session = faulty(rule)
    assert told_of(session) == ({}, {"delivered twice": n_repeated}, {}, 25)
    assert simland.disagreements(session) == []
    produced = 25 + n_repeated
    assert session.loss_warnings == [
        f"devprof: openreg: {n_repeated} of {produced} records had been delivered already; each is in the trace once"
    ]
    assert_valid(session)


def test_the_order_in_which_records_come_does_not_matter(faulty: Any) -> None:
    session = faulty(ReorderRecords(seed=1))
    assert simland.disagreements(session) == []
    assert session.report.clean
    assert session.warned == []


def steps(ticks: int) -> Any:
    """Return a program in whose middle the device's clock is set while no kernel runs."""

    def body() -> None:
        for _ in range(5):
            tensor() + tensor()
        torch.openreg.synchronize()
        runtime().inject(ClockStep(nth=1, ticks=ticks))
        for _ in range(7):
            tensor() + tensor()

    return body


def test_a_clock_that_is_set_back_during_the_session_is_doubted_and_loses_no_record(
    faulty: Any, tmp_path: Path
) -> None:
    session = faulty(body=steps(-3_000_000_000))
    assert (dict(session.ledger.dropped), dict(session.ledger.rejected), session.ledger.emitted) == ({}, {}, 26)
    assert Counter(one.op_id for one in session.trace.work()) == Counter(one.op_id for one in session.worked)
    assert session.ledger.clock_doubts[0] == (
        "the device's clock went back 1 time(s) between readings: it was reset, or wraps around"
    )
    (warning,) = session.loss_warnings
    assert "openreg: times may be wrong: the device's clock went back 1 time(s)" in warning
    assert not session.report.clean
    assert_next_session_is_whole(tmp_path)


def test_a_clock_that_jumps_ahead_is_doubted_and_what_it_moves_out_of_the_window_is_counted(faulty: Any) -> None:
    session = faulty(body=steps(10_000_000_000))
    assert session.ledger.produced == 26
    assert (set(session.ledger.dropped) | {"before window"}, session.ledger.rejected) == ({"before window"}, {})
    (doubt,) = session.ledger.clock_doubts
    assert "ppm off its nominal rate" in doubt
    assert len(session.loss_warnings) == 1
