"""What devprof finds: the entry point in pyproject.toml names this module. Nothing here may touch the device."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from devprof.contract import Capabilities, IActivityProfiler, SessionConfig, hookimpl
from devprof.model import ActivityType

from my_npu.session import KINDS, Session

NAME = "my-npu"
"""What users write: `devprof.profile(activities=["cpu", NAME])`."""

TORCH_DEVICE = "my_npu"
"""What torch calls your device, once your backend has renamed PrivateUse1: its sessions take the plugin in."""


class Profiler(IActivityProfiler):
    """What devprof knows of the plugin before any capture."""

    def name(self) -> str:
        """Return the plugin's name."""
        return NAME

    def capabilities(self) -> Capabilities:
        """Return what the plugin is; the version is that of the contract it was written for."""
        return Capabilities(contract_version=(1, 0), torch_device=TORCH_DEVICE, description="a fake device")

    def available_activities(self) -> frozenset[ActivityType]:
        """Return the kinds that the device can record."""
        return frozenset(KINDS)

    def configure(
        self,
        activity_types: Collection[ActivityType],
        config: SessionConfig,
        *,
        ts_ms: int | None = None,
        duration_ms: int | None = None,
    ) -> Session:
        """Make the session of one capture. What is slow, such as opening the device, belongs here."""
        return Session(activity_types)


@hookimpl
def devprof_activity_profilers() -> Sequence[IActivityProfiler]:
    """Return the plugin's profiler."""
    return [Profiler()]
