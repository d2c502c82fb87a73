"""The process's one runtime: made at first use, as a driver is."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from openreg_sim.runtime.config import RuntimeConfig
from openreg_sim.runtime.device import Runtime

__all__ = ["runtime", "use_runtime"]

_lock = threading.Lock()
_runtime: Runtime | None = None


def runtime() -> Runtime:
    """Return the process's runtime; the first call makes it, as the environment says (`RuntimeConfig.from_environment`)."""
    global _runtime
    if _runtime is None:
        with _lock:
            if _runtime is None:
                _runtime = Runtime(RuntimeConfig.from_environment())
    return _runtime


@contextmanager
def use_runtime(replacement: Runtime) -> Iterator[Runtime]:
    """Let `runtime()` return another runtime within the block, in every thread; for tests and examples.

    The native device keeps to the runtime that it was loaded with.
    """
    global _runtime
    with _lock:
        before, _runtime = _runtime, replacement
    try:
        yield replacement
    finally:
        with _lock:
            _runtime = before


def _before_fork() -> None:
    _lock.acquire()
    if _runtime is not None:
        _runtime.before_fork()


def _after_fork(*, in_child: bool) -> None:
    if _runtime is not None:
        _runtime.after_fork(in_child=in_child)
    _lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=lambda: _after_fork(in_child=False),
        after_in_child=lambda: _after_fork(in_child=True),
    )
