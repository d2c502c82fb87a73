"""`plugin_of`: a plugin object around profilers and stubs that a test made."""

from __future__ import annotations

from collections.abc import Sequence

from devprof.contract import IActivityProfiler, ProfilerStubs, hookimpl

__all__ = ["InProcessPlugin", "plugin_of"]


class InProcessPlugin:
    """Implements the hooks for objects that exist already; for `devprof.registry.register`."""

    def __init__(self, profilers: Sequence[IActivityProfiler], stubs: ProfilerStubs | None) -> None:
        self._profilers = profilers
        self._stubs = stubs

    @hookimpl
    def devprof_activity_profilers(self) -> Sequence[IActivityProfiler]:
        """Return the profilers."""
        return self._profilers

    @hookimpl
    def devprof_profiler_stubs(self) -> ProfilerStubs | None:
        """Return the stubs."""
        return self._stubs


def plugin_of(*profilers: IActivityProfiler, stubs: ProfilerStubs | None = None) -> InProcessPlugin:
    """Return a plugin that brings these profilers and stubs."""
    return InProcessPlugin(profilers, stubs)
