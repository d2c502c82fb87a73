"""The package gives devprof its profiler, its stubs and its native build through the three hooks."""

from __future__ import annotations

import pluggy
import pytest
from openreg_sim import plugin
from openreg_sim.profiler import OpenRegProfiler
from openreg_sim.stubs import OpenRegStubs

from devprof.contract import PROJECT_NAME, DevprofSpec, NativeBuild


@pytest.fixture
def hooks() -> pluggy.PluginManager:
    manager = pluggy.PluginManager(PROJECT_NAME)
    manager.add_hookspecs(DevprofSpec)
    manager.register(plugin)
    manager.check_pending()
    return manager


def test_every_hook_of_the_contract_is_answered(hooks: pluggy.PluginManager) -> None:
    ((profiler,),) = hooks.hook.devprof_activity_profilers()
    (stubs,) = hooks.hook.devprof_profiler_stubs()
    assert (type(profiler), type(stubs), stubs.torch_device) == (OpenRegProfiler, OpenRegStubs, "openreg")


def test_the_native_device_can_be_built(hooks: pluggy.PluginManager) -> None:
    (builds,) = hooks.hook.devprof_native_builds()
    assert [type(build) for build in builds] == [NativeBuild]
    assert [source for source in builds[0].sources if not source.is_file()] == []
