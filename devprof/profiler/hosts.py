"""Which host records the program's own side: a table of names, resolved when a profile is made."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import cast

from devprof.capture.hosting import ProfileOptions, ProfilerHost
from devprof.errors import UsageError

__all__ = ["HOSTS", "make_host"]

HOSTS = {
    "torch": "devprof.torch.profile_host:TorchHost",
    "python": "devprof.profiler.python_host:PythonHost",
}
"""Module and attribute of each host; a host is made with the user's options."""


def make_host(name: str, options: ProfileOptions) -> ProfilerHost:
    """Return a host of that name; "auto" is torch where the program has imported it, else devprof itself.

    Raises:
        UsageError: there is no such host, or torch is not installed, or the options do not fit it.
    """
    chosen = ("torch" if _torch_is_imported() else "python") if name == "auto" else name
    if chosen not in HOSTS:
        raise UsageError(f"host is {name!r}; expected 'auto', {', '.join(repr(known) for known in HOSTS)}")
    module, _, attribute = HOSTS[chosen].partition(":")
    try:
        factory = getattr(importlib.import_module(module), attribute)
    except ImportError as error:
        raise UsageError(f"host={chosen!r} cannot be used here: {error}; host='python' needs nothing else") from error
    return cast(Callable[[ProfileOptions], ProfilerHost], factory)(options)


def _torch_is_imported() -> bool:
    return hasattr(sys.modules.get("torch"), "autograd")
