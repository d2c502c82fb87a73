"""What a torch profile asks for, read from the profile object and the activity set.

Source: torch/autograd/profiler.py (attributes of `profile`) and the activity sets of torch/csrc/profiler/kineto_shim.cpp.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from torch._C._profiler import ProfilerState
from torch.autograd import profiler as autograd_profiler
from torch.profiler import ProfilerActivity

from devprof.model import ActivityType

__all__ = ["Request", "calling_profile", "requested_types", "split_device", "wants_device"]

_LEGACY = ProfilerState.KINETO_PRIVATEUSE1_FALLBACK

_DEVICE_TYPES = frozenset(
    {
        ActivityType.GPU_USER_ANNOTATION,
        ActivityType.GPU_MEMCPY,
        ActivityType.GPU_MEMSET,
        ActivityType.CONCURRENT_KERNEL,
        ActivityType.PRIVATEUSE1_RUNTIME,
        ActivityType.PRIVATEUSE1_DRIVER,
    }
)
# what a plugin may add without torch naming it: torch has no filter for these under PrivateUse1
_ALONGSIDE = frozenset({ActivityType.OVERHEAD, ActivityType.MTIA_COUNTERS})


def calling_profile(depth: int = 2) -> Any | None:
    """Return the `torch.autograd.profiler.profile` whose method called torch's entry point, or None.

    The three entry points take no profile object; which profile calls decides who may stop what. torch calls them only from
    methods of that class (and of emit_nvtx and emit_itt, which are none of ours).
    """
    caller = sys._getframe(depth).f_locals.get("self")
    return caller if isinstance(caller, autograd_profiler.profile) else None


def requested_types(
    activities: Iterable[ProfilerActivity],
    filters: Mapping[ProfilerActivity, Iterable[str]] | None = None,
    *,
    sync_events: bool = False,
) -> frozenset[ActivityType]:
    """Return the kinds of activity that a set of torch activities asks a PrivateUse1 plugin for.

    Args:
        activities: as torch's entry points get them.
        filters: upper-case names of kinds per activity, where the user gave a filter; an empty one means none.
        sync_events: also the waits of a device; torch counts their time as device time, so they are off by default, as for
            CUDA. torch knows no filter name for them under PrivateUse1.
    """
    if ProfilerActivity.PrivateUse1 not in set(activities):
        return frozenset()
    names = (filters or {}).get(ProfilerActivity.PrivateUse1)
    if names is None:
        return _DEVICE_TYPES | _ALONGSIDE | ({ActivityType.CUDA_SYNC} if sync_events else frozenset())
    return frozenset(ActivityType[name] for name in names if name in ActivityType.__members__)


def wants_device(profile: Any, activities: Iterable[ProfilerActivity]) -> bool:
    """Say whether a profile asks for a PrivateUse1 device at all; asked at every profile, so it is quick."""
    return ProfilerActivity.PrivateUse1 in activities or profile.profiler_kind == _LEGACY


def split_device(activities: Iterable[ProfilerActivity]) -> tuple[bool, set[ProfilerActivity]]:
    """Say whether PrivateUse1 is among the activities, and return the others."""
    kinds = set(activities)
    return ProfilerActivity.PrivateUse1 in kinds, kinds - {ProfilerActivity.PrivateUse1}


@dataclass(frozen=True, slots=True)
class Request:
    """Facts about a profile that devprof's sessions need.

    Attributes:
        types: kinds asked of plugins; empty where PrivateUse1 was not asked for.
        legacy: True for the state KINETO_PRIVATEUSE1_FALLBACK, where torch asks `ProfilerStubs` for device time.
        host_ops: True where torch records ops.
        with_stack, record_shapes, profile_memory, with_flops, with_modules: as given to the profile.
        custom: the custom profiler config, or empty.
        trace_id: id of the trace, which torch makes just before it prepares.
    """

    types: frozenset[ActivityType]
    legacy: bool
    host_ops: bool
    with_stack: bool
    record_shapes: bool
    profile_memory: bool
    with_flops: bool
    with_modules: bool
    custom: str
    trace_id: str

    @classmethod
    def of(cls, profile: Any, activities: Iterable[ProfilerActivity], filters: Any = None) -> Request:
        """Read a profile's request."""
        kinds = set(activities)
        return cls(
            types=requested_types(kinds, filters, sync_events=os.environ.get("DEVPROF_SYNC_EVENTS") == "1"),
            legacy=profile.profiler_kind == _LEGACY,
            host_ops=ProfilerActivity.CPU in kinds,
            with_stack=bool(profile.with_stack),
            record_shapes=bool(profile.record_shapes),
            profile_memory=bool(profile.profile_memory),
            with_flops=bool(profile.with_flops),
            with_modules=bool(profile.with_modules),
            custom=str(getattr(profile.experimental_config, "custom_profiler_config", "") or ""),
            trace_id=str(profile.trace_id),
        )
