"""Cost per op of a session with a plugin, beside the same session whose `configure` returns None.

Both kinds of session alternate in one process, because the same code differs by up to ten percent from process to process.
The op is ``x.add_(y)`` on one element: one profiled op each.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.setting import Gate, renamed_backend
from devprof.registry import register
from devprof.testing import ScriptedProfiler, plugin_of
from devprof.torch import enable

__all__ = ["gates"]

OPS, ROUNDS = 20_000, 41
ACTIVITIES = [ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]


def _session_ns_per_op(x: torch.Tensor, y: torch.Tensor) -> float:
    gc.collect()
    gc.disable()
    try:
        with profile(activities=ACTIVITIES):
            add = x.add_
            for _ in range(500):
                add(y)
            began = time.thread_time_ns()
            for _ in range(OPS):
                add(y)
            spent = time.thread_time_ns() - began
    finally:
        gc.enable()
    return spent / OPS


def gates() -> list[Gate]:
    """Measure, and return the ratio of medians."""
    renamed_backend()
    plugin = ScriptedProfiler("bench-per-op")
    sits_out: dict[str, Callable[[], None]] = {"configure": lambda: None}
    register(plugin_of(plugin), "bench-per-op")
    enable("bench-per-op")
    x, y = torch.zeros(1), torch.ones(1)
    took: dict[bool, list[float]] = {True: [], False: []}
    for round_number in range(ROUNDS + 1):
        for takes_part in (True, False) if round_number % 2 else (False, True):
            plugin.faults = {} if takes_part else sits_out
            ns = _session_ns_per_op(x, y)
            if round_number:  # the first round warms up
                took[takes_part].append(ns)
    with_plugin, without = statistics.median(took[True]), statistics.median(took[False])
    if len(plugin.sessions) != ROUNDS + 1:
        raise RuntimeError(f"the plugin took part in {len(plugin.sessions)} sessions, expected {ROUNDS + 1}")
    detail = f"{with_plugin:.0f} ns with, {without:.0f} ns without, {ROUNDS} rounds of {OPS} ops"
    return [Gate("per op: session with a plugin / configure returns None", with_plugin / without, 1.05, detail=detail)]
