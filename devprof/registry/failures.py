"""`PluginFailure`: one misbehaviour of a plugin, kept as facts and text."""

from __future__ import annotations

import threading
import traceback
from dataclasses import dataclass

from devprof.errors import PluginError

__all__ = ["PluginFailure", "as_plugin_error", "failure_of", "must_propagate"]

_LONGEST_MESSAGE = 500


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
    """Turn anything that came out of a plugin into a `PluginFailure`.

    A `PluginError` is kept as it is; everything else becomes the cause of a new one. Tracebacks are kept as text only: their
    frames would keep the plugin's data, and through the caller's frame the failure itself, alive.
    """
    text = "".join(traceback.format_exception(error))
    ready = as_plugin_error(plugin, hook, error)
    _drop_frames(ready)
    return PluginFailure(plugin, ready.hook, ready, text)


def as_plugin_error(plugin: str, hook: str, error: BaseException) -> PluginError:
    """Return `error` if it is a `PluginError`, else a new one with `error` as its cause."""
    if isinstance(error, PluginError):
        return error
    wrapped = PluginError(plugin, hook, f"{type(error).__qualname__}: {_message(error)}")
    wrapped.__cause__ = error
    return wrapped


def must_propagate(error: BaseException) -> bool:
    """Say whether an exception is the user's Ctrl-C and not the plugin's fault.

    Python delivers the interrupt on the main thread only, so a `KeyboardInterrupt` there is the user's, and on any other
    thread the plugin raised it. `SystemExit` is always the plugin's: a plugin has no say in when a program ends.
    """
    return isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread()


def _message(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception as broken:  # noqa: BLE001 - a plugin's exception class may do anything
        text = f"(its message cannot be read: {type(broken).__qualname__})"
    return text if len(text) <= _LONGEST_MESSAGE else text[:_LONGEST_MESSAGE] + "..."


def _drop_frames(error: BaseException) -> None:
    seen: set[int] = set()
    pending: list[BaseException | None] = [error]
    while pending:
        one = pending.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        one.__traceback__ = None
        pending += [one.__cause__, one.__context__]
        if isinstance(one, BaseExceptionGroup):
            pending += one.exceptions
