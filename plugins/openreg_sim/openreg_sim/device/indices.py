"""Which device a caller means."""

from __future__ import annotations

import torch

from openreg_sim.device.installed import library

__all__ = ["DeviceLike", "index_of"]

DeviceLike = torch.device | str | int | None


def index_of(device: DeviceLike) -> int:
    """Return a device's index; None, and a device without an index, mean the current one.

    Raises:
        ValueError: it is another kind of device, or there is none with that index.
    """
    index: int | None
    if device is None or isinstance(device, int):
        index = device
    else:
        named = torch.device(device)
        if named.type != "openreg":
            raise ValueError(f"expected an openreg device, found {named}")
        index = named.index
    native = library()
    if index is None:
        return int(native.orCurrentDevice())
    if not 0 <= index < native.orDeviceCount():
        raise ValueError(
            f"there is no device openreg:{index}; expected an index from 0 to {native.orDeviceCount() - 1}"
        )
    return index
