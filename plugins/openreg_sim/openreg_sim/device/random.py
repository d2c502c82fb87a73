"""Random numbers of the devices. Each has a generator of its own, which gives what a CPU generator with its seed would."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable

import torch

from openreg_sim.device.indices import DeviceLike, index_of
from openreg_sim.device.installed import library

__all__ = [
    "get_rng_state",
    "get_rng_state_all",
    "initial_seed",
    "manual_seed",
    "manual_seed_all",
    "seed",
    "seed_all",
    "set_rng_state",
    "set_rng_state_all",
]

_SEEDS = 1 << 64


def manual_seed(seed: int) -> None:
    """Seed the current device's generator; negative numbers count from 2**64, as elsewhere in torch."""
    library().orManualSeed(index_of(None), int(seed) % _SEEDS)


def manual_seed_all(seed: int) -> None:
    """Seed the generators of all devices."""
    for device in range(library().orDeviceCount()):
        library().orManualSeed(device, int(seed) % _SEEDS)


def seed() -> None:
    """Seed the current device's generator with a random number."""
    library().orSeed(index_of(None))


def seed_all() -> None:
    """Seed the generators of all devices with one random number."""
    manual_seed_all(library().orSeed(0))


def initial_seed() -> int:
    """Return the seed of the current device's generator."""
    return int(library().orInitialSeed(index_of(None)))


def get_rng_state(device: DeviceLike = "openreg") -> torch.Tensor:
    """Return the state of a device's generator: a CPU tensor of bytes."""
    index = index_of(device)
    size = library().orGetRngState(index, None, 0)
    state = torch.empty(size, dtype=torch.uint8, device="cpu")
    library().orGetRngState(index, state.data_ptr(), size)
    return state


def set_rng_state(new_state: torch.Tensor, device: DeviceLike = "openreg") -> None:
    """Set the state of a device's generator to what `get_rng_state` returned.

    Raises:
        RuntimeError: it is no such state.
    """
    state = new_state.detach().to("cpu", torch.uint8).contiguous()
    address = ctypes.c_void_p(state.data_ptr())
    if library().orSetRngState(index_of(device), address, state.numel()) != 0:
        raise RuntimeError(f"set_rng_state: {library().orLastError().decode()}")


def get_rng_state_all() -> list[torch.Tensor]:
    """Return the states of all devices' generators."""
    return [get_rng_state(device) for device in range(library().orDeviceCount())]


def set_rng_state_all(new_states: Iterable[torch.Tensor]) -> None:
    """Set the states of all devices' generators."""
    for device, state in enumerate(new_states):
        set_rng_state(state, device)
