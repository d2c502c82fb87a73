"""`RangeForwarder`: shows devprof's ranges to torch, so that they are in its trace too.

Without it a program that marks its ranges with `devprof.record_function` would lose them under ``host="torch"``.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.profiler import record_function

from devprof.host import CallbackHandle, RangeEvent, RecordScope, add_global_callback, remove_callback

__all__ = ["RangeForwarder"]


class RangeForwarder:
    """Between `start` and `stop`, every range of devprof's is one of torch's: a user range as such, the others as ops."""

    def __init__(self) -> None:
        self._handle: CallbackHandle | None = None

    def start(self) -> None:
        """Show what is entered from now on."""
        self._handle = add_global_callback(_enter, _exit)

    def stop(self) -> None:
        """Show nothing more; ranges that are open stay open in torch's trace, as torch's own do."""
        handle, self._handle = self._handle, None
        if handle is not None:
            remove_callback(handle)


def _enter(event: RangeEvent) -> Any:
    if event.scope is RecordScope.USER_SCOPE:
        mirror: Any = record_function(event.name)
    else:
        mirror = torch._C._profiler._RecordFunctionFast(event.name)
    mirror.__enter__()
    return mirror


def _exit(event: RangeEvent, mirror: Any) -> None:
    mirror.__exit__(None, None, None)
