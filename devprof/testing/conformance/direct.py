"""`DirectSession`: the kit itself drives a plugin's session, in orders that no host would bring about."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Set
from typing import Any

from devprof import correlation
from devprof.capture import PhaseRunner
from devprof.contract import CorrelationAccess, SessionConfig
from devprof.model import ActivityType
from devprof.registry import RegisteredProfiler
from devprof.testing.conformance.table import CheckFailed
from devprof.testing.conformance.watching import Watch, Watched
from devprof.testing.conformance.workload import Device

__all__ = ["DirectSession"]

_OP = 7
"""Op id of work that the check does not name."""
_NS_AHEAD = 3600 * 10**9


class DirectSession:
    """One session of a plugin. Each hook runs on a thread of its own, as with devprof, unless `inline`.

    Attributes:
        watched: what was seen of it.

    Raises:
        CheckFailed: any method: the plugin's hook raised, or did not come back.
    """

    def __init__(
        self,
        plugin: RegisteredProfiler,
        device: Device,
        kinds: Set[ActivityType] | None = None,
        *,
        inline: bool = False,
    ) -> None:
        """Configure a session for these kinds, or for all that the plugin has.

        Raises:
            CheckFailed: `configure` raised or returned None.
        """
        self._plugin = plugin
        self._device = device
        self._runner = None if inline else PhaseRunner()
        asked = plugin.available_activities if kinds is None else frozenset(kinds)
        correlation.new_generation()
        with Watch(plugin.profiler) as watch:
            self._session: Any = self._run(
                "configure", lambda: plugin.profiler.configure(asked, SessionConfig(host="python"))
            )
        if self._session is None:
            raise CheckFailed(
                "a session from configure()", "None", "the plugin thinks that another session is going on"
            )
        self.watched: Watched = watch.sessions[0]
        self._native = None
        self._call("clock_domain")
        if plugin.capabilities.correlation is CorrelationAccess.NATIVE:
            self._native = self._call("native_correlation")

    def start(self) -> None:
        """Call `start`."""
        self._call("start")

    def stop(self) -> None:
        """Call `stop`."""
        self._call("stop")

    def flush(self) -> None:
        """Call `flush_trace`."""
        self._call("flush_trace", _Sink())

    def finish(self) -> Watched:
        """Call `stop`, `process_trace` and what follows it; return what was seen."""
        self.stop()
        self.process()
        return self.watched

    def process(self) -> None:
        """Call `process_trace` and what follows it."""
        now_ns = self.watched.config.now_ns()
        self._call("process_trace", _Sink(), lambda op_id: True, now_ns - _NS_AHEAD, now_ns)
        for hook in ("status", "errors", "get_device_infos", "get_resource_infos", "get_metadata", "get_trace_buffer"):
            self._call(hook)

    def launch(self, n: int = 1, **place: Any) -> None:
        """Launch kernels inside an op."""
        self.push(_OP)
        self._device.launch(n, **place)
        self.pop()

    def push(self, op_id: int) -> None:
        """Open an op on this thread, by every way in which the plugin may learn of it."""
        correlation.push_correlation_id(op_id)
        self.push_quietly(op_id)

    def push_quietly(self, op_id: int) -> None:
        """Tell only the plugin's own push of an op."""
        if self._native is not None and self._native.push:
            ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint64)(self._native.push)(0, op_id)
        elif self._wants_python:
            self._session.push_correlation_id(op_id)

    def pop(self) -> None:
        """Close the innermost op on this thread."""
        self.pop_quietly()
        correlation.pop_correlation_id()

    def pop_quietly(self) -> None:
        """Tell only the plugin's own pop."""
        if self._native is not None and self._native.pop:
            ctypes.CFUNCTYPE(None, ctypes.c_uint32)(self._native.pop)(0)
        elif self._wants_python:
            self._session.pop_correlation_id()

    @property
    def _wants_python(self) -> bool:
        access = self._plugin.capabilities.correlation
        return access is CorrelationAccess.PYTHON or (access is CorrelationAccess.NATIVE and self._native is None)

    def _call(self, hook: str, *args: Any) -> Any:
        method = getattr(self._session, hook, None)
        if method is None:
            return None
        return self._run(hook, lambda: method(*args))

    def _run(self, hook: str, call: Callable[[], Any]) -> Any:
        if self._runner is None:
            return call()
        returned: list[Any] = []
        outcome = self._runner.run(f"conformance-{hook}", lambda: returned.append(call()))
        if not outcome.finished:
            raise CheckFailed(f"{hook}() to come back", f"it was not back after {self._runner.timeout_s:g} s")
        if outcome.error is not None:
            raise CheckFailed(f"{hook}() to return", f"it raised {outcome.error!r}")
        return returned[0]


class _Sink:
    """An `ActivityLogger` that takes everything; the watch around it keeps what there is to keep."""

    def handle_activity(self, activity: object) -> None: ...

    def handle_activities(self, batch: object) -> None: ...

    def handle_device_info(self, info: object) -> None: ...

    def handle_resource_info(self, info: object) -> None: ...

    def handle_dropped(self, count: object, reason: object) -> None: ...
