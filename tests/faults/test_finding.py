"""What runs while plugins are found, every fault, both hosts: the profile, its neighbours and the program are whole."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

import devprof
from devprof import registry
from devprof.contract import Capabilities, hookimpl
from devprof.errors import DevprofWarning
from devprof.model import ActivityType
from devprof.registry import discovery
from tests.faults.land import Faults, Trouble, Work
from tests.faults.matrix import FAULTS, FINDING, HOSTS, Verdict, found_cell

IMPORT = FINDING[0]
MODULE = "a_faulty_plugin"
TEXT = f"import {__name__} as land\nplugin = land.imported()\n"
"""The faulty plugin's module: what it does when it is imported is set by the test."""

imported: Callable[[], Any]


class Plugin:
    """A plugin; one of what is called while it is found calls `trouble` with what does its work."""

    def __init__(self, hook: str, trouble: Trouble) -> None:
        self.hook, self.trouble, self.called = hook, trouble, 0

    def call(self, hook: str, work: Work) -> Any:
        if hook != self.hook:
            return work()
        self.called += 1
        return self.trouble(work)

    @hookimpl
    def devprof_activity_profilers(self) -> Any:
        return self.call("devprof_activity_profilers", lambda: [self])

    def name(self) -> Any:
        return self.call("name", lambda: "faulty")

    def capabilities(self) -> Any:
        return self.call("capabilities", lambda: Capabilities(torch_device="faulty"))

    def available_activities(self) -> Any:
        return self.call("available_activities", lambda: {ActivityType.CONCURRENT_KERNEL})

    def configure(self, activity_types: Any, config: Any, **times: Any) -> None:
        return None


def flood(hook: str, plugin: Plugin) -> Trouble:
    floods: dict[str, Callable[[], Any]] = {
        IMPORT: lambda: [plugin] * 1_000_000,
        "devprof_activity_profilers": lambda: iter(int, 1),
        "name": lambda: "x" * 10_000_000,
        "capabilities": lambda: [Capabilities()] * 1_000_000,
        "available_activities": lambda: iter(int, 1),
    }
    return lambda work: floods[hook]()


@pytest.fixture(params=HOSTS)
def host(request: pytest.FixtureRequest) -> str:
    if request.param == "torch":
        pytest.importorskip("torch", reason="the other host is torch")
    return str(request.param)


@pytest.fixture
def only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The faulty plugin is the only one that is installed."""
    (tmp_path / f"{MODULE}.py").write_text(TEXT)
    monkeypatch.syspath_prepend(str(tmp_path))
    entry = EntryPoint("faulty", f"{MODULE}:plugin", registry.ENTRY_POINT_GROUP)
    monkeypatch.setattr(discovery, "entry_points", lambda group: [entry])
    monkeypatch.setattr(discovery, "_catalogue", None)
    yield
    sys.modules.pop(MODULE, None)
    monkeypatch.undo()
    registry.refresh()


@pytest.fixture
def faults(host: str) -> Iterator[Faults]:
    faults = Faults(host)
    yield faults
    faults.released.set()


@pytest.mark.usefixtures("only")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("hook", FINDING)
def test_a_plugin_that_misbehaves_while_it_is_found_costs_itself_at_most(
    host: str, faults: Faults, monkeypatch: pytest.MonkeyPatch, hook: str, fault: str
) -> None:
    if fault == "call torch":
        pytest.importorskip("torch", reason="the hook calls torch")
    plugin = Plugin(hook, lambda work: None)
    plugin.trouble = (
        flood(hook, plugin) if fault == "flood" else faults.slow if fault == "hang" else faults.of(hook, fault)
    )
    monkeypatch.setattr(sys.modules[__name__], "imported", lambda: plugin.call(IMPORT, lambda: plugin), raising=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            with devprof.profile(host=host, activities=["cpu"]) as prof, devprof.record_function("range"):
                registry.discover().profilers  # noqa: B018 - found by now, whatever the host needs
    told = [str(one.message) for one in caught if issubclass(one.category, DevprofWarning)]
    found = [one.name for one in registry.discover().profilers]
    assert plugin.called == 1, "found once"
    assert "range" in {prof.trace.name_of(event) for event in range(len(prof.trace))}
    if found_cell(hook, fault) is Verdict.LEFT_OUT:
        (warning,) = told
        assert warning.startswith("plugin 'faulty'")
        assert len(warning) < 1000
        assert found == []
    else:
        assert (told, found) == ([], ["faulty"])
    if fault == "re-enter":
        assert faults.refused
        assert all("start() inside a plugin's " in text for text in faults.refused), faults.refused
    if fault == "fork":
        assert {os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in faults.children} == {0}
