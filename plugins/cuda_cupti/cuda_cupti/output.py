"""From records to devprof's batches, in the categories, names, keys and units of Kineto's CUDA traces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field

from cuda_cupti.decode import Records
from cuda_cupti.devices import DeviceFacts
from devprof.model import ActivityBatch, ActivityType, DeviceInfo, ResourceInfo

__all__ = ["ExternalKinds", "Output", "to_batches"]


@dataclass(frozen=True, slots=True)
class ExternalKinds:
    """Which of CUPTI's kinds of external correlation id carry what (``CUpti_ExternalCorrelationKind``).

    Attributes:
        op: kind of devprof's op ids; CUSTOM2, because Kineto has CUSTOM0 and CUSTOM1.
        user: kind of the ids of user ranges; UNKNOWN, the only other one that nobody has.
    """

    op: int = 5
    user: int = 1


@dataclass(frozen=True, slots=True)
class Output:
    """What a session hands over.

    Attributes:
        batches: the records, on Unix ns as CUPTI stamps them; a batch per kind.
        devices: the devices that they refer to.
        resources: their streams, and rows of host waits.
        properties: facts of the devices, for ``deviceProperties``.
        lost: records that are in no batch though they were wanted, by a reason for `ActivityLogger.handle_dropped`.
        filtered: how many API calls were left out as noise.
    """

    batches: tuple[ActivityBatch, ...] = ()
    devices: tuple[DeviceInfo, ...] = ()
    resources: tuple[ResourceInfo, ...] = ()
    properties: tuple[Mapping[str, object], ...] = ()
    lost: Mapping[str, int] = field(default_factory=dict)
    filtered: int = 0


def to_batches(
    records: Sequence[Records],
    devices: Mapping[int, DeviceFacts],
    types: Set[ActivityType] | None = None,
    external: ExternalKinds | None = None,
) -> Output:
    """Return the records of a session as batches.

    Args:
        records: decoded buffers, all of them: what belongs together may be in different ones.
        devices: facts by device index, beside and before what DEVICE records say.
        types: kinds to hand over; None: all.
        external: the kinds that ids were pushed under.
    """
    raise NotImplementedError
