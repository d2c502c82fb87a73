"""Streams and events of the devices: torch's own, with `openreg` as the device that is meant."""

from __future__ import annotations

from types import TracebackType
from typing import Any

import torch

from openreg_sim.device.indices import DeviceLike, index_of
from openreg_sim.device.installed import library

__all__ = ["Event", "Stream", "StreamContext", "current_stream", "default_stream", "set_stream", "stream"]

_DEVICE_TYPE = 20
"""torch's number of PrivateUse1, which a stream's constructor asks for."""


class Stream(torch.Stream):
    """A stream of an openreg device; a `torch.Stream` by another name."""

    def __new__(cls, device: DeviceLike = None, priority: int = 0, **packed: Any) -> Stream:
        """Make a stream on a device; None means the current one. `packed` names an existing stream, as torch does."""
        if packed:
            return super().__new__(cls, **packed)
        return super().__new__(cls, device=torch.device("openreg", index_of(device)), priority=priority)


def Event(enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> torch.Event:
    """Make an event of an openreg device; only one made with `enable_timing` may be asked for times.

    Not a class: `torch.Event.elapsed_time` takes no instance of a subclass.
    """
    return torch.Event("openreg", enable_timing=enable_timing, blocking=blocking, interprocess=interprocess)


def current_stream(device: DeviceLike = None) -> Stream:
    """Return the calling thread's stream on a device."""
    index = index_of(device)
    return _existing(index, library().orCurrentStream(index))


def default_stream(device: DeviceLike = None) -> Stream:
    """Return the stream that a device has from the start."""
    return _existing(index_of(device), 0)


def set_stream(stream: torch.Stream) -> None:
    """Make a stream, and its device, the calling thread's current ones."""
    torch.accelerator.set_stream(stream)


class StreamContext:
    """Makes a stream current within a block, then the former stream and device again; None changes nothing."""

    def __init__(self, stream: torch.Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is not None:
            self.stream.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.stream is not None:
            self.stream.__exit__(kind, error, traceback)


def stream(stream: torch.Stream | None) -> StreamContext:
    """Return a context in which a stream is current."""
    return StreamContext(stream)


def _existing(device: int, number: int) -> Stream:
    return Stream(stream_id=number, device_index=device, device_type=_DEVICE_TYPE)
