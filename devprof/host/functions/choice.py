"""Which core records."""

from __future__ import annotations

import sys
from collections.abc import Callable

from devprof.host.functions.events import Core

__all__ = ["chosen_core"]


def chosen_core(max_events: int, ticks: Callable[[], int]) -> Core:
    """Return the core for this interpreter."""
    if sys.version_info >= (3, 12):
        from devprof.host.functions.monitoring import MonitoringCore

        return MonitoringCore(max_events, ticks)
    from devprof.host.functions.setprofile import SetprofileCore

    return SetprofileCore(max_events, ticks)
