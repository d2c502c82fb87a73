"""Errors of the simulated runtime: a code, as vendors give it, and a sentence."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["ErrorCode", "OpenRegError", "OpenRegOutOfMemoryError"]


class ErrorCode(IntEnum):
    """Why a call failed."""

    INVALID_VALUE = 1
    OUT_OF_MEMORY = 2
    INVALID_DEVICE = 3
    INVALID_HANDLE = 4
    """An event or stream that does not exist, or no longer does."""
    NOT_READY = 5
    """An answer was asked for before the device has it."""
    LAUNCH_FAILURE = 6
    """The device failed; made by the fault rule `FailCall`."""


class OpenRegError(RuntimeError):
    """A call of the simulated runtime failed.

    Attributes:
        code: why.
        call: name of the call that failed, such as ``"orLaunchKernel"``.
    """

    def __init__(self, code: ErrorCode, call: str, message: str) -> None:
        super().__init__(f"{call}: {message} ({code.name})")
        self.code = code
        self.call = call


class OpenRegOutOfMemoryError(OpenRegError):
    """A device has not enough memory left.

    Attributes:
        device: index of the device.
        requested_bytes: what the call asked for.
        allocated_bytes: what was in use.
        limit_bytes: what the device has.
    """

    def __init__(self, device: int, requested_bytes: int, allocated_bytes: int, limit_bytes: int) -> None:
        super().__init__(
            ErrorCode.OUT_OF_MEMORY,
            "orMalloc",
            f"device {device} has {limit_bytes - allocated_bytes} of {limit_bytes} bytes left, {requested_bytes} were "
            "asked for; free some, or raise RuntimeConfig.memory_limit_bytes",
        )
        self.device = device
        self.requested_bytes = requested_bytes
        self.allocated_bytes = allocated_bytes
        self.limit_bytes = limit_bytes
