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
        """Return the plugin's activity profilers, usually one. Device initialisation belongs in `configure`.

        Thread: the one that first needs plugins: a user's thread that prepares a device profile, or a command's.
        Called: once per process. Never: touch a device, or block: no time budget guards it and other threads that need
        plugins wait. If it raises: recorded as a failure with one warning; its profilers are left out, the plugin's
        other hooks are still called.
        """
        raise AssertionError("a hookspec is never called")

    @hookspec
    def devprof_profiler_stubs(self) -> ProfilerStubs | None:
        """Return stubs for torch's legacy profiler, or None.

        Thread: the user's thread that starts the profile. Called: once per process, when a legacy profile of a renamed
        backend first starts. Never: touch a device, or block: no time budget guards it and other threads that need
        plugins wait. If it raises: recorded as a failure with one warning; its stubs are left out, the plugin's other
        hooks are still called.
        """
        raise AssertionError("a hookspec is never called")

    @hookspec
    def devprof_native_builds(self) -> Sequence[NativeBuild]:
        """Return the native libraries that ``devprof build`` can build for this plugin.

        Thread: the command's main thread. Called: once per process, by ``devprof build`` and ``devprof doctor``. Never:
        touch a device, or block: no time budget guards it and other threads that need plugins wait. If it raises:
        recorded as a failure with one warning; its builds are left out, the plugin's other hooks are still called.
        """
        raise AssertionError("a hookspec is never called")

    @hookspec
    def devprof_doctor_lines(self) -> Sequence[str]:
        """Return what ``devprof doctor`` should say of the plugin's device and libraries, a line each.

        Such as: the releases of driver and library, whether they fit, what is missing and what to do about it. The device may
        be asked here, and only here outside of a session.

        Thread: the command's main thread. Called: once per process, by ``devprof doctor``. Never: wait for the device's work;
        no time budget guards it. If it raises: recorded as a failure with one warning; its lines are left out, the plugin's
        other hooks are still called.
        """
        raise AssertionError("a hookspec is never called")
