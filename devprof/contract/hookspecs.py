"""The hooks that a plugin implements, for pluggy.

A plugin is a module (or object) behind an entry point in group ``devprof.plugins``; it implements the hooks it needs with
`hookimpl`. Hooks are called when a session, ``devprof plugins`` or ``devprof build`` first needs them, never at import. A
hook that raises is recorded with its cause, and its plugin is skipped.
"""

from __future__ import annotations

from collections.abc import Sequence

import pluggy

from devprof.contract.native_build import NativeBuild
from devprof.contract.profiler import IActivityProfiler
from devprof.contract.stubs import ProfilerStubs

__all__ = ["PROJECT_NAME", "DevprofSpec", "hookimpl", "hookspec"]

PROJECT_NAME = "devprof"
"""pluggy's project name; the entry-point group is ``devprof.plugins``."""

hookspec = pluggy.HookspecMarker(PROJECT_NAME)
hookimpl = pluggy.HookimplMarker(PROJECT_NAME)
"""Marks a plugin's function as the implementation of the hook of that name."""


class DevprofSpec:
    """The hooks. Signatures are the contract; a hook may take fewer arguments than its spec."""

    @hookspec
    def devprof_activity_profilers(self) -> Sequence[IActivityProfiler]:
        """Return the plugin's activity profilers, usually one.

        Called once per process, on the thread that first needs plugins. Must not touch a device: that belongs in `configure`.
        """
        raise AssertionError("a hookspec is never called")

    @hookspec
    def devprof_profiler_stubs(self) -> ProfilerStubs | None:
        """Return stubs for torch's legacy profiler, or None.

        Called once per process, when a legacy profile of a renamed backend first starts.
        """
        raise AssertionError("a hookspec is never called")

    @hookspec
    def devprof_native_builds(self) -> Sequence[NativeBuild]:
        """Return the native libraries that ``devprof build`` can build for this plugin.

        Called by ``devprof build`` and ``devprof doctor``.
        """
        raise AssertionError("a hookspec is never called")
