"""Stand between devprof and a plugin: see every session that a profiler makes, and every call of its methods.

Neither side behaves differently for it, so what is seen is what really happens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from devprof.contract import IActivityProfiler, IActivityProfilerSession

__all__ = ["TappedSession", "tapped"]

Configure = Callable[..., Any]


@contextmanager
def tapped(profiler: IActivityProfiler, around: Callable[[Configure], Configure]) -> Iterator[None]:
    """Put a function around a profiler's `configure` while the block runs.

    Args:
        profiler: the plugin's object.
        around: gets the plugin's own `configure` and returns what is called in its place.
    """
    target: Any = profiler
    configure = around(target.configure)
    try:
        own = vars(target).get("configure")
        target.configure = configure
    except (AttributeError, TypeError):  # it has slots or is frozen: its class is told, for as long
        with _tapped_class(type(target), configure):
            yield
        return
    try:
        yield
    finally:
        if own is None:
            del target.configure
        else:
            target.configure = own


@contextmanager
def _tapped_class(kind: Any, configure: Configure) -> Iterator[None]:
    own = vars(kind).get("configure")
    kind.configure = lambda profiler, *args, **planned: configure(*args, **planned)
    try:
        yield
    finally:
        if own is None:
            del kind.configure
        else:
            kind.configure = own


class TappedSession:
    """Has the methods that the plugin's session has, and no others."""

    def __init__(self, session: Any, around: Callable[[str, Callable[..., Any]], Callable[..., Any]]) -> None:
        """Stand before a session.

        Args:
            session: the plugin's object.
            around: gets a method's name and the method, and returns what is called in its place.
        """
        self._session = session
        self._around = around

    def __getattr__(self, hook: str) -> Any:
        if hook.startswith("_"):
            raise AttributeError(hook)
        method = getattr(self._session, hook)
        inherited = getattr(IActivityProfilerSession, hook, None)
        if inherited is not None and getattr(type(self._session), hook, None) is inherited and hook != "process_trace":
            raise AttributeError(hook)  # the protocol's own says nothing, so devprof does not call it
        return self._around(hook, method) if callable(method) else method
