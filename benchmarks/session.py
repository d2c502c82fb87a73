"""What a plugin adds to the start and the stop of a session in which nothing is recorded.

Sessions with it and sessions in which its `configure` returns None alternate in one process.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator

from torch.profiler import ProfilerActivity, profile

from benchmarks.setting import Gate, renamed_backend
from devprof.registry import register
from devprof.testing import ScriptedProfiler, plugin_of
from devprof.torch import enable

__all__ = ["gates"]

ROUNDS = 60
MOST_MS = 1.0


def _start_and_stop_ms() -> tuple[float, float]:
    prof = profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1])
    began = time.perf_counter()
    prof.start()
    started = time.perf_counter()
    prof.stop()
    return 1e3 * (started - began), 1e3 * (time.perf_counter() - started)


def gates() -> Iterator[Gate]:
    """Measure, and yield the difference of medians for start and stop."""
    renamed_backend()
    plugin = ScriptedProfiler("bench-session")
    sits_out: dict[str, Callable[[], None]] = {"configure": lambda: None}
    register(plugin_of(plugin), "bench-session")
    enable("bench-session")
    took: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
    for round_number in range(ROUNDS + 1):
        for takes_part in (True, False):
            plugin.faults = {} if takes_part else sits_out
            spent = _start_and_stop_ms()
            if round_number:  # the first round loads everything
                took[takes_part].append(spent)
    ours, bare = ([statistics.median(column) for column in zip(*took[part], strict=True)] for part in (True, False))
    for what, with_plugin, without in zip(("start", "stop"), ours, bare, strict=True):
        detail = f"{with_plugin:.2f} - {without:.2f} ms"
        yield Gate(
            f"session: {what} of a session with a plugin, over one without",
            with_plugin - without,
            MOST_MS,
            "ms",
            detail,
        )
