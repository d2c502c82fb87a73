"""Why a device profile under torch may stay empty: what ``devprof doctor`` says of torch's side."""

from __future__ import annotations

import os

from devprof.errors import BuildError
from devprof.native import find
from devprof.registry import discover
from devprof.torch.bridge import bridge
from devprof.torch.bridge_build import BRIDGE
from devprof.torch.interpose import installed
from devprof.torch.participants import backend_name, enabled

__all__ = ["examine"]


def examine() -> list[tuple[bool, str]]:
    """Return what there is to say, in the order in which it matters: whether it is as it should be, and a sentence."""
    return [_wrap(), _backend(), *_named(), *_others()]


def _wrap() -> tuple[bool, str]:
    if installed():
        return True, "torch's profiler is wrapped: plugins can take part"
    if os.environ.get("DEVPROF_DISABLE") == "1":
        return False, "torch's profiler is not wrapped: DEVPROF_DISABLE=1 is set"
    if os.environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD") == "0":
        return False, (
            "torch's profiler is not wrapped: with TORCH_DEVICE_BACKEND_AUTOLOAD=0 torch loads no entry point; call "
            "devprof.torch.install()"
        )
    return (
        False,
        "torch's profiler is not wrapped: torch did not run devprof's entry point (torch.backends); reinstall devprof",
    )


def _backend() -> tuple[bool, str]:
    device = backend_name()
    serving = {one.capabilities.torch_device: one.name for one in discover().profilers if one.capabilities.torch_device}
    if device is None:
        served = ", ".join(f"{name} ({who})" for name, who in serving.items())
        return not serving, (
            "torch: no backend has renamed PrivateUse1 in this process, so only plugins that are enabled by name take part in "
            f"its sessions; import your backend's package before you profile{f'. Plugins serve: {served}' if served else ''}"
        )
    if device in serving:
        activities = "activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]"
        return (
            True,
            f"torch: the backend is {device!r}, and plugin {serving[device]!r} serves it; profile with {activities}",
        )
    known = ", ".join(repr(one) for one in serving) or "no device"
    return bool(enabled()), (
        f"torch: the backend is {device!r}, and no plugin serves it: they serve {known}. A plugin names its backend in "
        "Capabilities(torch_device=...); DEVPROF_PLUGINS=NAME takes one in by name"
    )


def _named() -> list[tuple[bool, str]]:
    known = {name for one in discover().profilers for name in (one.name, one.plugin.name)}
    return [
        (name in known, f"torch: {name!r} is enabled by name{'' if name in known else ', and there is no such plugin'}")
        for name in sorted(enabled())
    ]


def _others() -> list[tuple[bool, str]]:
    """Look for what another backend's own C++ code has put into torch's places; this needs the bridge, and builds none."""
    try:
        if find(BRIDGE) is None:
            return [(False, "torch: whether another profiler is registered cannot be seen until the bridge is built")]
        native = bridge()
    except BuildError:  # said where the libraries are listed
        return []
    found = []
    if native.has_factory_of_another():
        found.append(
            "torch: the backend has registered a profiler of its own with torch (a factory in C++). It runs beside devprof's "
            "plugins, and a kernel that both deliver is there twice: leave one of them out"
        )
    if stubs := native.stubs_of_another():
        found.append(
            f"torch: another backend's stubs ({stubs}) are in the legacy profiler, which keeps one; a plugin's stubs stay out"
        )
    return [(False, one) for one in found]
