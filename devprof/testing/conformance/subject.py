"""`Subject`: the plugin under test, however its author names it."""

from __future__ import annotations

import importlib
import itertools
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any, Self

from devprof.contract import ProfilerStubs
from devprof.errors import DevprofWarning, UsageError
from devprof.registry import RegisteredProfiler, discover, register, unregister
from devprof.testing.plugin import plugin_of

__all__ = ["WORKLOADS", "Subject", "workload_of"]

WORKLOADS = "devprof.workloads"
"""Group of entry points, by plugin name, that give ``devprof conform`` the workload of an installed plugin."""

_numbers = itertools.count(1)


class Subject:
    """A plugin under test; a context manager, for a plugin that is only registered for the tests.

    Attributes:
        title: what to call it.
        importable: how a fresh interpreter finds it: an entry point's name or ``"module:attribute"``; empty: not at all.
        failures: why devprof left it out, one sentence each.
    """

    def __init__(self, plugin: Any) -> None:
        """Find a plugin.

        Args:
            plugin: the name of an installed one; ``"module:attribute"``; an activity profiler; an object or module with hooks;
                or a function that returns one of these.

        Raises:
            UsageError: there is no plugin of that name, or the object is none.
        """
        self.title = plugin if isinstance(plugin, str) else ""
        self.importable = self.title
        self.failures: list[str] = []
        self._registered = ""
        self._name = ""
        self._profiler: RegisteredProfiler | None = None
        if isinstance(plugin, str) and ":" not in plugin:
            self._name = plugin
            self._find_installed(plugin)
        else:
            self._register(_object(plugin))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Take out what was registered for the tests."""
        name, self._registered = self._registered, ""
        if name:
            unregister(name)

    @property
    def profiler(self) -> RegisteredProfiler | None:
        """The activity profiler, or None where devprof left it out or the plugin has none."""
        return self._profiler

    @property
    def stubs(self) -> ProfilerStubs | None:
        """The plugin's stubs for torch's legacy profiler, or None."""
        return next((one.stubs for one in discover().stubs if one.plugin.name == self._name), None)

    def _find_installed(self, name: str) -> None:
        catalogue = discover()
        try:
            (self._profiler, *_) = catalogue.profilers_for(None, [name])
        except UsageError:
            self.failures = [str(one.error) for one in catalogue.failures if one.name == name]
            if not self.failures:
                raise
            return
        self._name = self._profiler.plugin.name

    def _register(self, plugin: Any) -> None:
        self._name = f"conformance {next(_numbers)}"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DevprofWarning)  # a plugin that is left out is what C102 tells
            try:
                register(plugin, self._name)
            except UsageError:
                raise
            except Exception as error:  # noqa: BLE001 - a check reports whatever a plugin's registration raises
                self.failures = [str(error)]
                return
            self._registered = self._name
            found = [one for one in discover().profilers if one.plugin.name == self._name]
            _ = discover().stubs
        self.failures = [str(one.error) for one in discover().failures if one.name == self._name]
        self._profiler = found[0] if found else None
        self.title = self.title or (found[0].name if found else type(plugin).__name__)


def _object(plugin: Any) -> Any:
    if isinstance(plugin, str):
        module, _, attribute = plugin.partition(":")
        try:
            plugin = getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            raise UsageError(f"plugin {plugin!r} cannot be imported: {error}") from error
    if not _is_plugin(plugin) and callable(plugin):
        plugin = plugin()
    if not _is_plugin(plugin):
        raise UsageError(
            f"the plugin is {plugin!r}; expected the name of an installed one, 'module:attribute', an activity profiler, an "
            "object or module with hooks, or a function that returns one"
        )
    return plugin_of(plugin) if hasattr(plugin, "configure") else plugin


def _is_plugin(plugin: Any) -> bool:
    if isinstance(plugin, type):
        return False
    hooks = ("devprof_activity_profilers", "devprof_profiler_stubs")
    return isinstance(plugin, ModuleType) or any(hasattr(plugin, name) for name in ("configure", *hooks))


def workload_of(plugin: str) -> object | None:
    """Return the workload that an installed plugin's entry point of group ``devprof.workloads`` gives, or None.

    Raises:
        UsageError: it cannot be loaded.
    """
    from importlib.metadata import entry_points

    for entry in entry_points(group=WORKLOADS):
        if entry.name == plugin:
            try:
                workload: object = made(entry.load())
            except Exception as error:
                raise UsageError(f"the workload of plugin {plugin!r} cannot be loaded: {error!r}") from error
            return workload
    return None


def made(workload: Any) -> Any:
    """Return a workload, made where a class or function was given."""
    maker: Callable[[], Any] | None = workload if callable(workload) and not hasattr(workload, "launch") else None
    return workload() if maker or isinstance(workload, type) else workload
