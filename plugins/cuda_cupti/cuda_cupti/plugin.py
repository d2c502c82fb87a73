"""What the package gives to devprof; the entry point ``cuda`` of group ``devprof.plugins`` names this module."""

from __future__ import annotations

from collections.abc import Sequence

from cuda_cupti.profiler import CudaProfiler
from devprof.contract import IActivityProfiler, hookimpl

__all__ = ["devprof_activity_profilers"]


@hookimpl
def devprof_activity_profilers() -> Sequence[IActivityProfiler]:
    """Return the profiler of NVIDIA GPUs."""
    return [CudaProfiler()]
