"""The hooks as pluggy sees them."""

from __future__ import annotations

import inspect

import pluggy
import pytest

from devprof.contract import PROJECT_NAME, DevprofSpec, hookimpl

HOOKS = ["devprof_activity_profilers", "devprof_profiler_stubs", "devprof_native_builds", "devprof_doctor_lines"]


@pytest.fixture
def manager() -> pluggy.PluginManager:
    manager = pluggy.PluginManager(PROJECT_NAME)
    manager.add_hookspecs(DevprofSpec)
    return manager


def test_every_hook_is_known_to_pluggy(manager: pluggy.PluginManager) -> None:
    assert [name for name in vars(DevprofSpec) if name.startswith("devprof_")] == HOOKS
    assert all(getattr(manager.hook, hook).has_spec() for hook in HOOKS)


@pytest.mark.parametrize("hook", HOOKS)
def test_a_function_marked_as_the_hooks_implementation_is_called(hook: str, manager: pluggy.PluginManager) -> None:
    class Plugin:
        pass

    setattr(Plugin, hook, hookimpl(lambda self: "mine"))
    manager.register(Plugin())
    assert getattr(manager.hook, hook)() == ["mine"]


@pytest.mark.parametrize("hook", HOOKS)
def test_a_function_that_is_not_marked_is_not_a_hook(hook: str, manager: pluggy.PluginManager) -> None:
    class Plugin:
        pass

    setattr(Plugin, hook, lambda self: "mine")
    manager.register(Plugin())
    assert getattr(manager.hook, hook)() == []


@pytest.mark.parametrize("hook", HOOKS)
def test_a_spec_says_when_it_is_called_and_is_never_called_itself(hook: str) -> None:
    spec = getattr(DevprofSpec, hook)
    assert "Called" in (inspect.getdoc(spec) or "")
    with pytest.raises(AssertionError, match="a hookspec is never called"):
        spec(None)
