"""A long run of the simulated device at full speed: what memory it takes, whether the account closes, what a snapshot costs.

``python -m benchmarks.soak MODE [--minutes N]``, MODE being ``ring``, ``flight`` (a ring with a snapshot every few seconds),
``totals``, ``spill`` or ``sessions`` (a thousand short ones). It prints a line now and then, and a JSON object at the end; it
exits with 1 where memory grew, or the account and the program's own count differ.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import math
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from openreg_sim.runtime import Runtime, RuntimeConfig, runtime, use_runtime

import devprof
from devprof.analysis import events

__all__ = ["Outcome", "device_without_memory", "soak", "soak_sessions"]

MAX_RECORDS = 200_000
"""Of the host and of the device each; a ring of some 50 MB."""

SETTLED_PART = 0.25
"""Of the samples of memory: the first ones are of a ring that is not full yet."""

MOST_GROWTH_PER_HOUR = 8 << 20
_LEAST_GROWTH = {600: 48 << 20, math.inf: 16 << 20}
"""By the length of a run, seconds: a short one has not seen the largest backlog of a busy machine yet."""

_WAIT_EVERY = 64


@dataclass
class Outcome:
    """What a run came to.

    Attributes:
        mode: what was run.
        seconds: how long.
        ranges, launches: what the program did, by its own count.
        produced, host_produced: records of the device and events of the host, by the account.
        closes: the account's figures agree with each other and with the program's.
        resident: memory of the process over time, bytes; much of it is free, in arenas of the C library.
        in_use: what of it is allocated, bytes.
        resident_grew, grew: bytes between the first and the last part of these samples, once the ring was full.
        snapshot_ms: what each snapshot took.
        snapshot_events: events in each.
        problems: what is wrong; empty where all is well.
    """

    mode: str
    seconds: float = 0.0
    ranges: int = 0
    launches: int = 0
    produced: int = 0
    host_produced: int = 0
    closes: bool = False
    resident: list[int] = field(default_factory=list)
    in_use: list[int] = field(default_factory=list)
    resident_grew: int = 0
    grew: int = 0
    snapshot_ms: list[float] = field(default_factory=list)
    snapshot_events: list[int] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def summary(self) -> dict[str, object]:
        """Return the figures as JSON values, lists as their ends."""
        told = asdict(self)
        peak = max(self.resident, default=0)
        told["resident"] = {"samples": len(self.resident), "peak_mb": peak >> 20, "last_mb": self.resident[-1] >> 20}
        told["in_use"] = {"peak_mb": max(self.in_use, default=0) >> 20, "last_mb": self.in_use[-1] >> 20}
        took = sorted(self.snapshot_ms)
        told["snapshot_ms"] = (
            {"n": len(took), "median": round(statistics.median(took), 2), "most": round(took[-1], 2)} if took else {}
        )
        told["snapshot_events"] = statistics.median(self.snapshot_events) if self.snapshot_events else 0
        told["launches_per_s"] = round(self.launches / max(self.seconds, 1e-9))
        return told


def resident_bytes() -> int:
    """Return the memory that the process has in use."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


class _MallInfo(ctypes.Structure):
    """Source: mallinfo2 in glibc's malloc.h."""

    _fields_ = [  # as ctypes wants it
        (name, ctypes.c_size_t)
        for name in (
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keep",
        )
    ]


def in_use_bytes() -> int:
    """Return how much memory is allocated; where the C library does not say, all that the process has."""
    ask = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if ask is None:
        return resident_bytes()
    ask.restype = _MallInfo
    found = ask()
    # Python's small objects are in arenas that it maps itself
    return int(found.uordblks + found.hblkhd) + 64 * sys.getallocatedblocks()


def device_without_memory() -> Runtime:
    """Return a simulated device that keeps little of its own ground truth, which here would be taken for growth."""
    return Runtime(RuntimeConfig(truth_calls=256))


def soak(
    mode: str, seconds: float, *, max_records: int = MAX_RECORDS, sample_s: float = 5.0, snapshot_s: float = 3.0
) -> Outcome:
    """Launch work at full speed for so long, under one profile.

    Args:
        mode: ``ring``, ``flight``, ``totals`` or ``spill``.
        seconds: how long.
        max_records: what is kept of the host and of the device each.
        sample_s: time between two looks at the memory.
        snapshot_s: time between two snapshots, and the length of each.
    """
    outcome = Outcome(mode)
    when_full = {"flight": "ring"}.get(mode, mode)
    prof = devprof.profile(activities=["cpu", "openreg"], host="python", when_full=when_full, max_records=max_records)
    began = looked = snapped = time.monotonic()
    with prof:
        for now in _work(outcome, began + seconds):
            if now - looked > sample_s:
                looked = now
                _look(outcome)
                told = f"{outcome.resident[-1] >> 20} MB, {outcome.in_use[-1] >> 20} in use, {outcome.ranges} ranges"
                print(f"{now - began:8.0f} s {told}", file=sys.stderr)
            if mode == "flight" and now - snapped > snapshot_s:
                _snapshot(prof, snapshot_s, outcome)
                snapped = time.monotonic()
    outcome.seconds = time.monotonic() - began
    _check_account(prof, outcome)
    _check_memory(outcome)
    return outcome


