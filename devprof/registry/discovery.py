"""Find plugins, and keep one catalogue for the process.

Nothing is scanned or imported until `discover` is first called. A plugin's module must not call it while it is imported: two
threads could then wait for each other, one holding the catalogue and one Python's import lock.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points

from devprof.errors import PluginContractError, UsageError
from devprof.registry.catalogue import Catalogue
from devprof.registry.entries import PluginInfo

__all__ = ["ENTRY_POINT_GROUP", "discover", "refresh", "register", "unregister"]

ENTRY_POINT_GROUP = "devprof.plugins"

_lock = threading.RLock()
_catalogue: Catalogue | None = None
_in_process: dict[str, object] = {}


def discover() -> Catalogue:
    """Return the catalogue of this process; the first call loads the plugins.

    Entry points of group ``devprof.plugins`` are loaded in the order of their names, except those that
    ``DEVPROF_BLOCK_PLUGINS`` (names, separated by commas) leaves out. Whatever a plugin raises while it is loaded,
    `SystemExit` included, is recorded in `Catalogue.failures` with one `PluginWarning`, and the next plugin is loaded.
    """
    global _catalogue
    with _lock:
        if _catalogue is None:
            # set before it is filled: a plugin that asks while it is loaded sees what is there so far
            _catalogue = Catalogue(_blocked_names())
            try:
                _fill(_catalogue)
            except BaseException:
                _catalogue = None  # Ctrl-C: the next call starts afresh
                raise
        return _catalogue


def refresh() -> Catalogue:
    """Load the plugins again, such as after an installation in a running notebook, and return the new catalogue.

    Plugins registered in this process stay. Python does not import a module twice, so changed code needs a new process.
    """
    global _catalogue
    with _lock:
        _catalogue = None
        return discover()


def register(plugin_object: object, name: str) -> None:
    """Take in a plugin of this process, as tests and notebooks do.

    Args:
        plugin_object: a module or object that implements hooks with `devprof.contract.hookimpl`.
        name: name of the plugin, unique in the process.

    Raises:
        PluginContractError: the object implements no hook, or one that does not fit.
        UsageError: the name is taken, or is no usable name.
    """
    if not isinstance(name, str) or not name.strip() or "," in name:
        raise UsageError(f"a plugin's name must be a text that is not empty and has no comma, found {name!r}")
    with _lock:
        discover().add_object(PluginInfo(name), plugin_object)
        _in_process[name] = plugin_object


def unregister(name: str) -> None:
    """Take out a plugin that `register` took in, with its recorded failures.

    Raises:
        UsageError: no plugin of that name was registered in this process.
    """
    with _lock:
        if name not in _in_process:
            raise UsageError(
                f"no plugin named {name!r} was registered in this process; for an installed one use DEVPROF_BLOCK_PLUGINS"
            )
        del _in_process[name]
        discover().remove(name)


def _blocked_names() -> frozenset[str]:
    return frozenset(name.strip() for name in os.environ.get("DEVPROF_BLOCK_PLUGINS", "").split(",")) - {""}


def _fill(catalogue: Catalogue) -> None:
    seen: dict[str, EntryPoint] = {}
    for entry in sorted(_entries(catalogue), key=lambda entry: (entry.name, _distribution(entry))):
        first = seen.setdefault(entry.name, entry)
        if first is entry:
            catalogue.add(_info(entry), entry.load)
        elif (first.value, _distribution(first)) != (entry.value, _distribution(entry)):
            catalogue.add(_info(entry), _refusal(entry, first))
    for name, plugin in sorted(_in_process.items()):
        catalogue.add(PluginInfo(name), functools.partial(_same, plugin))


def _same(plugin: object) -> object:
    return plugin


def _entries(catalogue: Catalogue) -> list[EntryPoint]:
    found: list[EntryPoint] = []
    # one distribution with damaged metadata makes the listing itself raise; plugins of this process still work then
    source = PluginInfo(ENTRY_POINT_GROUP, source="list of entry points")
    catalogue.guarded(source, lambda: found.extend(entry_points(group=ENTRY_POINT_GROUP)))
    return found


def _info(entry: EntryPoint) -> PluginInfo:
    name, version = _distribution(entry)
    return PluginInfo(entry.name, name, version, f"entry point {entry.value}")


def _distribution(entry: EntryPoint) -> tuple[str, str]:
    try:
        dist = entry.dist
        return ("", "") if dist is None else (dist.name or "", dist.version or "")
    except Exception:  # noqa: BLE001 - damaged metadata of a distribution; its plugin may work all the same
        return "", ""


def _refusal(entry: EntryPoint, first: EntryPoint) -> Callable[[], object]:
    """Return a stand-in for the loader of a plugin whose name is taken."""
    names = [_distribution(one)[0] or "an unknown distribution" for one in (first, entry)]

    def refuse() -> object:
        reason = f"the name is used by {names[0]} and by {names[1]}; the first one is kept, rename the other"
        raise PluginContractError(entry.name, "entry point", reason)

    return refuse
