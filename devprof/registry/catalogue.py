"""`Catalogue`: every plugin of the process, and what each of them registered.

Hooks are called when their answers are first asked for, plugin by plugin in the order of names, each behind its own guard.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar, cast

import pluggy

from devprof.contract import PROJECT_NAME, DevprofSpec, IActivityProfiler, NativeBuild, ProfilerStubs
from devprof.errors import PluginContractError, UsageError
from devprof.registry.attach import attach
from devprof.registry.entries import PluginInfo, RegisteredProfiler, RegisteredStubs
from devprof.registry.failures import PluginFailure
from devprof.registry.guard import Guard
from devprof.registry.returns import describe
from devprof.registry.validate import validate_build, validate_profiler, validate_stubs

__all__ = ["Catalogue"]

T = TypeVar("T")

_FAILED = object()
LEFT_OUT = "It is left out; everything else goes on. 'devprof plugins -v' shows the traceback."


@dataclass(slots=True)
class _Plugin:
    """One attached plugin: its hooks, and their answers so far."""

    info: PluginInfo
    hooks: dict[str, Callable[[], object]]
    guard: Guard
    answers: dict[str, tuple[object, ...]] = field(default_factory=dict)


class Catalogue:
    """The plugins of this process. Usable from any thread; a hook runs on the thread that first needs its answer.

    Made by `devprof.registry.discover`; tests may make their own, which is then empty.
    """

    def __init__(self, blocked: Iterable[str] = ()) -> None:
        """Make an empty catalogue.

        Args:
            blocked: names of plugins or profilers to leave out.
        """
        self._manager = pluggy.PluginManager(PROJECT_NAME)
        self._manager.add_hookspecs(DevprofSpec)
        self._blocked_names = frozenset(blocked)
        self._blocked: dict[str, None] = {}
        self._plugins: dict[str, _Plugin] = {}
        self._failures: list[PluginFailure] = []
        self._owners: dict[str, str] = {}
        # a plugin may ask for the catalogue while it is being loaded; it then sees what is there so far
        self._lock = threading.RLock()

    @property
    def profilers(self) -> tuple[RegisteredProfiler, ...]:
        """Activity profilers that fit the contract, by plugin name."""
        return self._all("devprof_activity_profilers", self._read_profilers)

    @property
    def stubs(self) -> tuple[RegisteredStubs, ...]:
        """Stubs for torch's legacy profiler that fit the contract, by plugin name, one per torch device."""
        return self._all("devprof_profiler_stubs", self._read_stubs)

    @property
    def native_builds(self) -> tuple[NativeBuild, ...]:
        """Native libraries that plugins can build, by plugin name."""
        return self._all("devprof_native_builds", self._read_builds)

    @property
    def doctor_lines(self) -> tuple[tuple[str, str], ...]:
        """What plugins say of their devices and libraries: the plugin's name and one line, by plugin name."""
        return self._all("devprof_doctor_lines", self._read_lines)

    @property
    def failures(self) -> tuple[PluginFailure, ...]:
        """What went wrong so far, oldest first. Hooks that nobody asked for yet have not had their chance to fail."""
        return tuple(self._failures)

    @property
    def plugins(self) -> tuple[PluginInfo, ...]:
        """Every attached plugin, by name; those that failed to load are in `failures`."""
        with self._lock:
            return tuple(plugin.info for plugin in self._in_order())

    @property
    def blocked(self) -> tuple[str, ...]:
        """Names of plugins and profilers that were found and left out because they are blocked."""
        return tuple(self._blocked)

    def profilers_for(self, torch_device: str | None, names: Iterable[str]) -> tuple[RegisteredProfiler, ...]:
        """Return the profilers that take part in a session.

        Args:
            torch_device: the renamed backend of the session; every profiler that serves it takes part. None: no backend.
            names: further profilers, by their own name or their plugin's.

        Raises:
            UsageError: a name is unknown; the message lists the known ones, and says why a plugin of that name is missing.
        """
        if isinstance(names, str):
            raise UsageError(f"profiler names must be a list of names, found the text {names!r}; write [{names!r}]")
        wanted = {name.strip() for name in names} - {""}
        known = self.profilers
        unknown = wanted - {name for one in known for name in (one.name, one.plugin.name)}
        if unknown:
            raise UsageError(self._unknown(sorted(unknown), known))
        return tuple(
            one
            for one in known
            if {one.name, one.plugin.name} & wanted
            or (torch_device is not None and one.capabilities.torch_device == torch_device)
        )

    def add(self, info: PluginInfo, load: Callable[[], object]) -> bool:
        """Load a plugin and take it in; a failure is recorded, with one `PluginWarning`, and never raised.

        Args:
            info: who it is.
            load: returns the plugin's module or object.

        Returns:
            True if the plugin is in.
        """
        guard = self._guard(info.name)
        with self._lock:
            return guard.call("entry point", self._load_and_attach, info, load, guard, default=False)

    def guarded(self, info: PluginInfo, work: Callable[[], object]) -> None:
        """Do a piece of loading; a failure is recorded as in `add`."""
        self._guard(info.name).call("entry point", work)

    def add_object(self, info: PluginInfo, plugin: object) -> None:
        """Take in a plugin object of this process.

        Raises:
            PluginContractError: it implements no hook, or one that does not fit.
            UsageError: the name is taken.
        """
        with self._lock:
            if info.name in self._plugins:
                raise UsageError(f"a plugin named {info.name!r} is registered already; unregister it first")
            self._load_and_attach(info, lambda: plugin, self._guard(info.name))

    def remove(self, name: str) -> None:
        """Take a plugin out, with its failures.

        Raises:
            UsageError: there is no plugin of that name.
        """
        with self._lock:
            if self._plugins.pop(name, None) is None:
                raise UsageError(f"no plugin named {name!r} is registered; registered are {_listed(self._plugins)}")
            self._manager.unregister(name=name)
            self._owners = {what: owner for what, owner in self._owners.items() if owner != name}
            self._failures[:] = [failure for failure in self._failures if failure.name != name]

    def _load_and_attach(self, info: PluginInfo, load: Callable[[], object], guard: Guard) -> bool:
        if info.name in self._blocked_names:
            self._blocked[info.name] = None
            return False
        hooks = attach(self._manager, info.name, load())
        self._plugins[info.name] = _Plugin(info, hooks, guard)
        return True

    def _guard(self, name: str) -> Guard:
        return Guard(name, self._failures.append, consequence=LEFT_OUT)

    def _in_order(self) -> list[_Plugin]:
        return [self._plugins[name] for name in sorted(self._plugins)]

    def _all(self, hook: str, read: Callable[[_Plugin, object], Iterator[T]]) -> tuple[T, ...]:
        with self._lock:
            for plugin in self._in_order():
                if hook in plugin.hooks and hook not in plugin.answers:
                    plugin.answers[hook] = ()  # what a plugin sees that asks for the catalogue inside its hook
                    answer = plugin.guard.call(hook, plugin.hooks[hook], default=_FAILED)
                    plugin.answers[hook] = () if answer is _FAILED else tuple(read(plugin, answer))
            return cast("tuple[T, ...]", tuple(x for plugin in self._in_order() for x in plugin.answers.get(hook, ())))

    def _read_profilers(self, plugin: _Plugin, answer: object) -> Iterator[RegisteredProfiler]:
        hook = "devprof_activity_profilers"
        for item in self._items(plugin, hook, answer, "profilers"):
            facts = plugin.guard.call(hook, validate_profiler, plugin.info.name, item)
            if facts is None:
                continue
            if facts.name in self._blocked_names:
                self._blocked[facts.name] = None
            elif self._claim(plugin, hook, f"profiler {facts.name!r}"):
                yield RegisteredProfiler(
                    facts.name,
                    cast(IActivityProfiler, item),
                    facts.capabilities,
                    facts.available_activities,
                    plugin.info,
                )

    def _read_stubs(self, plugin: _Plugin, answer: object) -> Iterator[RegisteredStubs]:
        hook = "devprof_profiler_stubs"
        if answer is None:
            return
        device = plugin.guard.call(hook, validate_stubs, plugin.info.name, answer)
        if device is not None and self._claim(plugin, hook, f"stubs for torch device {device!r}"):
            yield RegisteredStubs(plugin.info.name, cast(ProfilerStubs, answer), device, plugin.info)

    def _read_builds(self, plugin: _Plugin, answer: object) -> Iterator[NativeBuild]:
        hook = "devprof_native_builds"
        for item in self._items(plugin, hook, answer, "native builds"):
            build = plugin.guard.call(hook, validate_build, plugin.info.name, item)
            if build is not None and self._claim(plugin, hook, f"native build {build.name!r}"):
                yield build

    def _read_lines(self, plugin: _Plugin, answer: object) -> Iterator[tuple[str, str]]:
        hook = "devprof_doctor_lines"
        for item in self._items(plugin, hook, answer, "lines of text"):
            if isinstance(item, str):
                yield plugin.info.name, " ".join(item.split())
            else:
                plugin.guard.fail(
                    PluginContractError(plugin.info.name, hook, f"a line is {describe(item)}, expected text")
                )

    def _items(self, plugin: _Plugin, hook: str, answer: object, what: str) -> list[object]:
        if isinstance(answer, list | tuple):
            return list(answer)
        advice = "is a 'return' missing?" if answer is None else "put it in a list, even a single one"
        message = f"returned {describe(answer)}, expected a list of {what}: {advice}"
        plugin.guard.fail(PluginContractError(plugin.info.name, hook, message))
        return []

    def _claim(self, plugin: _Plugin, hook: str, what: str) -> bool:
        owner = self._owners.get(what)
        if owner is None:
            self._owners[what] = plugin.info.name
            return True
        message = f"{what} is registered already by plugin {owner!r}; names must be unique, choose another"
        plugin.guard.fail(PluginContractError(plugin.info.name, hook, message))
        return False

    def _unknown(self, unknown: list[str], known: Iterable[RegisteredProfiler]) -> str:
        causes = [str(failure.error) for failure in self._failures if failure.name in unknown]
        causes += [f"{name!r} is blocked by DEVPROF_BLOCK_PLUGINS" for name in unknown if name in self._blocked]
        reasons = f" ({'; '.join(causes)})" if causes else ""
        asked = ", ".join(repr(name) for name in unknown)
        return f"no profiler named {asked}{reasons}; known are {_listed(one.name for one in known)}"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in sorted(names)) or "none"
