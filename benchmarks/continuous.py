"""What limits cost: a range in a ring against one in a plain session, a snapshot, and ten million records in one session.

Plain and ring take turns in one process, for long enough that the ring lets chunks go all the time. The ten million are in a
process of their own: ``python -m benchmarks.continuous N`` prints its figures as JSON.
"""

from __future__ import annotations

import gc
import json
import resource
import statistics
import sys
import time
from collections.abc import Iterator

import numpy as np

import devprof
from benchmarks.setting import Gate, in_own_process
from devprof.host import HostOptions, HostRecorder, record_function
from devprof.host import quick as quick_ranges
from devprof.host.build_spec import RANGES as RANGES_LIBRARY
from devprof.model import ActivityBatch, ActivityType, MetadataColumn, MetadataKind
from devprof.native import build
from devprof.registry import register
from devprof.store import COLUMNS
from devprof.store.limits import Limits, WhenFull
from devprof.testing import ScriptedProfiler, plugin_of

__all__ = ["gates"]

RANGES, ROUNDS = 200_000, 15
RING = Limits(50_000, None, WhenFull.RING)
MOST_ADDED = 1.05
RECORDS = 10_000_000
MOST_PEAK_GIB = 24.0


def _loop() -> None:
    for _ in range(RANGES):
        with record_function("range"):
            pass


def _ns_per_range(limits: Limits | None) -> float:
    recorder = HostRecorder(HostOptions(limits=limits))
    gc.collect()
    recorder.start()
    began = time.thread_time_ns()
    _loop()
    spent = time.thread_time_ns() - began
    recorder.stop()
    return spent / RANGES


def _per_op() -> Iterator[Gate]:
    build(RANGES_LIBRARY)
    for is_native in (True, False):
        (quick_ranges.quicken if is_native else quick_ranges.slow_down)()
        took: dict[str, list[float]] = {"plain": [], "ring": [], "totals": []}
        for _ in range(ROUNDS):
            took["plain"].append(_ns_per_range(None))
            took["ring"].append(_ns_per_range(RING))
            took["totals"].append(_ns_per_range(Limits(50_000, None, WhenFull.TOTALS)))
        plain, ring, totals = (statistics.median(took[mode]) for mode in ("plain", "ring", "totals"))
        how = "compiled" if is_native else "in Python"
        name = f"continuous: a range in a ring / in a plain session, {how}"
        yield Gate(name, ring / plain, MOST_ADDED, detail=f"{ring:.0f} / {plain:.0f} ns")
        name = f"continuous: a range that is added up / in a plain session, {how}"
        yield Gate(name, totals / plain, None, detail=f"{totals:.0f} / {plain:.0f} ns")
    quick_ranges.quicken()


def _snapshots() -> Iterator[Gate]:
    """Take snapshots of a full ring, of all of it and of its last part."""
    recorder = HostRecorder(HostOptions(limits=Limits(1_000_000, None, WhenFull.RING)))
    recorder.start()
    for _ in range(7):
        _loop()
    for part, since_s in (("a million ranges", None), ("their last 20 ms", 0.02)):
        took = []
        for _ in range(5):
            _loop()
            began = time.perf_counter_ns()
            found = recorder.snapshot(None if since_s is None else began - round(since_s * 1e9))
            took.append((time.perf_counter_ns() - began) / 1e6)
        yield Gate(
            f"continuous: a snapshot of {part}", statistics.median(took), None, "ms", f"{len(found.ranges)} ranges"
        )
    recorder.stop()


def gates() -> Iterator[Gate]:
    """Measure, and yield the ratios, the snapshots, and the peak of ten million records."""
    yield from _per_op()
    yield from _snapshots()
    told = in_own_process("benchmarks.continuous", RECORDS)
    detail = (
        f"{told['events']:.0f} events, {told['record_s']:.0f} s to record, {told['stop_s']:.0f} s to stop, "
        f"{told['recorded_gib']:.1f} GiB before the stop, {told['trace_gib']:.2f} GiB of trace"
    )
    yield Gate("continuous: peak of ten million records", told["peak_gib"], MOST_PEAK_GIB, "GiB", detail)


def _kernels(n: int, ids: np.ndarray[tuple[int], np.dtype[np.int64]], start_ns: int, end_ns: int) -> ActivityBatch:
    row = np.arange(n)
    start = start_ns + row * (end_ns - start_ns) // n
    return ActivityBatch.from_columns(
        ["gemm", "add", "relu", "copy"],
        activity_type=int(ActivityType.CONCURRENT_KERNEL),
        name=row % 4,
        start=start,
        end=start + 8,
        id=row + 1,
        device=row % 2,
        resource=row % 4,
        linked=ids[row * len(ids) // n],
        metadata={"bytes": MetadataColumn(MetadataKind.INT, row * 64)},
    )


def main(n: int) -> None:
    """Record n records in one session: half of them ranges, half of them kernels of a plugin; print what it took."""
    n_ranges = n_kernels = n // 2
    ids = np.zeros(n_ranges, dtype=np.int64)
    scripted = ScriptedProfiler("many", script=lambda start, end: [_kernels(n_kernels, ids, start, end)])
    register(plugin_of(scripted), "many")
    began = time.perf_counter()
    prof = devprof.profile(activities=["cpu", "many"], host="python")
    with prof:
        for number in range(n_ranges):
            with record_function("range") as one:
                ids[number] = one.id
        recorded = time.perf_counter()
        recorded_gib = _peak_gib()
    stopped = time.perf_counter()
    trace = prof.trace
    assert prof.report.clean, prof.report
    told = {
        "events": len(trace),
        "record_s": recorded - began,
        "stop_s": stopped - recorded,
        "recorded_gib": recorded_gib,
        "peak_gib": _peak_gib(),
        "trace_gib": sum(getattr(trace, key).nbytes for key in COLUMNS) / 2**30,
    }
    print(json.dumps(told))


def _peak_gib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


if __name__ == "__main__":
    main(int(sys.argv[1]))
