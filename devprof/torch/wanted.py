"""From the activities of `devprof.profile` to torch's, and to the plugins that have to be enabled for them."""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import TypeAlias

import torch
from torch.profiler import ProfilerActivity, supported_activities

from devprof.capture.hosting import ProfileOptions, WantedActivity
from devprof.errors import UsageError
from devprof.registry import RegisteredProfiler, discover
from devprof.torch.participants import backend_name

__all__ = ["Filtered", "plugins_to_enable", "torch_activities", "torch_activity"]

Filtered: TypeAlias = ProfilerActivity | dict[ProfilerActivity, list[str]]
"""An activity as torch.profiler takes it: whole, or with the names of the kinds to record."""


def torch_activities(options: ProfileOptions) -> list[Filtered]:
    """Return what to ask torch's profiler for.

    Plugins share torch's group PrivateUse1: where several are named, each is asked for the kinds of all.

    Raises:
        UsageError: a name is neither a group of torch's nor a plugin, torch has no renamed backend to run a plugin with, or
            this torch records none of the groups.
    """
    wanted = [] if options.cpu is None else [options.cpu]
    supported: set[ProfilerActivity] = supported_activities()  # type: ignore[no-untyped-call]  # torch's
    if options.devices is not None:
        groups = [*wanted, *options.devices]
        _check_supported({torch_activity(group.name) for group in groups}, supported)
        return _grouped(groups)
    devices = sorted(supported - {ProfilerActivity.CPU}, key=lambda one: one.value)
    return [*_grouped(wanted), *devices]


def plugins_to_enable(wanted: Iterable[WantedActivity]) -> list[str]:
    """Return the plugins named in `wanted` that a PrivateUse1 session does not take in by itself."""
    plugins = [_plugin(group.name) for group in wanted if group.name not in ProfilerActivity.__members__]
    return [plugin.name for plugin in plugins if plugin.capabilities.torch_device != backend_name()]


def _check_supported(wanted: Set[ProfilerActivity], supported: Set[ProfilerActivity]) -> None:
    # torch drops a group that it does not record, and asserts that one is left; PrivateUse1 is for the plugins
    if wanted and not wanted & {*supported, ProfilerActivity.PrivateUse1}:
        names, known = (", ".join(sorted(repr(one.name.lower()) for one in some)) for some in (wanted, supported))
        raise UsageError(
            f"torch {torch.__version__} here does not record {names}; it records {known}. Ask for one of those too, or use "
            "host='python' with a plugin for the device"
        )


def _grouped(wanted: Iterable[WantedActivity]) -> list[Filtered]:
    kinds: dict[ProfilerActivity, list[str] | None] = {}
    for group in wanted:
        activity = torch_activity(group.name)
        names = None if group.kinds is None else sorted(kind.name for kind in group.kinds)
        known = kinds.get(activity, [])
        kinds[activity] = None if known is None or names is None else sorted({*known, *names})
    return [activity if names is None else {activity: names} for activity, names in kinds.items()]


def torch_activity(name: str) -> ProfilerActivity:
    """Return torch's activity for a group's or a plugin's name.

    Raises:
        UsageError: as `torch_activities`.
    """
    if name in ProfilerActivity.__members__:
        return ProfilerActivity.__members__[name]
    _plugin(name)
    if backend_name() is None:
        raise UsageError(
            f"plugin {name!r} cannot take part under host='torch': no backend of this torch is renamed, and torch runs plugins "
            "only for one (torch.utils.rename_privateuse1_backend, or --torch-device of `devprof run`); use host='python'"
        )
    return ProfilerActivity.PrivateUse1


def _plugin(name: str) -> RegisteredProfiler:
    known = discover().profilers
    for plugin in known:
        if name in (plugin.name, plugin.plugin.name, plugin.capabilities.torch_device):
            return plugin
    plugins = ", ".join(repr(plugin.name) for plugin in known) or "none"
    groups = ", ".join(repr(member.lower()) for member in ProfilerActivity.__members__)
    raise UsageError(f"no plugin records {name!r}; torch's own activities are {groups}; plugins are {plugins}")
