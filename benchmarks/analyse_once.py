"""``python analyse_once.py devprof|devprof-found|hta FILE``: load one trace and time each analysis of it.

Prints their CPU seconds and peak memory as JSON, for ``devprof-found`` what they find instead. Imports devprof for its own
analyses only, so that HTA can run in an environment of its own.
"""

from __future__ import annotations

import gc
import json
import logging
import resource
import statistics
import sys
import time
import tracemalloc
import warnings
from collections.abc import Callable, Mapping
from typing import Any

Calls = Mapping[str, Callable[[], object]]
LABELED = "diff of traces whose events HTA has assigned to steps before"
_BUDGET_S = 4.0
_MOST, _LEAST = 25, 3


def of_devprof(path: str) -> tuple[Calls, dict[str, Any]]:
    """Return the analyses of a trace loaded by devprof, and how long its device work took."""
    from devprof import analysis
    from devprof.pipeline.files import load

    trace = load(path)
    loaded_bytes = _peak_bytes()
    calls: dict[str, Callable[[], object]] = {
        "device_breakdown": lambda: analysis.device_breakdown(trace),
        "stream_usage": lambda: analysis.stream_usage(trace),
        "overlap": lambda: analysis.overlap(trace),
        "launch_latency": lambda: analysis.launch_latency(trace),
        "queue_length": lambda: analysis.queue_length(trace),
        "steps": lambda: analysis.steps(trace),
        "diff": lambda: analysis.diff(trace, trace),
        "key_averages": lambda: analysis.key_averages(trace).table(sort_by="self_device_time_total"),
    }
    work_ns = int(analysis.device_breakdown(trace).columns["total_ns"].sum())  # type: ignore[union-attr]  # an array
    return calls, {"loaded_bytes": loaded_bytes, "work_ns": work_ns}


def found_by_devprof(path: str) -> dict[str, Any]:
    """Return what the analyses find, row by row."""
    from devprof import analysis
    from devprof.pipeline.files import load

    trace = load(path)
    answers = (
        analysis.device_breakdown,
        analysis.stream_usage,
        analysis.overlap,
        analysis.queue_length,
        analysis.steps,
    )
    return {answer.__name__: list(answer(trace)) for answer in answers}


def of_hta(path: str) -> tuple[Calls, dict[str, Any]]:
    """Return the same analyses of Holistic Trace Analysis, where it has them, and the sum of its kernels' times in us."""
    from hta.trace_analysis import TraceAnalysis  # type: ignore[import-not-found]  # where it is installed
    from hta.trace_diff import LabeledTrace, TraceDiff  # type: ignore[import-not-found]

    loaded = TraceAnalysis(trace_files={0: path}, trace_dir="")
    one, other = (LabeledTrace(label=label, t=loaded.t) for label in ("one", "other"))
    steps = one.iterations()
    calls: dict[str, Callable[[], object]] = {
        "device_breakdown": lambda: loaded.get_gpu_kernel_breakdown(visualize=False),
        "stream_usage": lambda: loaded.get_idle_time_breakdown(visualize=False),
        "overlap": lambda: loaded.get_comm_comp_overlap(visualize=False),
        "launch_latency": lambda: loaded.get_cuda_kernel_launch_stats(visualize=False),
        "queue_length": loaded.get_queue_length_time_series,
        "diff": lambda: TraceDiff.compare_traces(loaded.t, loaded.t),
        LABELED: lambda: TraceDiff.compare_traces(one, other, control_iteration=steps, test_iteration=steps),
    }
    frame = loaded.t.get_trace(0)
    return calls, {"kernel_us": float(frame.loc[frame["stream"] >= 0, "dur"].sum())}


def _median_s(call: Callable[[], object]) -> float:
    """Return the median processor time of a call that is repeated, less often where it is slow."""
    took: list[float] = []
    while len(took) < _LEAST or (sum(took) < _BUDGET_S and len(took) < _MOST):
        began = time.process_time()
        call()
        took.append(time.process_time() - began)
        if took[0] > _BUDGET_S:
            break
    return statistics.median(took)


def _peak_bytes() -> int:
    """Return the greatest memory that this process held so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _beside_bytes(call: Callable[[], object]) -> int:
    """Return the peak of what numpy and Python allocate in a call."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def main() -> None:
    """Time what the command line asks for."""
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    side, path = sys.argv[1:]
    if side == "devprof-found":
        print(json.dumps({"found": found_by_devprof(path)}))
        return
    calls, facts = {"devprof": of_devprof, "hta": of_hta}[side](path)
    gc.collect()
    seconds = {name: _median_s(call) for name, call in calls.items()}
    peak_bytes = _peak_bytes()
    beside_bytes = {name: _beside_bytes(call) for name, call in calls.items()} if side == "devprof" else {}
    print(json.dumps({"seconds": seconds, "peak_bytes": peak_bytes, "beside_bytes": beside_bytes, **facts}))


if __name__ == "__main__":
    main()
