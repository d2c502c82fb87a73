"""Installed plugins are found by entry point when they are first needed, and a broken one hides nobody."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from devprof import registry
from devprof.errors import PluginWarning, UsageError
from devprof.registry import PluginInfo, discovery
from tests.unit.registry import plugins
from tests.unit.registry.plugins import OneHook, Plugin, Profiler

Install = Callable[..., None]

MODULE = """
    from devprof.contract import hookimpl
    from tests.unit.registry.plugins import Profiler

    @hookimpl
    def devprof_activity_profilers():
        return [Profiler("{name}")]
"""


def _found() -> list[tuple[str, str]]:
    return [(one.plugin.name, one.name) for one in registry.discover().profilers]


def test_importing_the_room_scans_nothing_and_loads_no_plugin() -> None:
    code = (
        "import importlib.metadata as m; m.entry_points = m.distributions = None\n"
        "import devprof.registry, sys; print('numpy' in sys.modules, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.split()[1:]) == (0, ["False"]), done.stderr


def test_an_installed_module_is_loaded_with_its_distribution(install: Install) -> None:
    install("dist-sim", {"sim": "plugin_sim"}, version="2.5", plugin_sim=MODULE.format(name="sim device"))
    (one,) = registry.discover().profilers
    assert (one.name, one.plugin) == ("sim device", PluginInfo("sim", "dist-sim", "2.5", "entry point plugin_sim"))
    assert (one.distribution, one.version) == ("dist-sim", "2.5")


def test_an_entry_point_may_name_an_object_in_a_module(install: Install) -> None:
    source = "from tests.unit.registry.plugins import OneHook, Profiler\nplugin = OneHook(Profiler('x'))"
    install("dist-sim", {"sim": "plugin_sim:plugin"}, plugin_sim=source)
    assert _found() == [("sim", "x")]


def test_every_way_to_fail_at_import_is_recorded_with_its_cause_and_hides_nobody(install: Install) -> None:
    failing = {
        "a": "import no_such_module_anywhere",
        "b": "raise OSError('libdevice.so: cannot open')",
        "c": "raise RuntimeError('no device')",
        "d": "import sys; sys.exit(3)",
        "e": "def broken(:",
        "f": "x = 1",
    }
    for name, source in failing.items():
        install(f"dist-{name}", {name: f"plugin_{name}"}, **{f"plugin_{name}": source})
    install("dist-g", {"g": "plugin_g:missing"}, plugin_g="")
    install(
        "dist-good",
        {"z": "plugin_z", "0": "plugin_0"},
        plugin_z=MODULE.format(name="z"),
        plugin_0=MODULE.format(name="0"),
    )
    with pytest.warns(PluginWarning) as caught:
        assert _found() == [("0", "0"), ("z", "z")]
    failures = registry.discover().failures
    assert [(failure.name, failure.hook, failure.error.reason.partition(":")[0][:24]) for failure in failures] == [
        ("a", "entry point", "ModuleNotFoundError"),
        ("b", "entry point", "OSError"),
        ("c", "entry point", "RuntimeError"),
        ("d", "entry point", "SystemExit"),
        ("e", "entry point", "SyntaxError"),
        ("f", "registration", "it implements no hook; e"),
        ("g", "entry point", "AttributeError"),
    ]
    assert [f"plugin_{failure.name}.py" in failure.traceback for failure in failures[:4]] == [True] * 4
    assert len(caught) == len(failures)


def test_a_blocked_plugin_is_not_even_imported(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    install("dist-a", {"a": "plugin_a"}, plugin_a="raise RuntimeError('imported')")
    install("dist-b", {"b": "plugin_b"}, plugin_b=MODULE.format(name="b"))
    monkeypatch.setenv("DEVPROF_BLOCK_PLUGINS", " a , nobody,")
    assert (_found(), registry.discover().blocked) == ([("b", "b")], ("a",))
    assert registry.discover().failures == ()


def test_two_distributions_with_one_name_are_told_apart(install: Install) -> None:
    install("dist-one", {"sim": "plugin_one"}, plugin_one=MODULE.format(name="one"))
    install("dist-two", {"sim": "plugin_two"}, plugin_two=MODULE.format(name="two"))
    with pytest.warns(PluginWarning, match="the name is used by dist-one and by dist-two; the first one is kept"):
        assert _found() == [("sim", "one")]


def test_the_catalogue_is_made_once_also_by_many_threads(install: Install) -> None:
    source = """
        from tests.unit.registry import plugins
        plugins.LOADS.append("sim")
        plugin = plugins.OneHook()
    """
    plugins.LOADS.clear()
    install("dist-sim", {"sim": "plugin_sim:plugin"}, plugin_sim=source)
    with ThreadPoolExecutor(8) as pool:
        catalogues = list(pool.map(lambda _: registry.discover(), range(8), timeout=60))
    assert all(catalogue is catalogues[0] for catalogue in catalogues)
    assert plugins.LOADS == ["sim"]


def test_a_plugin_that_asks_for_the_catalogue_while_it_is_imported_does_not_hang(install: Install) -> None:
    asking = "from devprof.registry import discover\nseen = len(discover().plugins)\n"
    install("dist-a", {"a": "plugin_a"}, plugin_a=MODULE.format(name="a"))
    source = (
        asking + "from tests.unit.registry.plugins import OneHook, Profiler\nplugin = OneHook(Profiler(f'saw {seen}'))"
    )
    install("dist-b", {"b": "plugin_b:plugin"}, plugin_b=source)
    assert _found() == [("a", "a"), ("b", "saw 1")]


def test_refresh_finds_what_was_installed_meanwhile_and_keeps_plugins_of_this_process(install: Install) -> None:
    registry.register(OneHook(Profiler("mine")), "notebook")
    assert _found() == [("notebook", "mine")]
    install("dist-sim", {"sim": "plugin_sim"}, plugin_sim=MODULE.format(name="sim"))
    assert _found() == [("notebook", "mine")]
    assert registry.refresh() is registry.discover()
    assert _found() == [("notebook", "mine"), ("sim", "sim")]


def test_a_name_of_this_process_that_is_installed_meanwhile_is_reported(install: Install) -> None:
    registry.register(OneHook(Profiler("mine")), "sim")
    install("dist-sim", {"sim": "plugin_sim"}, plugin_sim=MODULE.format(name="sim"))
    with pytest.warns(PluginWarning, match="plugin 'sim', registration: a plugin of this name is registered already"):
        registry.refresh()
    assert _found() == [("sim", "sim")]


@pytest.mark.usefixtures("fresh_registry")
def test_a_plugin_of_this_process_can_come_and_go() -> None:
    registry.register(Plugin([Profiler("mine")]), "notebook")
    assert [one.source for one in registry.discover().profilers] == ["registered in this process"]
    registry.unregister("notebook")
    assert (_found(), registry.refresh().profilers) == ([], ())


@pytest.mark.usefixtures("fresh_registry")
def test_only_plugins_of_this_process_can_be_unregistered() -> None:
    with pytest.raises(
        UsageError, match=r"no plugin named 'sim' was registered in this process; .*DEVPROF_BLOCK_PLUGINS"
    ):
        registry.unregister("sim")


@pytest.mark.usefixtures("fresh_registry")
@pytest.mark.parametrize("name", ["", "  ", "a,b", None])
def test_a_plugin_needs_a_usable_name(name: str) -> None:
    with pytest.raises(UsageError, match="a plugin's name must be a text"):
        registry.register(OneHook(), name)


@pytest.mark.usefixtures("fresh_registry")
def test_damaged_metadata_of_a_distribution_leaves_the_plugins_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def entry_points(*, group: str) -> Iterator[object]:
        raise KeyError("Name")

    monkeypatch.setattr(discovery, "entry_points", entry_points)
    with pytest.warns(PluginWarning, match="plugin 'devprof.plugins', entry point: KeyError: 'Name'"):
        registry.register(OneHook(Profiler("mine")), "notebook")
    assert _found() == [("notebook", "mine")]


def test_an_interrupt_while_plugins_load_leaves_nothing_half_done(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("dist-a", {"a": "plugin_a"}, plugin_a=MODULE.format(name="a"))
    install(
        "dist-b",
        {"b": "plugin_b"},
        plugin_b="import os\nif os.environ.get('INTERRUPT'): raise KeyboardInterrupt\n" + "x = 1",
    )
    monkeypatch.setenv("INTERRUPT", "1")
    with pytest.raises(KeyboardInterrupt):
        registry.discover()
    monkeypatch.delenv("INTERRUPT")
    with pytest.warns(PluginWarning, match="plugin 'b', registration: it implements no hook"):
        assert _found() == [("a", "a")]
