"""What the start and the stop of a `devprof.profile` without torch take in which nothing is recorded.

Alone, and with a plugin that does nothing; medians of many in one process.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterator, Sequence
from importlib.metadata import entry_points

import devprof
from benchmarks.setting import Gate
from devprof.registry import register
from devprof.testing import ScriptedProfiler, plugin_of

__all__ = ["gates"]

ROUNDS = 100
MOST_MS = 1.0


def gates() -> Iterator[Gate]:
    """Measure, and yield the medians."""
    os.environ["DEVPROF_BLOCK_PLUGINS"] = ",".join(entry.name for entry in entry_points(group="devprof.plugins"))
    register(plugin_of(ScriptedProfiler("bench-empty")), "bench-empty")
    for words, activities in (("alone", ["cpu"]), ("with a plugin", ["cpu", "bench-empty"])):
        starts, stops = zip(*(_once(activities) for _ in range(ROUNDS)), strict=True)
        yield Gate(f"start of an empty session, {words}", statistics.median(starts), MOST_MS, "ms")
        yield Gate(f"stop of an empty session, {words}", statistics.median(stops), MOST_MS, "ms")


def _once(activities: Sequence[str]) -> tuple[float, float]:
    prof = devprof.profile(activities=activities, host="python")
    began = time.perf_counter()
    prof.start()
    started = time.perf_counter()
    prof.stop()
    return 1e3 * (started - began), 1e3 * (time.perf_counter() - started)
