"""Fakes for tests of plugins and hosts.

Job: plugins whose behaviour a test writes down.
In: records and faults that a test chooses.
Out: objects that fit `devprof.contract`.
Never: is needed by anything but tests.
"""

from devprof.testing.plugin import InProcessPlugin, plugin_of
from devprof.testing.scripted import Fault, ScriptedProfiler, ScriptedSession

__all__ = ["Fault", "InProcessPlugin", "ScriptedProfiler", "ScriptedSession", "plugin_of"]
