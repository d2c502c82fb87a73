"""The plugin keeps devprof's contract, on buffers that come byte by byte through the seam of CUPTI's functions."""

from __future__ import annotations

import sys
from pathlib import Path

from cuda_cupti.capture import Client
from cuda_cupti.profiler import CudaProfiler, Source

from devprof.testing.conformance import ProfilerConformance, Settings

sys.path.insert(0, str(Path(__file__).parent / "support"))

from stand_in import StandIn, Workload  # found by the line above

LIBRARY = StandIn()
CLIENT = Client(LIBRARY.access())


class NamedProfiler(CudaProfiler):
    """The plugin under another name, so that it stands beside an installed one."""

    def name(self) -> str:
        return "cuda on a stand-in"


class TestCuda(ProfilerConformance):
    settings = Settings(sessions=100, kernels=2000, drift_s=0.2, ops=500)

    @staticmethod
    def plugin() -> CudaProfiler:
        return NamedProfiler(lambda: Source(CLIENT, is_alone=lambda host: None))

    @staticmethod
    def workload() -> Workload:
        return Workload(LIBRARY)
