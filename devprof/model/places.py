"""Where work happened: devices, resources on them, and the span of a capture.

Source: libkineto/include/IActivityProfiler.h (DeviceInfo, ResourceInfo) and TraceSpan.h.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from devprof.model.items import whole

__all__ = ["DeviceInfo", "ResourceInfo", "TraceSpan"]

kExceedMaxPid = 5_000_000
"""Added to a device's index to sort its row below every host process (libkineto/include/output_base.h)."""


_MAX_DEVICE = 2**31 - 1


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """A device's row in the trace.

    Attributes:
        id: index of the device, from 0.
        name: what the row is called.
        label: short text beside the name.
        sort_index: position among the rows; None puts the device after every host process, by index.
        properties: facts about the device for the trace's ``deviceProperties``.

    Raises:
        ValueError: an id or index is no whole number within bounds, or a name is no text.
    """

    id: int
    name: str
    label: str = ""
    sort_index: int | None = None
    properties: dict[str, bool | int | float | str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # native code takes these as they are, so a wrong type is found here, in the plugin, and not there
        _check_text("DeviceInfo", name=self.name, label=self.label)
        object.__setattr__(self, "id", whole("DeviceInfo.id", self.id, 0, _MAX_DEVICE))
        _set_sort_index(self)

    @property
    def row(self) -> int:
        """Position of the device's row in a trace view."""
        return kExceedMaxPid + self.id if self.sort_index is None else self.sort_index


@dataclass(frozen=True, slots=True)
class ResourceInfo:
    """A resource's row within its device: a stream, a queue, an engine.

    Attributes:
        id: number of the resource; what records carry in `resource`.
        device_id: index of the device that owns it.
        name: what the row is called.
        sort_index: position within the device; None sorts by `id`.

    Raises:
        ValueError: an id or index is no whole number within bounds, or the name is no text.
    """

    id: int
    device_id: int
    name: str
    sort_index: int | None = None

    def __post_init__(self) -> None:
        _check_text("ResourceInfo", name=self.name)
        object.__setattr__(self, "id", whole("ResourceInfo.id", self.id))
        object.__setattr__(self, "device_id", whole("ResourceInfo.device_id", self.device_id, 0, _MAX_DEVICE))
        _set_sort_index(self)

    @property
    def row(self) -> int:
        """Position of the resource's row within its device."""
        return self.id if self.sort_index is None else self.sort_index


@dataclass(frozen=True, slots=True)
class TraceSpan:
    """The interval of one capture.

    Attributes:
        start_ns: window start, Unix ns.
        end_ns: window end, Unix ns.
        name: identifies the timeline; the plugin's name.
        iteration: number of the capture within a schedule, -1 where there is none.
    """

    start_ns: int
    end_ns: int
    name: str
    iteration: int = -1


def _check_text(owner: str, **fields: object) -> None:
    for field_name, value in fields.items():
        if not isinstance(value, str):
            raise ValueError(f"{owner}.{field_name} is a {type(value).__name__}, expected text")


def _set_sort_index(info: DeviceInfo | ResourceInfo) -> None:
    if info.sort_index is not None:
        object.__setattr__(info, "sort_index", whole(f"{type(info).__name__}.sort_index", info.sort_index))
