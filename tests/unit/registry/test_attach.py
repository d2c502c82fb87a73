"""A plugin's hooks are checked when it is registered, and a plugin that fails leaves nothing behind."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pluggy
import pytest

from devprof.contract import PROJECT_NAME, DevprofSpec, hookimpl
from devprof.errors import PluginContractError
from devprof.registry.attach import attach
from tests.unit.registry.plugins import OneHook, Plugin, Profiler

HOOKS = "devprof_activity_profilers, devprof_profiler_stubs, devprof_native_builds, devprof_doctor_lines"


@pytest.fixture
def manager() -> pluggy.PluginManager:
    manager = pluggy.PluginManager(PROJECT_NAME)
    manager.add_hookspecs(DevprofSpec)
    return manager


def _state(manager: pluggy.PluginManager) -> object:
    callers = {name: caller for name, caller in vars(manager.hook).items() if isinstance(caller, pluggy.HookCaller)}
    return manager.list_name_plugin(), {
        name: caller.get_hookimpls() for name, caller in callers.items() if caller.get_hookimpls()
    }


def _refused(manager: pluggy.PluginManager, plugin: object) -> str:
    before = _state(manager)
    with pytest.raises(PluginContractError) as caught:
        attach(manager, "demo", plugin)
    assert (caught.value.plugin, caught.value.hook) == ("demo", "registration")
    assert _state(manager) == before
    return caught.value.reason


def test_the_hooks_of_an_object_are_found_and_can_be_called(manager: pluggy.PluginManager) -> None:
    profiler = Profiler()
    hooks = attach(manager, "demo", Plugin([profiler]))
    assert sorted(hooks) == sorted(HOOKS.split(", "))
    assert hooks["devprof_activity_profilers"]() == [profiler]


def test_a_module_is_a_plugin_too(manager: pluggy.PluginManager) -> None:
    module = ModuleType("their_plugin")
    exec(
        "from devprof.contract import hookimpl\n@hookimpl\ndef devprof_activity_profilers():\n    return []",
        module.__dict__,
    )
    assert list(attach(manager, "demo", module)) == ["devprof_activity_profilers"]


def test_a_hook_may_take_a_name_of_its_own(manager: pluggy.PluginManager) -> None:
    class Renamed:
        @hookimpl(specname="devprof_activity_profilers")
        def mine(self) -> list[object]:
            return [1]

    hooks = attach(manager, "demo", Renamed())
    assert {name: hook() for name, hook in hooks.items()} == {"devprof_activity_profilers": [1]}


def test_an_argument_that_the_spec_lacks_is_refused_in_pluggys_words(manager: pluggy.PluginManager) -> None:
    class Wrong:
        @hookimpl
        def devprof_activity_profilers(self, config: object) -> Any: ...

    reason = _refused(manager, Wrong())
    assert reason.startswith("Plugin 'demo' for hook 'devprof_activity_profilers' hookimpl definition:")
    assert "Argument(s) {'config'} are declared in the hookimpl but can not be found in the hookspec" in reason


def test_a_misspelt_hook_is_refused_with_the_likely_one(manager: pluggy.PluginManager) -> None:
    class Typo:
        @hookimpl
        def devprof_activity_profiler(self) -> Any: ...

    assert (
        _refused(manager, Typo())
        == "unknown hook 'devprof_activity_profiler'; did you mean 'devprof_activity_profilers'?"
    )


def test_a_hook_of_a_later_contract_can_be_marked_optional(manager: pluggy.PluginManager) -> None:
    class Newer(OneHook):
        @hookimpl(optionalhook=True)
        def devprof_something_new(self) -> Any: ...

    assert list(attach(manager, "demo", Newer())) == ["devprof_activity_profilers"]


def test_a_hook_that_nothing_resembles_is_refused_with_the_list(manager: pluggy.PluginManager) -> None:
    class Other:
        @hookimpl
        def pytest_configure(self) -> Any: ...

    assert _refused(manager, Other()) == f"unknown hook 'pytest_configure'; hooks are {HOOKS}"


def test_a_plugin_may_not_wrap_the_others(manager: pluggy.PluginManager) -> None:
    class Wrapper:
        @hookimpl(wrapper=True)
        def devprof_activity_profilers(self) -> Any:
            yield

    assert _refused(manager, Wrapper()).startswith("hook 'devprof_activity_profilers' is a wrapper;")


def test_a_forgotten_mark_is_seen(manager: pluggy.PluginManager) -> None:
    class Unmarked:
        def devprof_activity_profilers(self) -> Any: ...

    assert _refused(manager, Unmarked()) == (
        "it implements no hook; mark 'devprof_activity_profilers' with @devprof.contract.hookimpl"
    )


def test_an_object_without_hooks_is_refused(manager: pluggy.PluginManager) -> None:
    assert _refused(manager, object()) == (
        f"it implements no hook; expected at least one of {HOOKS}, marked with @devprof.contract.hookimpl"
    )


def test_a_class_is_refused(manager: pluggy.PluginManager) -> None:
    assert _refused(manager, Plugin) == "gave the class Plugin, expected a module or an object: make an instance of it"


def test_the_same_object_under_a_second_name_is_refused(manager: pluggy.PluginManager) -> None:
    plugin = Plugin()
    attach(manager, "first", plugin)
    assert _refused(manager, plugin).startswith("Plugin already registered under a different name")


def test_an_object_whose_attributes_raise_leaves_nothing_behind(manager: pluggy.PluginManager) -> None:
    class Broken(OneHook):
        def __dir__(self) -> list[str]:
            raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        attach(manager, "demo", Broken())
    assert _state(manager) == ([], {})
    assert list(attach(manager, "demo", OneHook())) == ["devprof_activity_profilers"]


def test_a_name_that_is_taken_is_refused_and_its_owner_stays(manager: pluggy.PluginManager) -> None:
    owner = OneHook()
    attach(manager, "demo", owner)
    assert _refused(manager, OneHook()) == "a plugin of this name is registered already; choose another name"
    assert manager.get_plugin("demo") is owner
