"""Who the plugins are, and what happens when one misbehaves.

Job: find plugins, check that they fit the contract, and turn any misbehaviour into one error and one warning.
In: entry points of group ``devprof.plugins``, objects registered in this process, what plugins return.
Out: `Catalogue` (profilers, stubs, native builds, failures) and `Guard`.
Never: starts a session, runs a thread, measures time, or lets one plugin's failure hide another plugin.
"""

from devprof.registry.catalogue import Catalogue
from devprof.registry.discovery import ENTRY_POINT_GROUP, discover, refresh, register, unregister
from devprof.registry.entries import PluginInfo, RegisteredProfiler, RegisteredStubs
from devprof.registry.failures import PluginFailure
from devprof.registry.guard import Guard, hook_here
from devprof.registry.returns import PROFILER_RETURNS, SESSION_RETURNS, STUBS_RETURNS, Expectation, check_return
from devprof.registry.validate import (
    ProfilerFacts,
    validate_build,
    validate_profiler,
    validate_session,
    validate_stubs,
)

__all__ = [
    "ENTRY_POINT_GROUP",
    "PROFILER_RETURNS",
    "SESSION_RETURNS",
    "STUBS_RETURNS",
    "Catalogue",
    "Expectation",
    "Guard",
    "PluginFailure",
    "PluginInfo",
    "ProfilerFacts",
    "RegisteredProfiler",
    "RegisteredStubs",
    "check_return",
    "discover",
    "hook_here",
    "refresh",
    "register",
    "unregister",
    "validate_build",
    "validate_profiler",
    "validate_session",
    "validate_stubs",
]
