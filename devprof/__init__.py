"""devprof: write a PyTorch profiler backend in Python.

Job: the front door; names resolve to the rooms that own them, on first use.
In: nothing.
Out: the public names below.
Never: imports numpy, pluggy or torch, scans entry points or touches a device at import.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

# name -> room that owns it; resolved lazily so that `import devprof` stays cheap
_EXPORTS = {
    "ActivityBatch": "devprof.model",
    "ActivityType": "devprof.model",
    "DeviceInfo": "devprof.model",
    "Flow": "devprof.model",
    "GenericTraceActivity": "devprof.model",
    "ResourceInfo": "devprof.model",
    "IActivityProfiler": "devprof.contract",
    "IActivityProfilerSession": "devprof.contract",
    "hookimpl": "devprof.contract",
    "DevprofError": "devprof.errors",
    "RecordFunction": "devprof.host",
    "record_function": "devprof.host",
    "report_memory": "devprof.host",
    "report_out_of_memory": "devprof.host",
    "report_of": "devprof.capture",
    "last_report": "devprof.capture",
    "ProfilerAction": "devprof.profiler",
    "ProfilerActivity": "devprof.profiler",
    "profile": "devprof.profiler",
    "schedule": "devprof.profiler",
    "tensorboard_trace_handler": "devprof.profiler",
}

__all__ = [
    "ActivityBatch",
    "ActivityType",
    "DeviceInfo",
    "DevprofError",
    "Flow",
    "GenericTraceActivity",
    "IActivityProfiler",
    "IActivityProfilerSession",
    "ProfilerAction",
    "ProfilerActivity",
    "RecordFunction",
    "ResourceInfo",
    "__version__",
    "hookimpl",
    "last_report",
    "profile",
    "record_function",
    "report_memory",
    "report_of",
    "report_out_of_memory",
    "schedule",
    "tensorboard_trace_handler",
]


def __getattr__(name: str) -> Any:
    room = _EXPORTS.get(name)
    if room is None:
        raise AttributeError(f"module 'devprof' has no attribute {name!r}")
    value = getattr(importlib.import_module(room), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
