"""The module `torch.openreg`: what torch, and programs written for `torch.cuda`, expect of a device.

Registered by `torch._register_device_module`; several functions are called by torch itself (`_lazy_init`, `_is_in_bad_fork`,
`manual_seed_all`, `device_count`, `current_device`, `synchronize`, `get_amp_supported_dtype`, ...).
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, NamedTuple

import torch

from openreg_sim.device.indices import DeviceLike, index_of
from openreg_sim.device.installed import library
from openreg_sim.device.memory import (
    empty_cache,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    reset_peak_memory_stats,
    set_memory_limit,
)
from openreg_sim.device.random import (
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from openreg_sim.device.streams import (
    Event,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    set_stream,
    stream,
)

__all__ = [
    "Event",
    "Stream",
    "StreamContext",
    "current_device",
    "current_stream",
    "default_stream",
    "device",
    "device_count",
    "device_of",
    "empty_cache",
    "get_amp_supported_dtype",
    "get_device_name",
    "get_device_properties",
    "get_rng_state",
    "get_rng_state_all",
    "init",
    "initial_seed",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_memory_limit",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
    "synchronize",
]


_initialized = True  # what torch.utils.checkpoint looks at before it saves random states


class DeviceProperties(NamedTuple):
    """Facts about a device.

    Attributes:
        name: for people.
        total_memory: bytes.
    """

    name: str
    total_memory: int


def is_available() -> bool:
    """Return True: the module is there only where the device is."""
    return True


def init() -> None:
    """Do nothing: the device starts with torch."""


def is_initialized() -> bool:
    """Return True: the device starts with torch."""
    return True


def _lazy_init() -> None:
    """Called by torch before the first use of the device."""


def _is_in_bad_fork() -> bool:
    """Return False: the simulated device survives a fork."""
    return False


def device_count() -> int:
    """Return how many devices there are; ``DEVPROF_OPENREG_DEVICES`` sets it."""
    return int(library().orDeviceCount())


def current_device() -> int:
    """Return the calling thread's device."""
    return int(library().orCurrentDevice())


def set_device(device: DeviceLike) -> None:
    """Change the calling thread's device."""
    library().orSetDevice(index_of(device))


class device:  # torch's name for it
    """Makes a device current within a block; None and negative indices change nothing."""

    def __init__(self, device: DeviceLike) -> None:
        keeps = device is None or (isinstance(device, int) and device < 0)
        self.idx = -1 if keeps else index_of(device)
        self.prev_idx = -1

    def __enter__(self) -> None:
        self.prev_idx = current_device()
        if self.idx >= 0:
            set_device(self.idx)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        set_device(self.prev_idx)


class device_of(device):  # torch's name for it
    """Makes the device of a tensor current within a block; a tensor elsewhere changes nothing."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.device.index if obj.device.type == "openreg" else None)


def synchronize(device: DeviceLike = None) -> None:
    """Wait until a device has finished all its work."""
    torch._C._accelerator_synchronizeDevice(index_of(device))


def get_device_name(device: DeviceLike = None) -> str:
    """Return a device's name."""
    return get_device_properties(device).name


def get_device_properties(device: DeviceLike = None) -> DeviceProperties:
    """Return facts about a device."""
    return DeviceProperties(f"OpenReg simulated device {index_of(device)}", mem_get_info(device)[1])


def get_amp_supported_dtype() -> list[torch.dtype]:
    """Return the dtypes that autocast may choose."""
    return [torch.float16, torch.bfloat16]


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Return True: numbers are computed by the CPU, which knows bfloat16."""
    return True
