"""What tests of plugins, hosts and programs need: fakes, a kit that says whether a plugin is right, assertions on traces.

Job: plugins whose behaviour a test writes down; checks of any plugin, in `devprof.testing.conformance`; a fixture for pytest.
In: records and faults that a test chooses; a plugin and a workload.
Out: objects that fit `devprof.contract`; per check whether it holds.
Never: is needed by anything but tests.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from devprof.testing.plugin import InProcessPlugin, plugin_of
    from devprof.testing.scripted import Fault, ScriptedProfiler, ScriptedSession
    from devprof.testing.traced import Traced

# pytest imports this package for its plugin in every run, also where nobody uses it: nothing is loaded here
_EXPORTS = {
    "Fault": "devprof.testing.scripted",
    "InProcessPlugin": "devprof.testing.plugin",
    "ScriptedProfiler": "devprof.testing.scripted",
    "ScriptedSession": "devprof.testing.scripted",
    "Traced": "devprof.testing.traced",
    "plugin_of": "devprof.testing.plugin",
}

__all__ = ["Fault", "InProcessPlugin", "ScriptedProfiler", "ScriptedSession", "Traced", "plugin_of"]


def __getattr__(name: str) -> Any:
    module = _EXPORTS.get(name)
    if module is None:
        raise AttributeError(f"module 'devprof.testing' has no attribute {name!r}")
    value = getattr(importlib.import_module(module), name)
    globals()[name] = value
    return value
