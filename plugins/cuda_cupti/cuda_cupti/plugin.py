"""What the package gives to devprof; the entry point ``cuda`` of group ``devprof.plugins`` names this module."""

from __future__ import annotations

from collections.abc import Sequence

from cuda_cupti.build_spec import CUPTI
from cuda_cupti.doctor import doctor_lines
from cuda_cupti.profiler import CudaProfiler
from devprof.contract import IActivityProfiler, NativeBuild, hookimpl

__all__ = ["devprof_activity_profilers", "devprof_doctor_lines", "devprof_native_builds"]


@hookimpl
def devprof_activity_profilers() -> Sequence[IActivityProfiler]:
    """Return the profiler of NVIDIA GPUs."""
    return [CudaProfiler()]


@hookimpl
def devprof_doctor_lines() -> Sequence[str]:
    """Return what there is of CUDA here, and what is in the way."""
    return list(doctor_lines())


@hookimpl
def devprof_native_builds() -> Sequence[NativeBuild]:
    """Return how to build what handles CUPTI's buffers; where it is not built, Python does."""
    return [CUPTI]
