"""What a plugin must be: Kineto's plugin contract, in Python.

Job: the protocols, the hookspecs, the values that cross between devprof and a plugin, and the contract's version.
In: `devprof.model` values.
Out: `IActivityProfiler`, `IActivityProfilerSession`, `ActivityLogger`, `ProfilerStubs`, `hookimpl`.
Never: calls a plugin, or knows a host.
"""

from devprof.contract.capabilities import (
    CONTRACT_VERSION,
    Capabilities,
    CorrelationAccess,
    NativeCorrelation,
)
from devprof.contract.clocks import HOST_CLOCK, ClockDomain, ClockSample
from devprof.contract.hookspecs import PROJECT_NAME, DevprofSpec, hookimpl, hookspec
from devprof.contract.logger import ActivityLogger, GetLinkedActivity
from devprof.contract.native_build import NativeBuild
from devprof.contract.profiler import IActivityProfiler, IActivityProfilerSession, TraceStatus
from devprof.contract.session_config import MemoryReporter, SessionConfig
from devprof.contract.stubs import ProfilerStubs

__all__ = [
    "CONTRACT_VERSION",
    "HOST_CLOCK",
    "PROJECT_NAME",
    "ActivityLogger",
    "Capabilities",
    "ClockDomain",
    "ClockSample",
    "CorrelationAccess",
    "DevprofSpec",
    "GetLinkedActivity",
    "IActivityProfiler",
    "IActivityProfilerSession",
    "MemoryReporter",
    "NativeBuild",
    "NativeCorrelation",
    "ProfilerStubs",
    "SessionConfig",
    "TraceStatus",
    "hookimpl",
    "hookspec",
]
