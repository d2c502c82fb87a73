"""Bringing records into a torch profile: from numpy columns through devprof, beside a plain C++ child profiler.

Each size and side runs in a process of its own, so that peak memory is its own; both sides then run in alternation. Measured
per record: the time in the bridge (Python to native, and Kineto's call that takes the records), the time that the records add
to the profiler's exit, and the peak of memory that they add.
"""

from __future__ import annotations

import ctypes
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.setting import Gate

__all__ = ["gates"]

SIZES = {10_000: 7, 100_000: 5, 1_000_000: 3}
BOUNDS_EXIT = {10_000: None, 100_000: 0.5, 1_000_000: 0.6}
# at 10k the fixed part of a session, some megabytes, is as large as the records
BOUNDS_MEMORY = {10_000: None, 100_000: 0.4, 1_000_000: 0.4}
HERE = Path(__file__).parent


def gates() -> Iterator[Gate]:
    """Measure all sizes and yield the ratios of each as soon as they are there."""
    exits: dict[int, tuple[float, float]] = {}
    own: dict[int, float] = {}
    for n, repeats in SIZES.items():
        ours, plain = _medians(n, repeats)
        exits[n] = ours["exit_ns"] / n, plain["exit_ns"] / n
        own[n] = (ours["drain_ns"] + ours["replay_ns"]) / n
        yield from _gates_of(n, ours, plain)
    small, large = min(SIZES), max(SIZES)
    detail = f"{own[large]:.0f} / {own[small]:.0f} ns"
    yield Gate("growth: devprof's own cost per record, 1M / 10k", own[large] / own[small], 1.3, detail=detail)
    detail = (
        f"{exits[large][0]:.0f} / {exits[small][0]:.0f} ns; the plain one's: {exits[large][1] / exits[small][1]:.2f}"
    )
    yield Gate(
        "growth: exit per record, torch's own included, 1M / 10k", exits[large][0] / exits[small][0], 1.3, detail=detail
    )


def _gates_of(n: int, ours: dict[str, float], plain: dict[str, float]) -> Iterator[Gate]:
    in_bridge, in_plain = ours["deliver_ns"] + ours["replay_ns"], plain["build_ns"] + plain["log_ns"]
    detail = f"{in_bridge / n:.0f} / {in_plain / n:.0f} ns"
    yield Gate(f"{n} records: time in the bridge / plain build and log", in_bridge / in_plain, 0.15, detail=detail)
    yield Gate(f"{n} records: Python to native", ours["deliver_ns"] / n, 100, "ns")
    detail = f"{ours['exit_ns'] / n:.0f} / {plain['exit_ns'] / n:.0f} ns"
    yield Gate(f"{n} records: exit time added", ours["exit_ns"] / plain["exit_ns"], BOUNDS_EXIT[n], detail=detail)
    detail = f"{ours['peak_bytes'] / n:.0f} / {plain['peak_bytes'] / n:.0f} B"
    yield Gate(f"{n} records: peak memory", ours["peak_bytes"] / plain["peak_bytes"], BOUNDS_MEMORY[n], detail=detail)


def _medians(n: int, repeats: int) -> tuple[dict[str, float], dict[str, float]]:
    runs: dict[str, list[dict[str, float]]] = {"devprof": [], "plain": []}
    for _ in range(repeats):
        for side, rows in runs.items():
            rows.append(_run(side, n))
    ours, plain = ({key: statistics.median(row[key] for row in rows) for key in rows[0]} for rows in runs.values())
    return ours, plain


def _run(side: str, n: int) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.delivery", side, str(n)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=HERE.parent)
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def _peak_bytes() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line.split()[1] for line in lines if line.startswith("VmHWM")))


def _session(n_ops: int = 100) -> tuple[int, int]:
    """Profile a few ops; return the time of the exit and the memory peak that it added."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    x, y = torch.zeros(1), torch.ones(1)
    prof = profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1])
    with prof:
        for _ in range(n_ops):
            x.add_(y)
        time.sleep(0.02)  # room for a million records of 8 ns that do not overlap
        Path("/proc/self/clear_refs").write_text("5")  # resets the peak
        before = _peak_bytes()
        began = time.perf_counter_ns()
    return time.perf_counter_ns() - began, _peak_bytes() - before


def _plain(n: int) -> dict[str, float]:
    from devprof.contract import NativeBuild
    from devprof.native import build, load

    spec = NativeBuild("plain_profiler", (HERE / "csrc/plain_profiler.cpp",))
    build(spec)
    import torch  # noqa: F401 - the library needs torch's symbols

    library = load(spec)
    library.plain_arm.argtypes = [ctypes.c_int, ctypes.c_uint64]
    library.plain_register()
    library.plain_arm(1, 0)
    _session()
    empty_ns, empty_bytes = _session()
    library.plain_arm(1, n)
    exit_ns, peak = _session()
    times = (ctypes.c_int64 * 2)()
    library.plain_times(times)
    return {
        "build_ns": times[0],
        "log_ns": times[1],
        "exit_ns": exit_ns - empty_ns,
        "peak_bytes": peak - empty_bytes,
    }


def _devprof(n: int) -> dict[str, float]:
    from benchmarks.records import columns
    from devprof.registry import register
    from devprof.testing import ScriptedProfiler, plugin_of
    from devprof.torch import enable, last_report
    from devprof.torch.delivery import Delivery

    plugin = ScriptedProfiler("bench-delivery")
    register(plugin_of(plugin), "bench-delivery")
    enable("bench-delivery")
    spent: list[int] = []
    deliver = Delivery.records

    def timed(self: Delivery, *args: object) -> None:
        began = time.perf_counter_ns()
        deliver(self, *args)  # type: ignore[arg-type]
        spent.append(time.perf_counter_ns() - began)

    Delivery.records = timed  # type: ignore[method-assign]
    _session()
    empty_ns, empty_bytes = _session()
    prepared = columns(n)
    plugin.script = lambda start_ns, end_ns: [prepared(start_ns, end_ns)]
    spent.clear()
    exit_ns, peak = _session()
    report = last_report()
    if report is None or report.ledgers["bench-delivery"].emitted != n or not report.clean:
        raise RuntimeError(f"not all records arrived: {report}")
    return {
        "deliver_ns": sum(spent),
        "replay_ns": report.timings_ns["kineto replay"],
        "drain_ns": report.timings_ns["drain"],
        "exit_ns": exit_ns - empty_ns,
        "peak_bytes": peak - empty_bytes,
    }


if __name__ == "__main__":
    from benchmarks.setting import renamed_backend

    renamed_backend()
    print(json.dumps({"devprof": _devprof, "plain": _plain}[sys.argv[1]](int(sys.argv[2]))))
