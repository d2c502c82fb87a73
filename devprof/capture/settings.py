"""Limits of a capture that the environment may change."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from devprof.errors import UsageError
from devprof.store.limits import DEFAULT_BYTES, DEFAULT_RECORDS, Limits, WhenFull

__all__ = ["budget_s", "limits_here", "record_limit", "with_limits"]

N = TypeVar("N", int, float)

log = logging.getLogger("devprof.capture")


def budget_s() -> float:
    """Return how long a phase may take: ``DEVPROF_HOOK_TIMEOUT_S``, 30 seconds by default; ``inf`` waits for ever."""
    return _positive("DEVPROF_HOOK_TIMEOUT_S", float, 30.0)


def record_limit() -> int:
    """Return how many records a plugin may deliver per session: ``DEVPROF_MAX_RECORDS``, ten million by default."""
    return _positive("DEVPROF_MAX_RECORDS", int, DEFAULT_RECORDS)


_given: ContextVar[Limits | None] = ContextVar("devprof.capture.limits", default=None)


@contextmanager
def with_limits(limits: Limits | None) -> Iterator[None]:
    """Let captures that are made meanwhile, on this thread, have these limits; None: those of the environment."""
    token = _given.set(limits)
    try:
        yield
    finally:
        _given.reset(token)


def limits_here() -> Limits:
    """Return the limits of a capture that is made now.

    Those of `with_limits`, else ``DEVPROF_MAX_RECORDS``, ``DEVPROF_MAX_BYTES`` and ``DEVPROF_WHEN_FULL``.
    """
    given = _given.get()
    if given is not None:
        return given
    text = os.environ.get("DEVPROF_WHEN_FULL", "").strip()
    most_bytes = _positive("DEVPROF_MAX_BYTES", int, DEFAULT_BYTES) if os.environ.get("DEVPROF_MAX_BYTES") else None
    try:
        return Limits(record_limit(), most_bytes, WhenFull(text) if text else WhenFull.STOP)
    except (ValueError, UsageError) as error:
        log.warning("DEVPROF_WHEN_FULL or DEVPROF_MAX_BYTES is ignored: %s", error)
        return Limits(record_limit())


def _positive(name: str, read: Callable[[str], N], default: N) -> N:
    text = os.environ.get(name, "")
    try:
        value = read(text) if text.strip() else default
    except ValueError:
        value = read("0")
    if value > 0:  # NaN is not
        return value
    log.warning("%s is %r; expected a number above 0, %s is used", name, text, default)
    return default
