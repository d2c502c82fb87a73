"""Where events stand: host processes and devices, and the rows in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

__all__ = ["HOST_BACKEND", "Place", "PlaceKind", "Row"]

HOST_BACKEND = "cpu"
"""Backend of every host process."""


class PlaceKind(Enum):
    """What a place is."""

    HOST = "host"
    DEVICE = "device"


@dataclass(frozen=True, slots=True)
class Place:
    """A host process or a device: what a Chrome trace calls a process.

    Attributes:
        id: process id, or device index with its plugin's offset.
        kind: which of the two.
        name: what its rows are headed with.
        label: short text beside the name.
        sort_index: position among the places; None: hosts by id, then devices by id.
        backend: `HOST_BACKEND`, or the name of the backend whose device it is, such as ``"openreg"``.
        properties: facts about a device, for the trace's ``deviceProperties``.
    """

    id: int
    kind: PlaceKind
    name: str = ""
    label: str = ""
    sort_index: int | None = None
    backend: str = HOST_BACKEND
    properties: Mapping[str, object] = field(default_factory=dict, hash=False)

    @property
    def title(self) -> str:
        """A short name that tells it from others: a device as torch writes one, such as ``"openreg:0"``; a process by name."""
        if self.kind is PlaceKind.DEVICE:
            return f"{self.backend}:{self.id}"
        return self.name or f"process {self.id}"


@dataclass(frozen=True, slots=True)
class Row:
    """A track in a place: a host thread, or a stream, queue or engine of a device.

    Attributes:
        place: index into the trace's places.
        id: native id of the thread, or number of the resource.
        name: what the row is called; empty: by its number.
        sort_index: position in the place; None: by id.
    """

    place: int
    id: int
    name: str = ""
    sort_index: int | None = None
