"""The guest of this process, as the wrap sees it: the wrap is there after every `import torch`, and loads no other room."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from devprof.capture.guest import Guest

__all__ = ["guest_is_here", "make_way"]


def make_way() -> bool:
    """Let a capture that came from outside stop, for a profile of the program's own; say whether there was one."""
    guest = _guest()
    return guest is not None and guest.make_way()


def guest_is_here() -> bool:
    """Say whether the calling thread is that of a capture that came from outside."""
    guest = _guest()
    return guest is not None and guest.is_here


def _guest() -> Guest | None:
    """Return where guests are written down; where nobody has loaded that, there is none."""
    module = sys.modules.get("devprof.capture.guest")
    found: Guest | None = getattr(module, "GUEST", None)
    return found
