"""One torch profile with a plugin's kernels in it, for what is measured on both sides of the same session."""

from __future__ import annotations

import time

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.records import columns
from benchmarks.setting import renamed_backend
from devprof.registry import register
from devprof.testing import ScriptedProfiler, plugin_of
from devprof.torch import enable

__all__ = ["profile_of_kernels"]

N_OPS = 100


def profile_of_kernels(n: int, plugin_name: str) -> profile:
    """Return a finished profile of 100 ops and `n` kernels with eight items each.

    Args:
        n: number of kernels.
        plugin_name: what the plugin that delivers them is called; once per process.
    """
    renamed_backend()
    made = columns(n)
    plugin = ScriptedProfiler(plugin_name, script=lambda start_ns, end_ns: [made(start_ns, end_ns)])
    register(plugin_of(plugin), plugin_name)
    enable(plugin_name)
    x, y = torch.zeros(1), torch.ones(1)
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as profiled:
        for _ in range(N_OPS):
            x.add_(y)
        time.sleep(0.02)  # room for the kernels to lie side by side
    return profiled
