"""From the stop of a session that recorded a million ranges and a million device records to its table, beside torch's.

devprof: ranges as the recorder keeps them, kernels as a plugin of the session delivers them, each linked to the range that was
current at its launch. Measured is all from `stop()` to `key_averages()`: assembling, linking, the tree, the figures. torch:
`events()` and `key_averages()` of a profile of ops and kernels, without its own stop, in a process of its own (see `averages`).
"""

from __future__ import annotations

import gc
import os
import statistics
import sys
import time
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import entry_points

import numpy as np

import devprof
from benchmarks.averages import TORCH_SIZE, run_torch
from benchmarks.setting import Gate
from devprof.host import RecordFunction, record_function
from devprof.model import ActivityBatch, ActivityType
from devprof.registry import register
from devprof.store import COLUMNS, Trace
from devprof.testing import ScriptedProfiler, plugin_of

__all__ = ["gates"]

REPEATS = {10_000: 31, 100_000: 9, 1_000_000: 5}
KERNELS = [f"kernel {number}" for number in range(60)]
OPS = [f"op {number}" for number in range(60)]
PER_STEP = 1000  # ops in a step; half of them stand in another one
N_STREAMS = 4


@dataclass(frozen=True, slots=True)
class Measured:
    """One session.

    Attributes:
        stop_ns: what `stop()` took, processor time of all threads.
        table_ns: what `key_averages()` and its table took afterwards.
        stored_bytes: what the columns of the trace hold.
        objects: blocks of Python's allocator that were in use after it, and not before the stop.
    """

    stop_ns: int
    table_ns: int
    stored_bytes: int
    objects: int


def gates() -> Iterator[Gate]:
    """Measure, and yield the figures as they come."""
    os.environ["DEVPROF_BLOCK_PLUGINS"] = ",".join(entry.name for entry in entry_points(group="devprof.plugins"))
    delivered: list[ActivityBatch] = []
    register(plugin_of(ScriptedProfiler("bench-table", script=lambda start_ns, end_ns: delivered)), "bench-table")
    per_record: dict[int, float] = {}
    for n, repeats in REPEATS.items():
        took = [_session(n, delivered) for _ in range(repeats)]
        stop, table = (
            statistics.median(getattr(one, name) for one in took) / (2 * n) for name in ("stop_ns", "table_ns")
        )
        per_record[n] = statistics.median((one.stop_ns + one.table_ns) / (2 * n) for one in took)
        detail = f"{stop:.0f} until stop() is back, {table:.0f} for the table"
        yield Gate(f"stop to table: {n} ranges and {n} kernels, per record", per_record[n], None, "ns", detail)
    yield Gate("stop to table: columns of the trace, per record", took[-1].stored_bytes / (2 * n), 100, "B")
    yield Gate("stop to table: Python objects made, per record", took[-1].objects / (2 * n), 0.01, "")
    small, large = (per_record[n] for n in (min(REPEATS), max(REPEATS)))
    yield Gate("stop to table: per record, 1M / 10k", large / small, 1.3, detail=f"{large:.0f} / {small:.0f} ns")
    peer = run_torch()["torch_ns"]
    detail = f"{large:.0f} / {peer:.0f} ns, {peer / large:.0f} times faster; torch with {TORCH_SIZE} of each"
    yield Gate("stop to table: per record / torch's events() and key_averages()", large / peer, 1 / 50, detail=detail)


def _session(n: int, delivered: list[ActivityBatch]) -> Measured:
    """Record `n` ranges, deliver `n` kernels, and measure from the stop on."""
    gc.collect()
    prof = devprof.profile(activities=["cpu", "bench-table"], host="python")
    prof.start()
    ids, times = _program(n)
    delivered[:] = [_kernels(ids, times)]
    del ids, times
    before = sys.getallocatedblocks()
    began = time.process_time_ns()
    prof.stop()
    stopped = time.process_time_ns()
    prof.key_averages().table(sort_by="self_device_time_total")
    ended = time.process_time_ns()
    objects = sys.getallocatedblocks() - before
    _check(prof.trace, n)
    return Measured(
        stopped - began, ended - stopped, sum(getattr(prof.trace, name).nbytes for name in COLUMNS), objects
    )


def _program(n: int) -> tuple[array[int], array[int]]:
    """Run `n` ranges, and return their ids and when they began, Unix ns: what a plugin keeps of its launches."""
    ids, times = array("q"), array("q")
    for _ in range(n // PER_STEP):
        with record_function("step") as step:
            ids.append(step.id)
            times.append(time.time_ns())
            for number in range((PER_STEP - 1) // 2):
                _launching(OPS[number % 60], ids, times)
            _one(OPS[0], ids, times)
    return ids, times


def _launching(name: str, ids: array[int], times: array[int]) -> None:
    with RecordFunction(name) as outer:
        ids.append(outer.id)
        times.append(time.time_ns())
        _one("inner", ids, times)


def _one(name: str, ids: array[int], times: array[int]) -> None:
    with RecordFunction(name) as op:
        ids.append(op.id)
        times.append(time.time_ns())


def _kernels(ids: array[int], times: array[int]) -> ActivityBatch:
    number = np.arange(len(ids))
    start = np.array(times)
    return ActivityBatch.from_columns(
        KERNELS,
        activity_type=int(ActivityType.CONCURRENT_KERNEL),
        name=number % len(KERNELS),
        start=start,
        end=start + 100,
        id=number + 1,
        linked=np.array(ids),
        resource=number % N_STREAMS,
    )


def _check(trace: Trace, n: int) -> None:
    """Make sure that it was all there: a quick answer to half of the question is none."""
    linked = int(np.count_nonzero(trace.parent >= 0))
    if len(trace) != 2 * n or linked != 2 * n - n // PER_STEP:
        raise SystemExit(f"the trace has {len(trace)} events, {linked} of them below another, of {2 * n}")
