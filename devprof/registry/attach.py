"""Take a plugin object into pluggy's manager, and check its hooks one plugin at a time."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable

import pluggy

from devprof.contract import DevprofSpec
from devprof.errors import PluginContractError
from devprof.registry.returns import describe

__all__ = ["attach"]

_HOOK = "registration"
_HOOKS = tuple(name for name in vars(DevprofSpec) if name.startswith("devprof_"))


def attach(manager: pluggy.PluginManager, name: str, plugin: object) -> dict[str, Callable[[], object]]:
    """Register a plugin with the manager and return its hooks; on failure the manager is as before.

    Args:
        manager: pluggy's manager, with `DevprofSpec`.
        name: name of the plugin.
        plugin: its module or object.

    Raises:
        PluginContractError: the plugin is a class, implements no hook, implements one that is unknown or
            does not fit its spec, or its name is taken.
    """
    if manager.has_plugin(name):
        raise PluginContractError(name, _HOOK, "a plugin of this name is registered already; choose another name")
    if isinstance(plugin, type):
        message = f"gave {describe(plugin)}, expected a module or an object: make an instance of it"
        raise PluginContractError(name, _HOOK, message)
    try:
        manager.register(plugin, name)
        return _hooks(manager, name, plugin)
    except BaseException as error:
        manager.unregister(name=name)
        if isinstance(error, pluggy.PluginValidationError | ValueError):
            raise PluginContractError(name, _HOOK, " ".join(str(error).split())) from error
        raise


def _hooks(manager: pluggy.PluginManager, name: str, plugin: object) -> dict[str, Callable[[], object]]:
    found: dict[str, Callable[[], object]] = {}
    for caller in manager.get_hookcallers(plugin) or ():
        for implementation in (one for one in caller.get_hookimpls() if one.plugin is plugin):
            _check_hook(name, caller, implementation)
            if caller.has_spec():
                found[caller.name] = implementation.function
    if not found:
        raise PluginContractError(name, _HOOK, f"it implements no hook; {_unmarked(plugin)}")
    return found


def _check_hook(name: str, caller: pluggy.HookCaller, implementation: pluggy.HookImpl) -> None:
    if implementation.wrapper or implementation.hookwrapper:
        message = f"hook {caller.name!r} is a wrapper; a plugin answers for itself and may not wrap the others"
        raise PluginContractError(name, _HOOK, message)
    if not caller.has_spec() and not implementation.optionalhook:
        close = difflib.get_close_matches(caller.name, _HOOKS, n=1)
        advice = f"did you mean {close[0]!r}?" if close else f"hooks are {', '.join(_HOOKS)}"
        raise PluginContractError(name, _HOOK, f"unknown hook {caller.name!r}; {advice}")


def _unmarked(plugin: object) -> str:
    forgotten = [hook for hook in _HOOKS if inspect.isroutine(getattr(plugin, hook, None))]
    if forgotten:
        return f"mark {forgotten[0]!r} with @devprof.contract.hookimpl"
    return f"expected at least one of {', '.join(_HOOKS)}, marked with @devprof.contract.hookimpl"
