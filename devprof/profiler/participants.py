"""Which plugins take part in a profile without torch, and what each is asked for."""

from __future__ import annotations

import os
from collections.abc import Iterable

from devprof.capture.hosting import WantedActivity
from devprof.errors import UsageError
from devprof.model import ActivityType
from devprof.registry import RegisteredProfiler, discover

__all__ = ["Participants", "matching", "participants"]

Participants = dict[str, tuple[RegisteredProfiler, frozenset[ActivityType]]]
"""Plugins by name, each with the kinds that it is asked for."""

_ANY_RENAMED = "PrivateUse1"
_WAITS = frozenset({ActivityType.CUDA_SYNC, ActivityType.XPU_SYNC})


def participants(wanted: tuple[WantedActivity, ...] | None) -> Participants:
    """Return the plugins that take part.

    Args:
        wanted: groups of device activities as the user named them: "PrivateUse1" is every plugin of a renamed torch backend and
            those of ``DEVPROF_PLUGINS``; another name is a plugin's, or that of the device it serves. None: all plugins.

    Raises:
        UsageError: a name is unknown; the message lists those that there are.
    """
    if wanted == ():
        return {}
    known = discover().profilers
    if wanted is None:
        return {one.name: (one, _usual_kinds(one)) for one in known}
    return {
        one.name: (one, _usual_kinds(one) if group.kinds is None else group.kinds)
        for group in wanted
        for one in _named(group.name, known)
    }


def matching(group: str, plugins: Iterable[RegisteredProfiler]) -> list[RegisteredProfiler]:
    """Return the plugins that a group of activities means."""
    if group == _ANY_RENAMED:
        beside = {name.strip() for name in os.environ.get("DEVPROF_PLUGINS", "").split(",")}
        named = beside | {group}
        return [one for one in plugins if one.capabilities.torch_device or {one.name, one.plugin.name} & named]
    exact = [one for one in plugins if group in _names(one)]
    return exact or [one for one in plugins if group.lower() in _names(one)]


def _names(one: RegisteredProfiler) -> set[str | None]:
    return {one.name, one.plugin.name, one.capabilities.torch_device}


def _named(group: str, known: tuple[RegisteredProfiler, ...]) -> list[RegisteredProfiler]:
    found = matching(group, known)
    if not found:
        plugins = ", ".join(repr(one.name) for one in known) or "none"
        raise UsageError(
            f"no plugin records {group!r}; activities are 'cpu' and the plugins that there are: {plugins} "
            "(`devprof plugins` says why one is missing)"
        )
    return found


def _usual_kinds(one: RegisteredProfiler) -> frozenset[ActivityType]:
    """Return what a plugin is asked for by default: all but waits, as torch leaves those out."""
    with_waits = os.environ.get("DEVPROF_SYNC_EVENTS") == "1"
    return one.available_activities if with_waits else one.available_activities - _WAITS
