"""`PluginFailure`: one misbehaviour of a plugin, kept as facts and text."""

from __future__ import annotations

import threading
import traceback
from dataclasses import dataclass
from typing import Any, cast

from devprof.errors import PluginError

__all__ = ["PluginFailure", "as_plugin_error", "failure_of", "must_propagate"]

_LONGEST_MESSAGE = 500

_CAUSE: Any = BaseException.__dict__["__cause__"]
_CONTEXT: Any = BaseException.__dict__["__context__"]
_EXCEPTIONS: Any = BaseExceptionGroup.__dict__["exceptions"]


@dataclass(frozen=True, slots=True)
class PluginFailure:
    """One misbehaviour of a plugin.

    Attributes:
        name: name of the plugin, as registered.
        hook: what misbehaved: a hook, a method such as ``"session.stop"``, or ``"entry point"``.
        error: the error; its ``__cause__`` is what the plugin raised, if it raised.
        traceback: text of the plugin's traceback.
    """

    name: str
    hook: str
    error: PluginError
    traceback: str


def failure_of(plugin: str, hook: str, error: BaseException) -> PluginFailure:
    """Turn anything that came out of a plugin into a `PluginFailure`; never raises.

    A `PluginError` is kept as it is; everything else becomes the cause of a new one. Tracebacks are kept as text only: their
    frames would keep the plugin's data, and through the caller's frame the failure itself, alive.
    """
    try:
        text = "".join(traceback.format_exception(error))
        ready = as_plugin_error(plugin, hook, error)
        _drop_frames(ready)
        return PluginFailure(plugin, ready.hook, ready, text)
    except BaseException as broken:
        if must_propagate(broken):
            raise
        # an exception's class may do anything when it is looked at; what is left of it is the name of the class
        plain = PluginError(plugin, hook, f"{_class_name(error)} (the exception itself cannot be read)")
        return PluginFailure(plugin, hook, plain, "")


def as_plugin_error(plugin: str, hook: str, error: BaseException) -> PluginError:
    """Return `error` if it is a whole `PluginError`, else a new one with `error` as its cause."""
    if issubclass(type(error), PluginError) and all(hasattr(error, name) for name in ("plugin", "hook", "reason")):
        return cast(PluginError, error)
    wrapped = PluginError(plugin, hook, f"{_class_name(error)}: {_message(error)}")
    wrapped.__cause__ = error
    return wrapped


def _class_name(error: BaseException) -> str:
    name = type.__dict__["__qualname__"].__get__(type(error))  # past whatever a metaclass says
    return str(name)


def must_propagate(error: BaseException) -> bool:
    """Say whether an exception is the user's Ctrl-C and not the plugin's fault.

    Python delivers the interrupt on the main thread only, so a `KeyboardInterrupt` there is the user's, and on any other
    thread the plugin raised it. `SystemExit` is always the plugin's: a plugin has no say in when a program ends.
    """
    # by type, not isinstance: that would ask the object's own __class__
    return issubclass(type(error), KeyboardInterrupt) and threading.current_thread() is threading.main_thread()


def _message(error: BaseException) -> str:
    try:
        text = str(error)
    except BaseException as broken:
        if must_propagate(broken):
            raise
        text = f"(its message cannot be read: {_class_name(broken)})"
    return text if len(text) <= _LONGEST_MESSAGE else text[:_LONGEST_MESSAGE] + "..."


def _drop_frames(error: BaseException) -> None:
    seen: set[int] = set()
    pending: list[BaseException | None] = [error]
    while pending:
        one = pending.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        # past whatever the class says about these attributes
        BaseException.with_traceback(one, None)
        pending += [_CAUSE.__get__(one), _CONTEXT.__get__(one)]
        if issubclass(type(one), BaseExceptionGroup):
            pending += _EXCEPTIONS.__get__(one)
