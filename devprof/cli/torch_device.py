"""The name of torch's PrivateUse1 device, which must be there before a profile begins: a program's own import comes later."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer

from devprof.native import torch_facts
from devprof.registry import RegisteredProfiler, discover

__all__ = ["TorchDevice", "absent", "name_device", "name_unnamed", "named"]

TorchDevice = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Call torch's PrivateUse1 device so before the program starts; for record by default as the plugin has it.",
    ),
]
"""The option of a command."""


def name_device(host: str, name: str, plugin: str = "") -> None:
    """Name the device before the program starts, where torch is the host.

    Args:
        host: ``"torch"`` or ``"python"``; only torch has such a device.
        name: as the user said; empty: that of the plugin, where nobody gave another one.
        plugin: the plugin that the user named, if any.

    Raises:
        UsageError: the device has another name.
    """
    if host != "torch":
        return
    if name:
        from devprof.torch.participants import name_backend

        name_backend(name)
        return
    served = [one.capabilities.torch_device for one in discover().profilers if plugin in (one.name, one.plugin.name)]
    name_unnamed(*served)


def name_unnamed(*names: str | None) -> None:
    """Give the device the first of these names, where torch is installed and nobody has named it."""
    wanted = next((name for name in names if name), None)
    if wanted is None or not torch_facts():
        return
    from devprof.torch.participants import backend_name, name_backend

    if backend_name() is None:
        name_backend(wanted)


def named(host: str) -> str | None:
    """Return the name of torch's device now, where torch is the host; None: it has none."""
    if host != "torch":
        return None
    from devprof.torch.participants import backend_name

    return backend_name()


def absent(host: str, took_part: Iterable[str], before: str | None) -> list[str]:
    """Return a line for each plugin that serves a torch device and took no part.

    Args:
        host: ``"torch"`` or ``"python"``; nothing is said of the second.
        took_part: names of the plugins that did.
        before: the name of torch's device when the program began.
    """
    if host != "torch":
        return []
    there, now = set(took_part), named(host)
    missed = [one for one in discover().profilers if one.name not in there and one.capabilities.torch_device]
    return [_why(one, before, now) for one in missed]


def _why(plugin: RegisteredProfiler, before: str | None, found: str | None) -> str:
    device = plugin.capabilities.torch_device
    if before == device:
        why = "it has no session here; `devprof doctor` says what keeps devprof or the plugin from taking part"
    elif found == device:
        why = f"torch's device had no name when the program began, and is {device!r} since: say --torch-device {device}"
    elif found is None:
        why = f"it serves {device!r}, and torch's device has no name: say --torch-device {device}"
    else:
        why = f"it serves {device!r}, and torch's device is {found!r}"
    return f"{plugin.name} took no part: {why}"
