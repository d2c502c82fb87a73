"""The plugin of the simulated device keeps what devprof's contract promises, with and without torch."""

from __future__ import annotations

from openreg_sim.workload import Workload

from devprof.testing.conformance import ProfilerConformance


class TestOpenReg(ProfilerConformance):
    plugin = "openreg"
    workload = Workload
