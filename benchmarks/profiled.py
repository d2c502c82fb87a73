"""Torch profiles with a plugin's records in them, for what both sides write or read: of training, and of kernels alone."""

from __future__ import annotations

import os
import time
import warnings

import numpy as np
import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.records import columns
from benchmarks.setting import renamed_backend
from devprof.errors import LossWarning
from devprof.model import ActivityBatch, ActivityType, MetadataColumn, MetadataKind
from devprof.registry import register
from devprof.testing import ScriptedProfiler, plugin_of
from devprof.torch import enable
from devprof.torch.bridge import bridge

__all__ = ["profile_of_kernels", "profile_of_training"]

NAMES = ("gemm_f32_128x128", "elementwise_add", "reduce_sum_rows", "softmax_warp", "orLaunchKernel")
MOST_OPS = 1 << 20
N_OPS = 100
ROOM_S = 2e-7  # for a kernel
N_LAYERS = 8


def profile_of_training(steps: int, plugin_name: str) -> profile:
    """Return a finished profile with shapes: some 360 ops a step, each with a launch, a kernel and the arrow between them.

    Args:
        steps: of training.
        plugin_name: what the plugin that delivers the records is called; once per process.
    """
    renamed_backend()
    register(plugin_of(ScriptedProfiler(plugin_name, script=_records)), plugin_name)
    enable(plugin_name)
    model = torch.nn.Sequential(*[torch.nn.Linear(8, 8) for _ in range(N_LAYERS)])
    batch = torch.randn(4, 8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LossWarning)  # the launches are spread over the window, not put into their ops
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1], record_shapes=True) as profiled:
            for _ in range(steps):
                model.zero_grad()
                model(batch).sum().backward()
    return profiled


def profile_of_kernels(n: int, plugin_name: str) -> profile:
    """Return a finished profile of 100 ops and `n` kernels with eight args, without launches and arrows.

    Args:
        n: kernels.
        plugin_name: what the plugin that delivers them is called; once per process.
    """
    renamed_backend()
    made = columns(n)
    script = ScriptedProfiler(plugin_name, script=lambda start_ns, end_ns: [made(start_ns, end_ns)])
    register(plugin_of(script), plugin_name)
    enable(plugin_name)
    x, y = torch.zeros(1), torch.ones(1)
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as profiled:
        for _ in range(N_OPS):
            x.add_(y)
        time.sleep(n * ROOM_S)  # so that the kernels do not lie on each other
    return profiled


def _records(start_ns: int, end_ns: int) -> list[ActivityBatch]:
    ops = np.flatnonzero(bridge().known_ops(np.arange(MOST_OPS)))
    n = len(ops)
    number = np.arange(n)
    starts = start_ns + number * (end_ns - start_ns) // n
    metadata = {
        "registers per thread": MetadataColumn(MetadataKind.INT, np.full(n, 32)),
        "shared memory": MetadataColumn(MetadataKind.INT, np.full(n, 4096)),
        "grid": MetadataColumn(MetadataKind.INT_LIST, np.tile(np.array([16, 8, 1]), (n, 1))),
        "block": MetadataColumn(MetadataKind.INT_LIST, np.tile(np.array([128, 1, 1]), (n, 1))),
    }
    launches = ActivityBatch.from_columns(
        NAMES,
        activity_type=int(ActivityType.PRIVATEUSE1_RUNTIME),
        name=np.full(n, NAMES.index("orLaunchKernel")),
        start=starts,
        end=starts + 50,
        id=number + 1,
        linked=ops,
        thread_id=np.full(n, os.getpid() + 1),
    )
    kernels = ActivityBatch.from_columns(
        NAMES,
        activity_type=int(ActivityType.CONCURRENT_KERNEL),
        name=number % (len(NAMES) - 1),
        start=starts + 100,
        end=starts + 150,
        id=number + 1,
        linked=ops,
        resource=number % 4,
        metadata=metadata,
    )
    return [launches, kernels]
