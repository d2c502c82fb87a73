"""Two devices, four streams and events between them: rows are named and clean, and what waited, waited."""

from __future__ import annotations

import itertools
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import simland
import torch
from simland import Session, Slice

N = 256
BYTES = N * N * 4


class Streams:
    """A program in which streams wait for each other across devices; every piece of work can be told by its name.

    The first is a long kernel, so that whatever fails to wait for it starts too early.
    """

    def __init__(self) -> None:
        self.zero, self.one = (torch.ones(N, N, device=f"openreg:{device}") for device in range(2))
        self.host = torch.ones(N, N)
        self.side = [torch.Stream(f"openreg:{device}") for device in range(2)]

    def run(self) -> None:
        """Launch: long kernel on 0 > mul on 1's side stream > add on 0's side stream > sub on 1's default stream."""
        default = [torch.openreg.default_stream(device) for device in range(2)]
        simland.long_kernel(0)
        first = default[0].record_event()
        self.side[1].wait_event(first)
        with self.side[1]:
            self.one * self.one
        second = self.side[1].record_event()
        self.side[0].wait_event(second)
        with self.side[0]:
            self.zero + self.zero
        third = self.side[0].record_event()
        default[1].wait_event(third)
        with default[1]:
            self.one - self.one

    def move(self) -> None:
        """Copy to a device, within it, to the other and back to the host; then set."""
        x = self.host.to("openreg:0")
        y = x.clone()
        z = y.to("openreg:1")
        z.cpu()
        z.zero_()


@pytest.fixture(scope="module")
def streams(_device: None) -> Streams:
    return Streams()


@pytest.fixture(scope="module")
def session(streams: Streams, tmp_path_factory: pytest.TempPathFactory) -> Session:
    return simland.record(streams.run, tmp_path_factory.mktemp("streams"))


def by_name(session: Session) -> dict[str, Slice]:
    found = {one.name: one for one in session.trace.work()}
    assert len(found) == len(session.trace.work())
    return found


def test_the_trace_tells_what_the_simulator_did(session: Session) -> None:
    assert simland.disagreements(session) == []
    assert session.report.clean


def test_every_row_is_named_after_its_device_and_stream(session: Session) -> None:
    names = session.trace.row_names()
    used = {one.row for one in session.trace.work()}
    assert Counter(device for device, _ in used) == {0: 2, 1: 2}
    assert {row: names[row] for row in used} == {
        (device, stream): (f"openreg {device}", f"stream {stream}") for device, stream in used
    }


def test_no_two_slices_of_a_row_overlap_in_part(session: Session) -> None:
    assert simland.partial_overlaps(session.trace) == []


def test_work_that_waits_for_an_event_starts_when_what_was_recorded_has_ended(session: Session) -> None:
    work = by_name(session)
    chain = [work[name] for name in (simland.LONG_KERNEL, "mul_kernel", "add_kernel", "sub_kernel")]
    assert [one.row[0] for one in chain] == [0, 1, 0, 1]
    for before, behind in itertools.pairwise(chain):
        assert behind.start_ns >= before.end_ns


def test_a_kernel_waits_for_an_event_of_another_device_and_does_not_without_it(virtual_runs: Any) -> None:
    """In virtual time a kernel of device 1 starts when the one of device 0 ends that it waits for; else long before."""
    facts = virtual_runs[0]
    assert facts["gap_with_wait_ns"] == 0
    assert facts["gap_without_wait_ns"] < -10_000_000


def test_a_kernel_that_runs_when_the_profile_ends_is_kept_with_its_true_end_on_every_device(
    streams: Streams, tmp_path: Path
) -> None:
    def body() -> None:
        simland.long_kernel(1)
        simland.long_kernel(0)

    session = simland.record(body, tmp_path)
    assert torch.openreg.current_device() == 0
    kernels = {one.row: one for one in session.trace.work()}
    assert sorted(kernels) == [(0, 0), (1, 0)]
    assert simland.disagreements(session) == []
    # torch itself waits for the current device only
    assert kernels[1, 0].end_ns > session.report.start_ns + kernels[1, 0].duration_ns
    assert session.ledger.dropped == {}
    assert kernels[1, 0].duration_ns == pytest.approx(kernels[0, 0].duration_ns, abs=2)


def test_a_kernel_of_another_device_may_end_after_the_window(streams: Streams, tmp_path: Path) -> None:
    session = simland.record(lambda: simland.long_kernel(1), tmp_path)
    (kernel,), (did,) = session.trace.work(), session.worked
    assert kernel.row == (1, 0)
    assert kernel.start_ns < session.report.end_ns < kernel.end_ns
    assert abs(kernel.end_ns - did.end_ns) <= int(str(session.ledger.clock["uncertainty_ns"]))


@pytest.fixture(scope="module")
def moves(streams: Streams, tmp_path_factory: pytest.TempPathFactory) -> Session:
    return simland.record(streams.move, tmp_path_factory.mktemp("moves"))


MOVES = [
    ("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", (0, 0)),
    ("gpu_memcpy", "Memcpy DtoD (Device -> Device)", (0, 0)),
    ("gpu_memcpy", "Memcpy PtoP (Device -> Device)", (1, 0)),
    ("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", (1, 0)),
    ("gpu_memset", "Memset (Device)", (1, 0)),
]


def test_copies_and_sets_have_their_category_direction_row_and_bytes(moves: Session) -> None:
    work = sorted(moves.trace.work(), key=lambda one: one.launch)
    assert [(one.category, one.name, one.row) for one in work] == MOVES
    assert {one.args["bytes"] for one in work} == {BYTES}
    assert [(one.args["device"], one.args["stream"]) for one in work] == [row for _, _, row in MOVES]
    assert simland.disagreements(moves) == []


def test_copies_and_sets_state_their_bandwidth_in_gb_per_s(moves: Session) -> None:
    for one in moves.trace.work():
        told = one.args["memory bandwidth (GB/s)"]
        assert isinstance(told, Decimal)
        # the rate is of the duration in ticks, the slice's length is in converted ns
        assert float(told) == pytest.approx(BYTES / one.duration_ns, rel=1e-3)


def test_a_peer_copy_names_both_devices_and_the_others_do_not(moves: Session) -> None:
    ends = ("fromDevice", "inDevice", "toDevice")
    told = {one.name: [one.args.get(end) for end in ends] for one in moves.trace.work()}
    assert told == {name: [0, 1, 1] if "PtoP" in name else [None] * 3 for _, name, _ in MOVES}


def test_a_copy_between_devices_waits_for_both(moves: Session) -> None:
    """The copy is on the target's stream; what the source's stream did before is over by then."""
    work = {one.name: one for one in moves.trace.work()}
    copy, before = work["Memcpy PtoP (Device -> Device)"], work["Memcpy DtoD (Device -> Device)"]
    assert copy.start_ns >= before.end_ns


def test_every_copy_belongs_to_the_op_that_made_it(moves: Session) -> None:
    ops = moves.trace.ops()
    owners = Counter((one.name, ops[one.op_id].name) for one in moves.trace.work())
    assert owners == Counter(
        (name, "aten::zero_" if category == "gpu_memset" else "aten::copy_") for category, name, _ in MOVES
    )
