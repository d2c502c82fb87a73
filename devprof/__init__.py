"""devprof: write a PyTorch profiler backend in Python.

Job: the front door; names resolve to the rooms that own them, on first use.
In: nothing.
Out: the public names below.
Never: imports numpy, pluggy or torch, scans entry points or touches a device at import.
"""

from __future__ import annotations

import importlib
import os
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
    "on_demand": "devprof.trigger",
    "ProfilerAction": "devprof.profiler",
    "ProfilerActivity": "devprof.profiler",
    "profile": "devprof.profiler",
    "schedule": "devprof.profiler",
    "tensorboard_trace_handler": "devprof.profiler",
    "emit_itt": "devprof.profiler.emit",
    "emit_nvtx": "devprof.profiler.emit",
    "Trace": "devprof.store",
    "load": "devprof.pipeline.files",
    "load_nsys": "devprof.pipeline.files",
    "load_nvprof": "devprof.pipeline.files",
    "trace_of": "devprof.torch",
}

# rooms that a user asks by name: `devprof.analysis.diff(...)` after `import devprof`
_ROOMS = ("analysis", "correlation", "errors", "export", "host", "rules", "torch")

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
    "Trace",
    "__version__",
    "emit_itt",
    "emit_nvtx",
    "hookimpl",
    "last_report",
    "load",
    "load_nsys",
    "load_nvprof",
    "on_demand",
    "profile",
    "record_function",
    "report_memory",
    "report_of",
    "report_out_of_memory",
    "schedule",
    "tensorboard_trace_handler",
    "trace_of",
]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return importlib.import_module(f"devprof.{name}")
    room = _EXPORTS.get(name)
    if room is None:
        raise AttributeError(f"module 'devprof' has no attribute {name!r}")
    if os.environ.get("DEVPROF_ON_DEMAND"):  # a program uses devprof, and its user wants to attach to it
        importlib.import_module("devprof.trigger").start_if_asked()
    value = getattr(importlib.import_module(room), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *_ROOMS])