def _work(outcome: Outcome, until: float) -> Iterator[float]:
    """Do the program's work, and yield the time now and then."""
    device = runtime()
    with devprof.record_function("the whole run"):
        outcome.ranges += 1
        step = 0
        while True:
            step += 1
            with devprof.record_function(f"step {step}"):  # a text that never repeats
                for layer in range(_WAIT_EVERY):
                    with devprof.record_function(f"layer {layer % 8}"):
                        device.launch("kernel", flops=1e5, bytes=1e3)
                outcome.ranges += 1 + _WAIT_EVERY
                outcome.launches += _WAIT_EVERY
                device.device_synchronize()
            now = time.monotonic()
            yield now
            if now >= until:
                return


def _snapshot(prof: devprof.profile, seconds: float, outcome: Outcome) -> None:
    began = time.perf_counter()
    trace = prof.snapshot(seconds)
    outcome.snapshot_ms.append(1000 * (time.perf_counter() - began))
    outcome.snapshot_events.append(len(trace))
    broken = [finding for finding in devprof.rules.check(trace) if finding.severity.name == "ERROR"]
    outcome.problems += [f"a snapshot breaks a rule: {finding}" for finding in broken]
    names = {event.name for event in events(trace.take(trace.parent < 0))} if len(trace) else set()
    if "the whole run" not in names:
        outcome.problems.append("a snapshot lacks the range that is open all the time")


def _check_account(prof: devprof.profile, outcome: Outcome) -> None:
    report = prof.report
    ledger, host = report.ledgers["openreg"], report.host_events
    assert host is not None
    outcome.produced, outcome.host_produced = ledger.produced, host.produced
    calls = 2 * outcome.launches + outcome.launches // _WAIT_EVERY  # the launch, its kernel, and the wait
    outcome.closes = (host.produced, ledger.produced) == (outcome.ranges, calls)
    if not outcome.closes:
        outcome.problems.append(
            f"accounts are {host.produced} and {ledger.produced}, the program counts {outcome.ranges} and {calls}"
        )
    if not ledger.clean:
        outcome.problems += report.complaints()
    if outcome.mode == "spill" and len(prof.trace) < outcome.ranges + outcome.launches:
        outcome.problems.append(f"the trace holds {len(prof.trace)} events only")
    if outcome.mode == "totals":
        counted = sum(row.count for row in prof.totals())
        if counted != outcome.ranges + calls:
            outcome.problems.append(f"totals count {counted} records, the program {outcome.ranges + calls}")


def _look(outcome: Outcome) -> None:
    outcome.resident.append(resident_bytes())
    outcome.in_use.append(in_use_bytes())


def _check_memory(outcome: Outcome) -> None:
    """Compare what was in use early and late, once all is full."""
    if outcome.mode == "spill":
        return
    outcome.grew, outcome.resident_grew = _growth(outcome.in_use), _growth(outcome.resident)
    least = next(allowed for length, allowed in _LEAST_GROWTH.items() if outcome.seconds < length)
    allowed = max(least, MOST_GROWTH_PER_HOUR * outcome.seconds / 3600)
    if outcome.grew > allowed:
        outcome.problems.append(f"memory grew by {outcome.grew >> 20} MB, at most {round(allowed) >> 20} are allowed")


def _growth(samples: list[int]) -> int:
    """Return by how much the least of the last third is above the least of the first.

    Between two clearings memory rises and falls again; what leaks is there at the lowest points too.
    """
    settled = samples[int(len(samples) * SETTLED_PART) :]
    if len(settled) < 5:
        return 0
    part = max(len(settled) // 3, 1)
    return min(settled[-part:]) - min(settled[:part])


def soak_sessions(n: int) -> Outcome:
    """Run so many short sessions, and look at the memory after each tenth of them."""
    outcome = Outcome("sessions")
    device = runtime()
    began = time.monotonic()
    blocks = []
    for number in range(n):
        with devprof.profile(activities=["cpu", "openreg"], host="python", when_full="ring") as prof:
            for _ in range(20):
                with devprof.record_function("range"):
                    device.launch("kernel", flops=1e4)
        outcome.ranges += 20
        outcome.launches += 20
        ledger, host = prof.report.ledgers["openreg"], prof.report.host_events
        assert host is not None
        outcome.produced += ledger.produced
        outcome.host_produced += host.produced
        if number % max(n // 20, 1) == 0:
            gc.collect()
            _look(outcome)
            blocks.append(sys.getallocatedblocks())
    outcome.seconds = time.monotonic() - began
    outcome.closes = (outcome.produced, outcome.host_produced) == (2 * outcome.launches, outcome.ranges)
    if not outcome.closes:
        outcome.problems.append("an account and the program's count differ")
    _check_memory(outcome)
    if (more := blocks[-1] - blocks[len(blocks) // 2]) > max(n // 2, 500):
        outcome.problems.append(f"{more} more of Python's objects after {n} sessions")
    return outcome


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=["ring", "flight", "totals", "spill", "sessions"])
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--sessions", type=int, default=1000)
    parser.add_argument("--max-records", type=int, default=MAX_RECORDS)
    parser.add_argument("--sample-s", type=float, default=5.0)
    parser.add_argument("--snapshot-s", type=float, default=3.0)
    given = parser.parse_args()
    with use_runtime(device_without_memory()):
        if given.mode == "sessions":
            outcome = soak_sessions(given.sessions)
        else:
            pace = {"sample_s": given.sample_s, "snapshot_s": given.snapshot_s}
            outcome = soak(given.mode, 60 * given.minutes, max_records=given.max_records, **pace)
    print(json.dumps(outcome.summary()))
    for problem in outcome.problems:
        print(f"PROBLEM {problem}", file=sys.stderr)
    sys.exit(1 if outcome.problems else 0)


if __name__ == "__main__":
    main()
