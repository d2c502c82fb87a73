"""Who takes part in a torch profile: the plugins of the renamed backend, and those named on purpose."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch.profiler import ProfilerActivity
from torch.utils.backend_registration import rename_privateuse1_backend

from devprof.capture import tell
from devprof.errors import BuildError, PluginWarning, UsageError
from devprof.registry import Catalogue, RegisteredProfiler, RegisteredStubs, discover
from devprof.torch.bridge import Bridge, bridge
from devprof.torch.request import Request, wants_device
from devprof.torch.session import TorchSession
from devprof.torch.stub_table import install_stubs

__all__ = [
    "Plan",
    "backend_name",
    "disable",
    "enable",
    "enabled",
    "name_backend",
    "open_session",
    "plan_for",
    "profilers_for",
]

_ENABLED: set[str] = set()


def enable(*names: str) -> None:
    """Let these plugins take part in every PrivateUse1 session of this process, whatever device they serve."""
    _ENABLED.update(names)


def disable(*names: str) -> None:
    """Take back `enable`."""
    _ENABLED.difference_update(names)


def enabled() -> frozenset[str]:
    """Return the plugins that are enabled by name, here or in ``DEVPROF_PLUGINS`` (a comma-separated list)."""
    listed = (name.strip() for name in os.environ.get("DEVPROF_PLUGINS", "").split(","))
    return frozenset(_ENABLED | {name for name in listed if name})


def backend_name() -> str | None:
    """Return the name of the renamed PrivateUse1 backend, or None where nobody renamed it."""
    name = torch._C._get_privateuse1_backend_name()
    return None if name == "privateuseone" else name


def name_backend(name: str) -> None:
    """Give PrivateUse1 its name, where nobody did yet; a program that then names it so too changes nothing.

    Raises:
        UsageError: it has another name, or torch refuses this one.
    """
    found = backend_name()
    if found not in (None, name):
        raise UsageError(f"torch's device cannot be called {name!r} here: its backend is {found!r} already")
    try:
        rename_privateuse1_backend(name)
    except (RuntimeError, ValueError) as error:
        raise UsageError(f"torch's device cannot be called {name!r}: {error}") from error


@dataclass(frozen=True, slots=True)
class Plan:
    """Who takes part in one profile.

    Attributes:
        request: what the profile asks for.
        plugins: activity profilers that take part.
        stubs: stubs that give a legacy profile its device time, or None.
    """

    request: Request
    plugins: tuple[RegisteredProfiler, ...]
    stubs: RegisteredStubs | None


def plan_for(profile: Any, activities: Iterable[ProfilerActivity], filters: Any = None) -> Plan | None:
    """Return who takes part in a profile, or None where nobody does. Loads plugins, and nothing native."""
    if not wants_device(profile, activities):
        return None
    request = Request.of(profile, activities, filters)
    catalogue = discover()
    plugins = profilers_for(catalogue) if request.types else ()
    stubs = _stubs_for(catalogue) if request.legacy else None
    return Plan(request, plugins, stubs) if plugins or stubs is not None else None


def open_session(plan: Plan) -> TorchSession | None:
    """Return devprof's part in a profile, or None with a warning where the bridge cannot be had.

    The first session of a process loads the bridge, which registers with Kineto: no other session may be active then.
    """
    native = _bridge_or_warn()
    if native is None:
        return None
    if plan.stubs is not None:
        install_stubs(native, plan.stubs)
    return TorchSession(native, plan.plugins, plan.request)


def profilers_for(catalogue: Catalogue) -> tuple[RegisteredProfiler, ...]:
    """Return the plugins that take part, the one of the session's own device first: its devices keep their numbers."""
    device, names = backend_name(), enabled()
    try:
        found = catalogue.profilers_for(device, names)
    except UsageError as error:
        # one unknown name must not keep the others away
        tell(f"devprof: {error}; the others take part", PluginWarning)
        known = {name for one in catalogue.profilers for name in (one.name, one.plugin.name)}
        found = catalogue.profilers_for(device, names & known)
    return tuple(sorted(found, key=lambda one: one.capabilities.torch_device != device))


def _stubs_for(catalogue: Catalogue) -> RegisteredStubs | None:
    name = backend_name()
    return next((found for found in catalogue.stubs if found.torch_device == name), None)


def _bridge_or_warn() -> Bridge | None:
    try:
        return bridge()
    except BuildError as error:
        tell(f"devprof takes no part in this profile: {error}", PluginWarning)
        return None
