"""Plugins that are left out of captures: a hook of theirs never came back, or has not come back yet."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import NamedTuple

from devprof.capture.verdict import SetAside

__all__ = ["keep_out", "kept_out", "quarantined", "verdict_on"]


class _Entry(NamedTuple):
    reason: str
    until: threading.Thread | None
    verdict: SetAside | None


_ENTRIES: dict[str, _Entry] = {}


def keep_out(name: str, reason: str, *, until: threading.Thread | None = None, verdict: SetAside | None = None) -> None:
    """Leave a plugin out from now on.

    Args:
        name: name of the plugin.
        reason: why, for the account of later captures.
        until: leave it out only while this thread runs; None: for the life of the process.
        verdict: where and when that was found, for the same account.
    """
    known = _ENTRIES.get(name)
    if known is None or known.until is not None:
        _ENTRIES[name] = _Entry(reason, until, verdict)


def kept_out(name: str) -> str | None:
    """Return why a plugin is left out now, or None where it is not."""
    entry = _ENTRIES.get(name)
    return None if entry is None or (entry.until is not None and not entry.until.is_alive()) else entry.reason


def verdict_on(name: str) -> SetAside | None:
    """Return where and when it was found that a plugin must be left out; None where that is not known."""
    entry = _ENTRIES.get(name)
    return None if entry is None else entry.verdict


def quarantined() -> Mapping[str, str]:
    """Return the plugins that are left out now, with the reason."""
    return {name: reason for name in list(_ENTRIES) if (reason := kept_out(name)) is not None}
