"""From a million host ranges and a million device records to `key_averages()`, beside torch's `events()` and `key_averages()`.

devprof: a trace made for it, nested three deep on two threads, kernels on four streams. torch: a real profile of as many host
ops as kernels, in a process of its own; its cost per event grows little, so a tenth of the size is enough. Both are held
against each other per event.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.setting import Gate, in_own_process, peak_bytes
from devprof.analysis import events, key_averages
from devprof.model import ActivityBatch, ActivityType
from devprof.store import Place, PlaceKind, Row, Trace, TraceBuilder

__all__ = ["TORCH_SIZE", "gates", "nested_trace", "run_torch"]

SIZES = (10_000, 100_000, 1_000_000)
TORCH_SIZE = 100_000
REPEATS = 7
HERE = Path(__file__).parent

# ten ranges: one that holds all, one in it, four in that, and one in each of those; ns from the start of the first
BEGINS = np.array([0, 5, 10, 12, 30, 32, 50, 52, 70, 72])
ENDS = np.array([100, 95, 28, 26, 48, 46, 68, 66, 88, 86])
ABOVE = np.array([-1, 0, 1, 2, 1, 4, 1, 6, 1, 8])
PERIOD = 110
N_THREADS, N_STREAMS, N_NAMES = 2, 4, 60


def nested_trace(n: int) -> Trace:
    """Return a trace of `n` host ranges, a multiple of 10, and as many kernels, one launched under each."""
    groups = n // len(BEGINS)
    shift = 10**18 + np.arange(groups)[:, np.newaxis] * PERIOD
    start, end = (shift + BEGINS).ravel(), (shift + ENDS).ravel()
    above = np.arange(groups)[:, np.newaxis] * len(BEGINS) + ABOVE
    number = np.arange(n)
    names = ["step", "layer", *(f"op {i}" for i in range(N_NAMES))]
    name = np.where(number % len(BEGINS) < 2, number % len(BEGINS), 2 + number * 7 % N_NAMES)
    builder = TraceBuilder()
    host = builder.place(Place(1, PlaceKind.HOST))
    device = builder.place(Place(0, PlaceKind.DEVICE, backend="bench"))
    threads = np.array([builder.row(Row(host, 100 + i)) for i in range(N_THREADS)])
    streams = np.array([builder.row(Row(device, i)) for i in range(N_STREAMS)])
    ranges = ActivityBatch.from_columns(
        names, activity_type=int(ActivityType.CPU_OP), name=name, start=start, end=end, id=number + 1
    )
    kernels = ActivityBatch.from_columns(
        [f"kernel {i}" for i in range(N_NAMES)],
        activity_type=int(ActivityType.CONCURRENT_KERNEL),
        name=number % N_NAMES,
        start=start + 1000,
        end=start + 1008,
        id=number + 2**30,
        linked=number + 1,
    )
    builder.add(ranges, threads[number * N_THREADS // n], parent=np.where(ABOVE < 0, -1, above).ravel())
    builder.add(kernels, streams[number % N_STREAMS])
    return builder.build(window_start_ns=10**18, window_end_ns=int(end[-1]))


def gates() -> Iterator[Gate]:
    """Measure, and yield the figures as they come."""
    own: dict[int, float] = {}
    for n in SIZES:
        trace = nested_trace(n)
        own[n] = _averages_ns(trace) / (2 * n)
        yield Gate(f"averages: {n} ranges and {n} kernels, per record", own[n], None, "ns")
    yield Gate("averages: events() of the largest", _events_us(trace), 1000, "us", "before one is looked at")
    used = peak_bytes(lambda: key_averages(trace).table()) / len(trace)
    yield Gate(
        "averages: memory beside the trace while computing, per record", used, 160, "B", "the trace itself: 63 B"
    )
    small, large = own[min(SIZES)], own[max(SIZES)]
    yield Gate("averages: cost per record, 1M / 10k", large / small, 1.3, detail=f"{large:.0f} / {small:.0f} ns")
    peer = run_torch()
    detail = f"{large:.0f} / {peer['torch_ns']:.0f} ns, {peer['torch_ns'] / large:.0f} times faster"
    yield Gate(
        "averages: per record / torch's events() and key_averages()", large / peer["torch_ns"], 1 / 50, detail=detail
    )
    detail = f"{peer['devprof_ns']:.0f} / {peer['torch_ns']:.0f} ns"
    yield Gate(
        "averages: from the same torch profile to the table, trace_of() included / torch's",
        peer["devprof_ns"] / peer["torch_ns"],
        1 / 20,
        detail=detail,
    )


def _averages_ns(trace: Trace) -> float:
    return statistics.median(_timed(trace) for _ in range(REPEATS))


def _timed(trace: Trace) -> int:
    began = time.process_time_ns()
    rows = key_averages(trace)
    rows.table(sort_by="self_device_time_total")
    return time.process_time_ns() - began


def _events_us(trace: Trace) -> float:
    began = time.perf_counter_ns()
    events(trace)
    return (time.perf_counter_ns() - began) / 1000


def run_torch() -> dict[str, float]:
    """Return what torch takes per event for `events()` and `key_averages()`, and devprof for the same profile, in ns."""
    return in_own_process("benchmarks.averages", TORCH_SIZE)


def _torch_profile(n: int) -> dict[str, float]:
    """Profile `n` ops with `n` kernels, and return what each side takes per event."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    from benchmarks.records import columns
    from benchmarks.setting import renamed_backend
    from devprof.registry import register
    from devprof.testing import ScriptedProfiler, plugin_of
    from devprof.torch import enable, trace_of

    renamed_backend()
    made = columns(n)
    plugin = ScriptedProfiler("bench-averages", script=lambda start_ns, end_ns: [made(start_ns, end_ns)])
    register(plugin_of(plugin), "bench-averages")
    enable("bench-averages")
    x, y = torch.zeros(1), torch.ones(1)
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as prof:
        for _ in range(n):
            x.add_(y)
    trace_of(prof)  # builds and loads the native part
    began = time.process_time_ns()
    trace = trace_of(prof)
    key_averages(trace).table()
    ours = time.process_time_ns() - began
    began = time.process_time_ns()
    listed = prof.events()
    prof.key_averages().table()
    if len(listed) < 2 * n:
        raise SystemExit(f"torch listed {len(listed)} events, expected {n} ops and {n} kernels")
    return {"torch_ns": (time.process_time_ns() - began) / len(listed), "devprof_ns": ours / len(trace)}


if __name__ == "__main__":
    print(json.dumps(_torch_profile(int(sys.argv[1]))))
