"""Requests that reach Kineto from outside: with ``KINETO_USE_DAEMON`` torch asks a daemon such as dynolog for them.

Kineto drives such a capture on threads of its own. Its calls leave events in the bridge; a thread of Python's waits for them
with the GIL released, and has the plugins configured, started, stopped and drained. Kineto waits a bounded time for the
records.

Source: libkineto/src/AsyncActivityProfilerHandler.cpp (who calls what when).
"""

from __future__ import annotations

import ctypes
import logging
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from devprof.errors import BuildError

if TYPE_CHECKING:
    from devprof.torch.bridge import Bridge
    from devprof.torch.demanded import DemandedSession
    from devprof.torch.native_types import DemandEvent

__all__ = ["not_a_request", "serve_when_torch_is_there"]

log = logging.getLogger("devprof.torch")

CONFIGURED, STARTED, STOPPED, GONE = range(1, 5)
_NOBODY = 2**64 - 1
_BY_ITERATION = 2**63
_POLL_MS = 1000
_IMPORT_POLL_S = 0.05

_server: Server | None = None


class Server:
    """Serves one request at a time, as Kineto has one at a time."""

    def __init__(self, bridge: Bridge) -> None:
        from devprof.capture.guest import GUEST

        self.bridge = bridge
        self._guest = GUEST
        self._session: DemandedSession | None = None
        self._leaving = False

    def run(self) -> None:
        """Wait for events until the interpreter exits, or this is a forked child."""
        from devprof.torch.native_types import DemandEvent

        lib, pid = self.bridge.lib, os.getpid()
        lib.devprof_demand_serve(1)
        event = DemandEvent()
        while (found := lib.devprof_demand_wait(_POLL_MS, ctypes.byref(event))) >= 0 and os.getpid() == pid:
            if self._leaving:
                self._leave()
            if found:
                self._handle_quietly(event)

    def _handle_quietly(self, event: DemandEvent) -> None:
        try:
            self._handle(event)
        except Exception:
            log.exception("devprof takes no part in a trace that was asked for from outside")
            self._end("devprof failed in it")
            self.bridge.lib.devprof_capture_ready(event.generation)

    def _handle(self, event: DemandEvent) -> None:
        session = self._session
        if event.kind == CONFIGURED:
            self._configure(event)
        elif session is None or session.generation != event.generation:
            if event.kind == STOPPED:  # nothing will come: Kineto need not wait
                self.bridge.lib.devprof_capture_ready(event.generation)
            elif event.kind == GONE:
                self.bridge.lib.devprof_capture_drop(event.generation)
        elif event.kind == STARTED:
            if not session.has_begun:
                self._begin(session)
            session.began_at(event.time_ns)
        elif event.kind == STOPPED:
            session.end(event.time_ns)
            self._guest.left()
        elif event.kind == GONE:
            session.close()
            self._end("")

    def _configure(self, event: DemandEvent) -> None:
        from devprof.torch.demanded import demanded_session

        self._end("another request came")
        session = demanded_session(self.bridge, event.generation, event.types)
        self._session = session
        if session is not None and event.types & _BY_ITERATION:
            self._begin(session)  # the warm-up may be shorter than it takes

    def _begin(self, session: DemandedSession) -> None:
        self._guest.enter(self._ask_to_leave)
        session.begin()

    def _ask_to_leave(self) -> None:
        """Called on the thread of a profile of the program's own; the server sees it within its next wait."""
        self._leaving = True
        self.bridge.lib.devprof_demand_wake()

    def _leave(self) -> None:
        self._end("a profile of the program's own began")

    def _end(self, reason: str) -> None:
        session, self._session, self._leaving = self._session, None, False
        if session is not None and reason:
            session.give_up(reason)
        self._guest.left()


def serve_when_torch_is_there() -> None:
    """Serve requests from a thread of its own, once `import torch` is over. Nothing is built."""
    threading.Thread(target=_serve, name="devprof-kineto", daemon=True).start()


def _serve() -> None:
    global _server
    while getattr(getattr(sys.modules.get("torch"), "__spec__", None), "_initializing", False):
        time.sleep(_IMPORT_POLL_S)
    try:
        from devprof.native import find
        from devprof.torch.bridge import bridge
        from devprof.torch.bridge_build import BRIDGE

        if find(BRIDGE) is None:
            raise BuildError("the native library 'bridge' is not built; run `devprof build bridge` before the program")
        _server = Server(bridge())
        _load_what_takes_long()
    except BuildError as error:
        log.warning("devprof's plugins take no part in traces that are asked for from outside: %s", error)
        return
    except Exception:
        log.exception("devprof's plugins take no part in traces that are asked for from outside")
        return
    _server.run()


def _load_what_takes_long() -> None:
    """Import what a request needs, and find the plugins: between a request and its first record there may be milliseconds."""
    from devprof.registry import discover
    from devprof.torch import demanded

    discover()
    _ = demanded


@contextmanager
def not_a_request() -> Iterator[None]:
    """Say that torch prepares a profile of the program's own on this thread, which devprof takes no part in."""
    if _server is None:
        yield
        return
    lib = _server.bridge.lib
    lib.devprof_arm(_NOBODY)
    try:
        yield
    finally:
        lib.devprof_arm(0)
