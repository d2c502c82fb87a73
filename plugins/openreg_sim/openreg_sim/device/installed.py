"""The process's one link to the native device, once it is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ctypes

    from openreg_sim.device.link import RuntimeLink

__all__ = ["library", "link", "link_or_none", "set_link"]

_link: RuntimeLink | None = None


def set_link(new: RuntimeLink) -> None:
    """Make the link known; called once, by `install`."""
    global _link
    _link = new


def link_or_none() -> RuntimeLink | None:
    """Return the link, or None before the device is installed."""
    return _link


def link() -> RuntimeLink:
    """Return the link.

    Raises:
        RuntimeError: the device is not installed in this process.
    """
    if _link is None:
        raise RuntimeError("the device openreg is not installed; openreg_sim.autoload.status() says why")
    return _link


def library() -> ctypes.CDLL:
    """Return the native library, with its prototypes set."""
    return link().library
