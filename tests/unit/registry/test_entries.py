"""What the catalogue holds names where it comes from."""

from __future__ import annotations

from devprof.contract import Capabilities
from devprof.registry import PluginInfo, RegisteredProfiler
from tests.unit.registry.plugins import KERNELS, Profiler


def test_a_profiler_carries_the_distribution_that_brought_it() -> None:
    info = PluginInfo("sim", "devprof-sim", "1.2", "entry point sim.plugin")
    one = RegisteredProfiler("sim", Profiler("sim"), Capabilities(), KERNELS, info)
    assert (one.distribution, one.version, one.source) == ("devprof-sim", "1.2", "entry point sim.plugin")


def test_a_plugin_of_this_process_has_no_distribution() -> None:
    assert PluginInfo("mine") == PluginInfo("mine", "", "", "registered in this process")
