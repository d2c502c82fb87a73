"""torch as a host: devprof's plugins inside an unchanged torch.profiler session.

Job: the wrap around torch's entry points, the native bridge to Kineto, the legacy stubs, the sink for finished profiles.
In: torch's profiles, `capture` and `pipeline`.
Out: records in Kineto's own trace; `trace_of`, `report_of`, `last_report`, `enable`.
Never: decides how records are linked, or runs Python under Kineto's mutex.
"""

from __future__ import annotations

import importlib
from typing import Any

# the entry point in `torch.backends` imports this package while torch is still being imported: nothing is loaded here
_EXPORTS = {
    "disable": "devprof.torch.participants",
    "enable": "devprof.torch.participants",
    "enabled": "devprof.torch.participants",
    "install": "devprof.torch.interpose",
    "installed": "devprof.torch.interpose",
    "last_report": "devprof.capture",
    "report_of": "devprof.capture",
    "trace_of": "devprof.torch.sink",
    "uninstall": "devprof.torch.interpose",
}

__all__ = [
    "disable",
    "enable",
    "enabled",
    "install",
    "installed",
    "last_report",
    "report_of",
    "trace_of",
    "uninstall",
]


def __getattr__(name: str) -> Any:
    module = _EXPORTS.get(name)
    if module is None:
        raise AttributeError(f"module 'devprof.torch' has no attribute {name!r}")
    try:
        value = getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        message = (
            f"devprof.torch.{name} is for torch's profiler, and torch is not installed: pip install 'devprof[torch]'"
        )
        raise ModuleNotFoundError(message, name="torch") from error
    globals()[name] = value
    return value
