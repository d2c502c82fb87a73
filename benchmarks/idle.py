"""What an installed but idle devprof costs: a CPU-only profile and plain ops, with the wrap and without it.

With and without alternate in one process: the wrap can be taken away and put back.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.setting import Gate
from devprof.torch import install, uninstall

__all__ = ["gates"]

OPS, ROUNDS, NOISE = 20_000, 41, 0.03


def _ops() -> int:
    x, y = torch.zeros(1), torch.ones(1)
    add = x.add_
    began = time.thread_time_ns()
    for _ in range(OPS):
        add(y)
    return time.thread_time_ns() - began


def _profiled_ops() -> int:
    with profile(activities=[ProfilerActivity.CPU]):
        return _ops()


def _sessions() -> int:
    began = time.thread_time_ns()
    for _ in range(20):
        with profile(activities=[ProfilerActivity.CPU]):
            pass
    return time.thread_time_ns() - began


def _ratio(measure: Callable[[], int]) -> tuple[float, str]:
    took: dict[bool, list[int]] = {True: [], False: []}
    for round_number in range(ROUNDS + 1):
        for wrapped in (True, False) if round_number % 2 else (False, True):
            (install if wrapped else uninstall)()
            gc.collect()
            spent = measure()
            if round_number:  # the first round warms up
                took[wrapped].append(spent)
    install()
    ours, bare = statistics.median(took[True]), statistics.median(took[False])
    return ours / bare, f"{ours / 1e6:.2f} / {bare / 1e6:.2f} ms"


def gates() -> list[Gate]:
    """Measure plain ops, ops under a CPU-only profile, and empty CPU-only profiles."""
    plain, plain_detail = _ratio(_ops)
    profiled, profiled_detail = _ratio(_profiled_ops)
    empty, empty_detail = _ratio(_sessions)
    return [
        Gate("idle: plain ops, installed / not", plain, 1 + NOISE, detail=plain_detail),
        Gate("idle: ops of a CPU-only profile, installed / not", profiled, 1 + NOISE, detail=profiled_detail),
        Gate("idle: 20 empty CPU-only profiles, installed / not", empty, 1.1, detail=empty_detail),
    ]
