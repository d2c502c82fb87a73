"""What the package gives to devprof; the entry point ``openreg`` of group ``devprof.plugins`` names this module."""

from __future__ import annotations

from collections.abc import Sequence

from devprof.contract import IActivityProfiler, NativeBuild, ProfilerStubs, hookimpl
from openreg_sim.build_spec import openreg_build
from openreg_sim.profiler import OpenRegProfiler
from openreg_sim.stubs import OpenRegStubs

__all__ = ["devprof_activity_profilers", "devprof_native_builds", "devprof_profiler_stubs"]


@hookimpl
def devprof_activity_profilers() -> Sequence[IActivityProfiler]:
    """Return the profiler of the simulated device."""
    return [OpenRegProfiler()]


@hookimpl
def devprof_profiler_stubs() -> ProfilerStubs:
    """Return the events of the simulated device for torch's legacy profiler."""
    return OpenRegStubs()


@hookimpl
def devprof_native_builds() -> Sequence[NativeBuild]:
    """Return how to build the native device, which torch needs and the simulated runtime does not."""
    return [openreg_build()]
