"""What a backend delivered, saved in one file, and fed back where there is no hardware.

Job: record a plugin's sessions; replay them as a plugin, with faults on request.
In: sessions of any plugin while a program or the conformance kit runs; a recording's file.
Out: a `Recording` and its file; `ReplayProfiler`, which devprof takes for the backend; a workload and the host's side.
Never: calls a device, records a user's names unless asked, or runs what a file says.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from devprof.replay.faults import FAULTS, Fault, faults_of
    from devprof.replay.files import load, save
    from devprof.replay.host_side import run_host_side
    from devprof.replay.player import Player, ReplayedError
    from devprof.replay.profiler import ReplayProfiler
    from devprof.replay.recorder import Recorder
    from devprof.replay.recording import HostRanges, RecordedSession, Recording
    from devprof.replay.scrub import scrubbed
    from devprof.replay.workload import RecordingWorkload, ReplayWorkload

# every process that lists plugins imports this package for the plugin's entry point: nothing is loaded here
_EXPORTS = {
    "FAULTS": "faults",
    "Fault": "faults",
    "HostRanges": "recording",
    "Player": "player",
    "RecordedSession": "recording",
    "Recorder": "recorder",
    "Recording": "recording",
    "RecordingWorkload": "workload",
    "ReplayProfiler": "profiler",
    "ReplayWorkload": "workload",
    "ReplayedError": "player",
    "faults_of": "faults",
    "load": "files",
    "run_host_side": "host_side",
    "save": "files",
    "scrubbed": "scrub",
}

__all__ = [
    "FAULTS",
    "Fault",
    "HostRanges",
    "Player",
    "RecordedSession",
    "Recorder",
    "Recording",
    "RecordingWorkload",
    "ReplayProfiler",
    "ReplayWorkload",
    "ReplayedError",
    "faults_of",
    "load",
    "run_host_side",
    "save",
    "scrubbed",
]


def __getattr__(name: str) -> Any:
    module = _EXPORTS.get(name)
    if module is None:
        raise AttributeError(f"module 'devprof.replay' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"devprof.replay.{module}"), name)
    globals()[name] = value
    return value
