"""`Guard`: calls into a plugin so that nothing it does reaches the caller.

Threads and time limits are not its business; whoever calls decides where a call runs and how long it may take.
"""

from __future__ import annotations

import functools
import logging
import os
import threading
import warnings
from collections.abc import Callable
from types import CodeType, TracebackType
from typing import TypeAlias, TypeVar, overload

from devprof.errors import PluginError, PluginWarning
from devprof.registry.failures import PluginFailure, failure_of, must_propagate
from devprof.registry.returns import Expectation, check_return

__all__ = ["MAX_FAILURES", "Guard", "hook_here"]

T = TypeVar("T")
D = TypeVar("D")
Expected: TypeAlias = type | tuple[type, ...] | Expectation | None

MAX_FAILURES = 100
"""Failures kept in full per guard; later ones are only counted, since a call per op can fail a million times."""

SET_ASIDE = "It is set aside for the rest of this session; the program and everything else go on."

log = logging.getLogger("devprof.registry")

_forks = 0
"""How many forks lead from the first process to this one."""


class _Here(threading.local):
    hook: str = ""


_HERE = _Here()


def hook_here() -> str:
    """Return the hook of a plugin that the calling thread is in, such as ``"session.stop"``; an empty text: none."""
    return _HERE.hook


# Python's memory of what was shown: without it the same misbehaviour is shown again in every session of a training run
_SHOWN: dict[str | tuple[str, type[Warning], int], int] = {}


class Guard:
    """Stands between devprof and one plugin. Callable from any thread.

    The first failure issues one `PluginWarning` that names the plugin and the hook and points at the plugin's own line.
    Where warnings are errors it is logged instead: a profiler must not break the program that it watches.

    Attributes:
        plugin_name: name of the plugin, as registered.
        failed: True from the first failure on. Calls go on to work; whether to make them is the caller's decision.
        failures: the first `MAX_FAILURES` failures, oldest first.
        failure_count: how many there were.

    Example:
        >>> guard = Guard("demo")
        >>> guard.call("session.errors", lambda: ["out of memory"], expect=list, default=[])
        ['out of memory']
    """

    def __init__(
        self,
        plugin_name: str,
        on_failure: Callable[[PluginFailure], None] | None = None,
        *,
        consequence: str = SET_ASIDE,
    ) -> None:
        """Make a guard.

        Args:
            plugin_name: name of the plugin, for messages.
            on_failure: called with each failure that is kept, on the thread where it happened.
            consequence: last sentence of the warning: what the failure means for the user.
        """
        self.plugin_name = plugin_name
        self.failed = False
        self.failures: list[PluginFailure] = []
        self.failure_count = 0
        self._on_failure = on_failure
        self._consequence = consequence
        self._lock = threading.Lock()

    @overload
    def call(self, hook: str, fn: Callable[..., T], *args: object, expect: Expected = None) -> T | None: ...

    @overload
    def call(self, hook: str, fn: Callable[..., T], *args: object, expect: Expected = None, default: D) -> T | D: ...

    def call(
        self,
        hook: str,
        fn: Callable[..., T],
        *args: object,
        expect: Expected = None,
        default: D | None = None,
    ) -> T | D | None:
        """Return ``fn(*args)``, or `default` if it raises or returns something else than expected.

        Every exception is caught, `SystemExit` included, except a `KeyboardInterrupt` on the main thread: that is the user's.
        A child that `fn` forked ends where it comes back to here: it is a copy of the program, which must not run twice.

        Args:
            hook: name of what is called, such as ``"session.stop"``.
            fn: the plugin's function.
            args: its arguments.
            expect: type or types of the value, or an `Expectation`; None takes any value.
            default: value in case of failure.
        """
        forks, outer = _forks, _HERE.hook
        _HERE.hook = hook
        try:
            value = fn(*args)
            if forks != _forks:
                os._exit(0)
            if expect is not None:
                check_return(self.plugin_name, hook, value, expect)
        except BaseException as error:
            if forks != _forks:
                os._exit(1)
            if must_propagate(error):
                raise
            self._fail(hook, error, _place(error, fn))
            return default
        finally:
            _HERE.hook = outer
        return value

    def fail(self, error: PluginError) -> None:
        """Take in a failure that was found outside `call`, such as a `PluginTimeoutError`."""
        self._fail(error.hook, error, _place(error, None))

    def _fail(self, hook: str, error: BaseException, place: tuple[str, int]) -> None:
        with self._lock:
            first, self.failed = not self.failed, True
            self.failure_count += 1
            if self.failure_count > MAX_FAILURES:
                return
        failure = failure_of(self.plugin_name, hook, error)
        self.failures.append(failure)
        log.debug("%s\n%s", failure.error, failure.traceback)
        if first:
            self._warn(failure, place)
        if self._on_failure is not None:
            self._on_failure(failure)

    def _warn(self, failure: PluginFailure, place: tuple[str, int]) -> None:
        complaint = str(failure.error)
        stop = "" if complaint.endswith((".", "?", "!")) else "."
        message = f"{complaint}{stop} {self._consequence}"
        try:
            warnings.warn_explicit(PluginWarning(message), PluginWarning, *place, registry=_SHOWN)
        except PluginWarning:
            log.warning(message)


def _count_fork() -> None:
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count_fork)


def _place(error: BaseException, fn: Callable[..., object] | None) -> tuple[str, int]:
    """Return file and line in the plugin: where it raised, else where the function that misbehaved is defined."""
    try:
        trace = _plugins_part(error)
        if trace is not None:
            while trace.tb_next is not None:
                trace = trace.tb_next
            return trace.tb_frame.f_code.co_filename, trace.tb_lineno
        code = _code(fn)
    except BaseException as broken:
        if must_propagate(broken):
            raise
        return "<plugin>", 1  # the exception or the function cannot be looked at
    return ("<plugin>", 1) if code is None else (code.co_filename, code.co_firstlineno)


def _plugins_part(error: BaseException) -> TracebackType | None:
    if isinstance(error, PluginError):
        # devprof found it; only what the plugin itself raised, if anything, has a place in the plugin
        return None if error.__cause__ is None else error.__cause__.__traceback__
    # the first entry is `Guard.call`
    return None if error.__traceback__ is None else error.__traceback__.tb_next


def _code(fn: object) -> CodeType | None:
    while isinstance(fn, functools.partial):
        fn = fn.func
    code = getattr(getattr(fn, "__func__", fn), "__code__", None)
    return code if isinstance(code, CodeType) else None
