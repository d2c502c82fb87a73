"""What the events of a Chrome trace are, by phase and category.

Source: libkineto/src/output_json.cpp for Kineto's categories; the Trace Event Format for phases that Kineto does not write.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from devprof.model import ActivityType, Role, kLinkAsyncCpuGpu, kLinkFwdBwd

__all__ = [
    "HAS_LAUNCH",
    "HAS_NO_OP",
    "HAS_OWN_ID",
    "ON_DEVICE",
    "ON_HOST",
    "Kind",
    "Kinds",
    "Meaning",
]


class Meaning(IntEnum):
    """What becomes of an event."""

    SLICE = 0
    INSTANT = 1
    COUNTER = 2
    METADATA = 3
    FLOW = 4
    HALF = 5
    SPAN = 6
    UNKNOWN = 7


class Kind(NamedTuple):
    """What an event is.

    Attributes:
        meaning: what becomes of it.
        activity_type: its type, for the first three.
        category: its category where the type does not tell, else empty.
        flow_type: type of an arrow, 0: not one of Kineto's.
        starts: whether an arrow leaves here.
    """

    meaning: Meaning
    activity_type: ActivityType
    category: str
    flow_type: int = 0
    starts: bool = False


_BY_LABEL = {kind.label: kind for kind in ActivityType}
_OLD = {
    "Operator": ActivityType.CPU_OP,
    "Runtime": ActivityType.CUDA_RUNTIME,
    "Kernel": ActivityType.CONCURRENT_KERNEL,
    "concurrent_kernel": ActivityType.CONCURRENT_KERNEL,
    "Memcpy": ActivityType.GPU_MEMCPY,
    "Memset": ActivityType.GPU_MEMSET,
}
"""Categories of Kineto's first versions."""

_MEANINGS = {"X": Meaning.SLICE, "C": Meaning.COUNTER, "M": Meaning.METADATA}
_MEANINGS |= dict.fromkeys("iIR", Meaning.INSTANT) | dict.fromkeys("stf", Meaning.FLOW)
_MEANINGS |= dict.fromkeys("BEben", Meaning.HALF)

_FLOW_TYPES = {
    "fwdbwd": kLinkFwdBwd,
    "forward_backward": kLinkFwdBwd,
    "ac2g": kLinkAsyncCpuGpu,
    "async_cpu_to_gpu": kLinkAsyncCpuGpu,
}
"""Types of arrows by their category."""


class Kinds(dict[tuple[str | None, str | None], int]):
    """Numbers of kinds, by phase and category; a new pair gets the next number.

    Attributes:
        table: the kinds by number.
    """

    def __init__(self) -> None:
        super().__init__()
        self.table: list[Kind] = []

    def __missing__(self, key: tuple[str | None, str | None]) -> int:
        self.table.append(_kind(key[0] or "", key[1] or ""))
        self[key] = number = len(self.table) - 1
        return number


def _kind(phase: str, category: str) -> Kind:
    meaning = _MEANINGS.get(phase, Meaning.UNKNOWN)
    if meaning is Meaning.SLICE and category == "Trace":
        meaning = Meaning.SPAN
    if meaning is Meaning.FLOW:
        return Kind(meaning, ActivityType.CPU_OP, category, _FLOW_TYPES.get(category, 0), phase == "s")
    known = _BY_LABEL.get(category)
    if known is not None:
        return Kind(meaning, known, "")
    if meaning is Meaning.INSTANT:
        return Kind(meaning, ActivityType.CPU_INSTANT_EVENT, category)
    if meaning is Meaning.COUNTER:
        return Kind(meaning, ActivityType.HARDWARE_COUNTERS, category)
    return Kind(meaning, _OLD.get(category, ActivityType.USER_ANNOTATION), category)


def _table(*kinds: ActivityType) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    table = np.zeros(256, dtype=np.bool_)
    table[[int(kind) for kind in kinds]] = True
    return table


def _of(*roles: Role) -> list[ActivityType]:
    return [kind for kind in ActivityType if kind.role in roles]


HAS_OWN_ID = _table(*_of(Role.OP, Role.ANNOTATION))
"""(256,) bool by number of type: whose "External id" is their own; that of others is the id of their op."""
HAS_LAUNCH = _table(*_of(Role.LAUNCH, Role.KERNEL, Role.COPY, Role.SET, Role.SYNC))
"""(256,) bool: whose "correlation" is a launch number."""
HAS_NO_OP = _table(ActivityType.PYTHON_FUNCTION)
"""(256,) bool: who belong to no op."""
ON_DEVICE = _table(*_of(Role.KERNEL, Role.COPY, Role.SET, Role.SYNC), ActivityType.GPU_USER_ANNOTATION)
"""(256,) bool: who stand on a device, whatever else has the same process number."""
ON_HOST = _table(
    *_of(Role.OP, Role.LAUNCH, Role.OVERHEAD),
    ActivityType.USER_ANNOTATION,
    ActivityType.CPU_INSTANT_EVENT,
    ActivityType.PYTHON_FUNCTION,
)
"""(256,) bool: who stand on a host."""
