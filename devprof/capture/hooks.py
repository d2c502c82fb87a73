"""`SessionHooks`: a plugin session's methods, called through the guard, one at a time."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from devprof.capture.samples import thin_out
from devprof.clock import sample
from devprof.contract import HOST_CLOCK, ClockDomain, ClockSample, IActivityProfilerSession
from devprof.errors import PluginContractError
from devprof.registry import SESSION_RETURNS, Guard, validate_session

__all__ = ["SessionHooks"]


class SessionHooks:
    """The hooks that a session has.

    A hook that it lacks, or inherits from the protocol, is not called, and none is once the guard has failed.

    Attributes:
        session: the plugin's object.
        running: name of the hook that was called last by a phase or the clock's timer, or whose phase began: the one to blame.
    """

    def __init__(self, plugin: str, session: object, guard: Guard) -> None:
        """Take a session's methods, once: a property may do anything, so this runs where plugins may run.

        Raises:
            PluginContractError: the object is no session.
        """
        validate_session(plugin, session)
        if _inherited(session, "process_trace"):
            message = "the session inherits process_trace(), so it would deliver nothing; write one"
            raise PluginContractError(plugin, "configure", message)
        self.session = session
        self.running = "configure"
        self._plugin = plugin
        self._guard = guard
        self._methods = {
            hook: method
            for hook in SESSION_RETURNS
            if (method := getattr(session, hook, None)) is not None and not _inherited(session, hook)
        }
        self._turn = threading.Lock()

    def __contains__(self, hook: str) -> bool:
        return hook in self._methods

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait until no other thread is in a hook. Hooks that are called per op take no turn."""
        with self._turn:
            yield

    def call(self, hook: str, *args: object, default: Any = None) -> Any:
        """Return what a hook returned, or `default` where it lacks, failed, or was given up on meanwhile."""
        self.running = f"session.{hook}"
        return self.call_per_op(hook, *args, default=default)

    def call_per_op(self, hook: str, *args: object, default: Any = None) -> Any:
        """As `call`, on the thread of an op: not the hook to blame for a phase that does not end."""
        method = self._methods.get(hook)
        if method is None or self._guard.failed:
            return default
        value = self._guard.call(f"session.{hook}", method, *args, expect=SESSION_RETURNS[hook], default=default)
        return default if self._guard.failed else value

    def clock_domain(self) -> ClockDomain | None:
        """Ask for the session's clock and check that it can be used."""
        domain: ClockDomain | None = self.call("clock_domain")
        if domain is None:
            return None
        self._guard.call("session.clock_domain", self._check_clock, domain)
        return None if self._guard.failed else domain

    def sample(self, now_ns: Callable[[], int], samples: list[ClockSample]) -> None:
        """Take one burst of clock samples and add it to `samples`, which are kept few; to be called in a turn."""
        read = self._methods.get("sample_clock")
        if read is None or self._guard.failed:
            return
        self.running = "session.sample_clock"
        burst: list[ClockSample] = self._guard.call("session.sample_clock", sample, read, now_ns, default=[])
        if not self._guard.failed:
            samples += burst
            thin_out(samples)

    def sample_unless_busy(self, now_ns: Callable[[], int], samples: list[ClockSample]) -> None:
        """As `sample`, for a timer: nothing happens where another thread is in a hook."""
        if self._turn.acquire(blocking=False):
            try:
                self.sample(now_ns, samples)
            finally:
                self._turn.release()

    def stop_quietly(self) -> None:
        """Call `stop` on a session that is set aside already, so that its device does not record on; whatever it raises."""
        self.running = "session.stop"
        with suppress(BaseException):
            self._methods.get("stop", lambda: None)()

    def _check_clock(self, domain: ClockDomain) -> None:
        rate: object = domain.ticks_per_second
        if not isinstance(domain.name, str) or domain.name in ("", HOST_CLOCK):
            problem = f"its name is {domain.name!r}; expected a text that is not empty and not {HOST_CLOCK!r}"
        elif not isinstance(rate, int | float) or not (math.isfinite(rate) and rate > 0):
            problem = f"it states {rate!r} ticks per second; expected a number above 0"
        elif "sample_clock" not in self:
            problem = "the session has no sample_clock(), so its ticks would have no time"
        else:
            return
        raise PluginContractError(self._plugin, "session.clock_domain", f"the clock cannot be used: {problem}")


def _inherited(session: object, hook: str) -> bool:
    """Say whether a hook is the protocol's own, which says nothing."""
    return getattr(type(session), hook, None) is getattr(IActivityProfilerSession, hook)
