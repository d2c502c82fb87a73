"""What the catalogue holds: who a plugin is, and what it registered."""

from __future__ import annotations

from dataclasses import dataclass

from devprof.contract import Capabilities, IActivityProfiler, ProfilerStubs
from devprof.model import ActivityType

__all__ = ["PluginInfo", "RegisteredProfiler", "RegisteredStubs"]


@dataclass(frozen=True, slots=True)
class PluginInfo:
    """Who a plugin is.

    Attributes:
        name: its entry point's name, or the name it was registered under in this process.
        distribution: name of the installed distribution, empty for a plugin of this process.
        version: version of the distribution, empty for a plugin of this process.
        source: where it comes from, such as ``"entry point openreg_sim.plugin"``.
    """

    name: str
    distribution: str = ""
    version: str = ""
    source: str = "registered in this process"


@dataclass(frozen=True, slots=True)
class RegisteredProfiler:
    """An activity profiler that fits the contract, with what it answered at registration.

    Attributes:
        name: the profiler's own name, unique in the catalogue.
        profiler: the object.
        capabilities: what it is and can do.
        available_activities: kinds it can record.
        plugin: the plugin that brought it.
    """

    name: str
    profiler: IActivityProfiler
    capabilities: Capabilities
    available_activities: frozenset[ActivityType]
    plugin: PluginInfo

    @property
    def distribution(self) -> str:
        """Name of the distribution that brought it, empty for a plugin of this process."""
        return self.plugin.distribution

    @property
    def version(self) -> str:
        """Version of that distribution."""
        return self.plugin.version

    @property
    def source(self) -> str:
        """Where the plugin comes from."""
        return self.plugin.source


@dataclass(frozen=True, slots=True)
class RegisteredStubs:
    """Stubs for torch's legacy profiler that fit the contract.

    Attributes:
        name: name of the plugin that brought them.
        stubs: the object.
        torch_device: the renamed backend that they serve, unique in the catalogue.
        plugin: the plugin that brought them.
    """

    name: str
    stubs: ProfilerStubs
    torch_device: str
    plugin: PluginInfo
