"""Limits of a capture that the environment may change."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import TypeVar

__all__ = ["budget_s", "record_limit"]

N = TypeVar("N", int, float)

log = logging.getLogger("devprof.capture")


def budget_s() -> float:
    """Return how long a phase may take: ``DEVPROF_HOOK_TIMEOUT_S``, 30 seconds by default; ``inf`` waits for ever."""
    return _positive("DEVPROF_HOOK_TIMEOUT_S", float, 30.0)


def record_limit() -> int:
    """Return how many records a plugin may deliver per session: ``DEVPROF_MAX_RECORDS``, ten million by default."""
    return _positive("DEVPROF_MAX_RECORDS", int, 10_000_000)


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
