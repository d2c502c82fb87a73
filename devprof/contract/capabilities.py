"""What a plugin declares about itself, and the version of the contract."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

__all__ = ["CONTRACT_VERSION", "Capabilities", "CorrelationAccess", "NativeCorrelation"]

CONTRACT_VERSION = (1, 0)
"""Version of this contract. A plugin written for the same major number loads; a greater minor number is refused."""


class CorrelationAccess(Enum):
    """How a plugin learns the op and user ids that are current at a launch."""

    READ = "read"
    """It reads `devprof.correlation` (Python) or devprof's C header when it launches work. Costs nothing per op."""
    NATIVE = "native"
    """Its session's `native_correlation()` gives C functions that are called at each push and pop. About 5 ns per op."""
    PYTHON = "python"
    """Its session's `push_correlation_id` and friends are called in Python. About 0.4 us per op: for small programs."""


@dataclass(frozen=True, slots=True)
class NativeCorrelation:
    """C functions of a vendor's runtime that mirror the host's correlation stacks.

    Both are called on the thread that runs the op, without the GIL, and must not block, throw or call Python. They may be
    called when no push is outstanding. They must stay valid until the process ends.

    Attributes:
        push: address of ``void push(uint32_t kind, uint64_t id)``; kind 0 is an op id, 1 a user id. 0: none.
        pop: address of ``void pop(uint32_t kind)``. 0: none.

    Raises:
        ValueError: an address is no whole number of 64 bits.
    """

    push: int
    pop: int

    def __post_init__(self) -> None:
        # native code jumps there at the next op
        for field, address in (("push", self.push), ("pop", self.pop)):
            if not isinstance(address, int) or not 0 <= address < 2**64:
                raise ValueError(f"NativeCorrelation.{field} is {address!r}, expected the address of a C function")


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a plugin is and can do.

    Attributes:
        contract_version: version of the contract that the plugin was written for.
        torch_device: name of the renamed PrivateUse1 backend that this plugin serves, such as ``"npu"``; a torch session for
            that backend takes the plugin in by itself. None: only sessions that name the plugin take it in.
        correlation: how the plugin learns the current op and user ids.
        description: one line for ``devprof plugins``.
    """

    contract_version: tuple[int, int] = CONTRACT_VERSION
    torch_device: str | None = None
    correlation: CorrelationAccess = CorrelationAccess.READ
    description: str = ""
