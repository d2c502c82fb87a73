"""`Infos`: what a plugin says of its rows again and again while it records; the latest word on each counts."""

from __future__ import annotations

from collections.abc import Iterable

from devprof.model import DeviceInfo, ResourceInfo

__all__ = ["MAX_INFOS", "Infos"]

MAX_INFOS = 10_000
"""Rows, and devices, that are remembered: ids that never repeat must not fill the memory."""


class Infos:
    """The latest names of devices and rows, by number."""

    def __init__(self) -> None:
        self._devices: dict[int, DeviceInfo] = {}
        self._resources: dict[tuple[int, int], ResourceInfo] = {}

    def add(self, devices: Iterable[DeviceInfo], resources: Iterable[ResourceInfo]) -> None:
        """Take what was said now."""
        for device in devices:
            if len(self._devices) < MAX_INFOS or device.id in self._devices:
                self._devices[device.id] = device
        for resource in resources:
            key = resource.device_id, resource.id
            if len(self._resources) < MAX_INFOS or key in self._resources:
                self._resources[key] = resource

    def put_before(self, devices: list[DeviceInfo], resources: list[ResourceInfo]) -> None:
        """Put into two lists, at their beginning, what they do not name yet."""
        known = {device.id for device in devices}
        devices[:0] = [info for number, info in list(self._devices.items()) if number not in known]
        named = {(resource.device_id, resource.id) for resource in resources}
        resources[:0] = [info for key, info in list(self._resources.items()) if key not in named]
