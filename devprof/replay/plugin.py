"""What devprof gives to itself; the entry point ``replay`` of group ``devprof.plugins`` names this module.

With ``DEVPROF_REPLAY=FILE`` in the environment there is a plugin named ``replay``, whose device is that recording;
``DEVPROF_REPLAY_FAULTS`` names faults, with commas. Without it there is none.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from devprof.contract import IActivityProfiler, hookimpl

__all__ = ["devprof_activity_profilers", "workload"]


@functools.cache
def _profiler() -> Any:
    path = os.environ.get("DEVPROF_REPLAY", "")
    if not path:
        return None
    from devprof.errors import UsageError
    from devprof.replay.profiler import ReplayProfiler

    if not Path(path).is_file():
        raise UsageError(f"DEVPROF_REPLAY names {path}, and there is no such file")
    return ReplayProfiler(path, faults=os.environ.get("DEVPROF_REPLAY_FAULTS", ""))


@hookimpl
def devprof_activity_profilers() -> Sequence[IActivityProfiler]:
    """Return the replay, where the environment names a recording."""
    found = _profiler()
    return [] if found is None else [found]


def workload() -> Any:
    """Return the workload of the recording, for ``devprof conform replay``; the entry point of group ``devprof.workloads``."""
    from devprof.errors import UsageError
    from devprof.replay.workload import ReplayWorkload

    found = _profiler()
    if found is None:
        raise UsageError("there is no recording: set DEVPROF_REPLAY to its file")
    return ReplayWorkload(found.player)
