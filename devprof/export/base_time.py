"""Times as a Chrome trace writes them: microseconds with three decimals from a base that stands in the file."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from devprof.store import Trace

__all__ = ["base_time_ns", "has_window", "since", "timestamp"]

_STEP_NS = 7_889_238 * 1_000_000_000
_EARLIEST_NS = -(2**63)


def base_time_ns(trace: Trace) -> int:
    """Return the base of a trace's times, Unix ns: a multiple of 7,889,238 s (a quarter of a year) before all of them.

    Traces of the same quarter have the same base, also Kineto's own (libkineto, ChromeTraceBaseTime).
    """
    first = [int(trace.start_ns.min())] if len(trace) else []
    if has_window(trace) or not first:
        first.append(trace.window_start_ns)
    return max(min(first) // _STEP_NS * _STEP_NS, _EARLIEST_NS)


def has_window(trace: Trace) -> bool:
    """Say whether the trace knows its window."""
    return bool(trace.window_start_ns or trace.window_end_ns)


def since(first: npt.NDArray[np.int64] | int, then: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    """Return ``then - first`` in ns, 0 where that is negative: (n,) uint64, exact for all of int64.

    Args:
        first: (n,) int64 or one number, Unix ns.
        then: (n,) int64, Unix ns.
    """
    start, end = np.asarray(first, dtype=np.int64), np.asarray(then, dtype=np.int64)
    return np.where(end > start, end.view(np.uint64) - start.view(np.uint64), np.uint64(0))


def timestamp(elapsed_ns: int) -> str:
    """Return a span as text in microseconds, exact; a negative one is none."""
    elapsed_ns = max(elapsed_ns, 0)
    return f"{elapsed_ns // 1000}.{elapsed_ns % 1000:03d}"
