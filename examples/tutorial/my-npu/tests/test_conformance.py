"""devprof's conformance kit: what every profiler backend has to keep, each promise as a test with a number."""

from __future__ import annotations

from devprof.testing.conformance import ProfilerConformance

from my_npu.plugin import NAME
from my_npu.workload import Workload


class TestConformance(ProfilerConformance):
    plugin = NAME
    workload = Workload
