"""Does an object fit the contract? Each check says what is wrong, what was expected and what to do.

These functions call the plugin (`name`, `capabilities`, `available_activities`), so they run where plugins may run.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FunctionType, MethodType
from typing import NamedTuple, cast
from weakref import WeakKeyDictionary

from devprof.contract import (
    CONTRACT_VERSION,
    Capabilities,
    CorrelationAccess,
    IActivityProfilerSession,
    NativeBuild,
)
from devprof.errors import PluginContractError
from devprof.model import ActivityType
from devprof.registry.failures import as_plugin_error, must_propagate
from devprof.registry.returns import PROFILER_RETURNS, SESSION_RETURNS, STUBS_RETURNS, check_return, describe

__all__ = ["ProfilerFacts", "validate_build", "validate_profiler", "validate_session", "validate_stubs"]

_FITTING: WeakKeyDictionary[FunctionType, set[str]] = WeakKeyDictionary()
"""Functions that were found to fit as a method of these names."""

_LONGEST_NAME = 100  # it stands in warnings, in rows and in lists that are typed
_PROFILER_METHODS = ("name", "capabilities", "available_activities", "configure")
_SESSION_METHODS = ("start", "stop", "process_trace")
# how devprof calls each method: positional arguments, keywords
_CALLS: dict[str, tuple[int, tuple[str, ...]]] = {
    "configure": (2, ("ts_ms", "duration_ms")),
    "process_trace": (4, ()),
    "flush_trace": (1, ()),
    "push_correlation_id": (1, ()),
    "push_user_correlation_id": (1, ()),
    "toggle_collection_dynamic": (1, ()),
    "elapsed": (2, ()),
    "mark": (1, ()),
    "range_push": (1, ()),
    "on_each_device": (1, ()),
}


class ProfilerFacts(NamedTuple):
    """What a profiler answered at registration.

    Attributes:
        name: the profiler's own name.
        capabilities: what it is and can do.
        available_activities: kinds it can record.
    """

    name: str
    capabilities: Capabilities
    available_activities: frozenset[ActivityType]


def validate_profiler(name: str, obj: object) -> ProfilerFacts:
    """Check an `IActivityProfiler` and return what it says about itself.

    Args:
        name: name of the plugin, for messages.
        obj: what its hook returned.

    Raises:
        PluginContractError: it does not fit the contract.
        PluginError: one of its methods raised.
    """
    hook = "devprof_activity_profilers"
    _check_methods(name, hook, obj, "an IActivityProfiler", required=_PROFILER_METHODS)
    own_name = cast(str, _ask(name, obj, "name"))
    capabilities = cast(Capabilities, _ask(name, obj, "capabilities"))
    activities = cast(Iterable[ActivityType], _ask(name, obj, "available_activities"))
    _check_name(name, "profiler.name", own_name)
    _check_capabilities(name, capabilities)
    return ProfilerFacts(own_name, capabilities, frozenset(activities))


def validate_session(name: str, obj: object) -> IActivityProfilerSession:
    """Check what `configure` returned (other than None) and return it.

    A session needs `start`, `stop` and `process_trace`; further methods must be callable where they exist.

    Args:
        name: name of the plugin, for messages.
        obj: the session.

    Raises:
        PluginContractError: it does not fit the contract.
    """
    optional = [method for method in SESSION_RETURNS if method not in _SESSION_METHODS]
    what = "an IActivityProfilerSession or None"
    _check_methods(name, "profiler.configure", obj, what, required=_SESSION_METHODS, optional=optional)
    return cast(IActivityProfilerSession, obj)


def validate_stubs(name: str, obj: object) -> str:
    """Check `ProfilerStubs` and return the name of the torch device that they serve.

    Args:
        name: name of the plugin, for messages.
        obj: what its hook returned.

    Raises:
        PluginContractError: they do not fit the contract.
    """
    hook = "devprof_profiler_stubs"
    _check_methods(name, hook, obj, "ProfilerStubs", required=tuple(STUBS_RETURNS))
    device = _attribute(obj, "torch_device")
    if not isinstance(device, str) or not device:
        found = "no such attribute" if device is None else describe(device)
        message = f"torch_device must be the name of the renamed backend, such as 'npu'; found {found}"
        raise PluginContractError(name, hook, message)
    return device


def validate_build(name: str, obj: object) -> NativeBuild:
    """Check a `NativeBuild` and return it.

    Args:
        name: name of the plugin, for messages.
        obj: an item of what its hook returned.

    Raises:
        PluginContractError: it does not fit the contract.
    """
    hook = "devprof_native_builds"
    check_return(name, f"{hook}, item", obj, NativeBuild)
    build = cast(NativeBuild, obj)
    _check_name(name, hook, build.name)
    bad = [path for path in build.sources if not isinstance(path, Path) or not path.is_absolute()]
    if bad or not build.sources:
        found = describe(bad[0]) if bad else "none"
        raise PluginContractError(name, hook, f"build {build.name!r} needs sources as absolute paths, found {found}")
    return build


def _ask(plugin: str, profiler: object, method: str) -> object:
    hook = f"profiler.{method}"
    try:
        value = getattr(profiler, method)()
    except BaseException as error:
        if must_propagate(error):
            raise
        raise as_plugin_error(plugin, hook, error) from error
    check_return(plugin, hook, value, PROFILER_RETURNS[method])
    return value


def _check_methods(
    plugin: str,
    hook: str,
    obj: object,
    what: str,
    *,
    required: Iterable[str],
    optional: Iterable[str] = (),
) -> None:
    if isinstance(obj, type):
        raise PluginContractError(plugin, hook, f"gave {describe(obj)}, expected {what}: make an instance of it")
    found = {name: _attribute(obj, name) for name in (*required, *optional)}
    missing = [name for name in required if found[name] is None]
    if missing:
        message = f"{describe(obj)} is not {what}: it has no {_listed(missing)}"
        raise PluginContractError(plugin, hook, message)
    for name, method in found.items():
        problem = "" if method is None else _method_problem(name, method)
        if problem:
            raise PluginContractError(plugin, hook, f"method {name!r} of {describe(obj)} {problem}")


def _method_problem(name: str, method: object) -> str:
    function = method.__func__ if type(method) is MethodType else None
    known = _FITTING.get(function) if type(function) is FunctionType else None
    if known is not None and name in known:
        return ""  # a plugin makes a session per capture, and reading eighteen signatures takes longer than starting it
    problem = _problem_of(name, method)
    if not problem and type(function) is FunctionType:
        _FITTING.setdefault(function, set()).add(name)
    return problem


def _problem_of(name: str, method: object) -> str:
    if not callable(method):
        return f"is {describe(method)}, expected a method"
    if inspect.iscoroutinefunction(method):
        return "is async and nobody would await it; write a plain function"
    if inspect.isgeneratorfunction(method):
        return "has a 'yield', so calling it would not run its body; write a plain function"
    return _signature_problem(name, method)


def _signature_problem(name: str, method: Callable[..., object]) -> str:
    try:
        signature = inspect.signature(method)
    except (TypeError, ValueError):
        return ""  # a function in C that does not say; it will be found out when it is called
    n_positional, keywords = _CALLS.get(name, (0, ()))
    try:
        signature.bind(*range(n_positional), **dict.fromkeys(keywords))
    except TypeError as error:
        arguments = [*(f"argument {i + 1}" for i in range(n_positional)), *(f"{key}=" for key in keywords)]
        called = f"{name}({', '.join(arguments)})"
        return f"has the signature {signature}, but is called as {called}: {error}"
    return ""


def _attribute(obj: object, name: str) -> object:
    try:
        return getattr(obj, name, None)
    except Exception:  # noqa: BLE001 - a property of a plugin may do anything; the caller says that it is missing
        return None


def _check_name(plugin: str, hook: str, name: object) -> None:
    fits = isinstance(name, str) and 0 < len(name) <= _LONGEST_NAME
    if fits and isinstance(name, str) and name == name.strip() and "," not in name and name.isprintable():
        return
    message = (
        f"a name must be a printable text of 1 to {_LONGEST_NAME} characters, without commas or outer spaces; "
        f"found {describe(name)}"
    )
    raise PluginContractError(plugin, hook, message)


def _check_capabilities(plugin: str, capabilities: Capabilities) -> None:
    hook = "profiler.capabilities"
    _check_version(plugin, hook, capabilities.contract_version)
    # a frozen dataclass does not check its fields, so neither does the type here promise anything
    device: object = capabilities.torch_device
    correlation: object = capabilities.correlation
    if device is not None and not (isinstance(device, str) and device):
        message = f"torch_device must be the name of a renamed backend or None, found {describe(device)}"
        raise PluginContractError(plugin, hook, message)
    if not isinstance(correlation, CorrelationAccess):
        message = f"correlation must be a member of CorrelationAccess, found {describe(correlation)}"
        raise PluginContractError(plugin, hook, message)


def _check_version(plugin: str, hook: str, version: object) -> None:
    pair = isinstance(version, tuple) and len(version) == 2 and all(isinstance(part, int) for part in version)
    if not pair:
        message = f"contract_version must be a pair of whole numbers such as (1, 0), found {describe(version)}"
        raise PluginContractError(plugin, hook, message)
    theirs, ours = cast("tuple[int, int]", version), CONTRACT_VERSION
    if theirs[0] == ours[0] and theirs[1] <= ours[1]:
        return
    step = "update devprof" if theirs > ours else f"update the plugin to one for contract {ours[0]}.x"
    message = f"it was written for contract {theirs[0]}.{theirs[1]}, this devprof has {ours[0]}.{ours[1]}: {step}"
    raise PluginContractError(plugin, hook, message)


def _listed(names: list[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} or {last}" if most else last
