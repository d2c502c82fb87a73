"""Which of CUPTI's kinds a session needs for what it was asked for, and which API calls are noise.

Source: libkineto/src/CuptiActivityProfiler.cpp and CuptiActivityApi.cpp for the calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from cuda_cupti.layouts import ActivityKind
from devprof.model import ActivityType

__all__ = ["AVAILABLE", "DEVICE_KINDS", "NOISY_DRIVER_CALLS", "NOISY_RUNTIME_CALLS", "kinds_for", "wanted_types"]

_A, _K = ActivityType, ActivityKind

_CALLS = (_K.RUNTIME, _K.DRIVER, _K.EXTERNAL_CORRELATION)

_KINDS: Mapping[ActivityType, tuple[ActivityKind, ...]] = {
    # device work belongs to an op through the record of its API call, which an external id precedes
    _A.CONCURRENT_KERNEL: (_K.CONCURRENT_KERNEL, *_CALLS),
    _A.GPU_MEMCPY: (_K.MEMCPY, _K.MEMCPY2, *_CALLS),
    _A.GPU_MEMSET: (_K.MEMSET, *_CALLS),
    _A.CUDA_RUNTIME: (_K.RUNTIME, _K.EXTERNAL_CORRELATION),
    _A.CUDA_DRIVER: (_K.DRIVER, _K.EXTERNAL_CORRELATION),
    # CUDA_EVENT records come only while SYNCHRONIZATION is on, and waits for events name the event's record
    _A.CUDA_SYNC: (_K.SYNCHRONIZATION, _K.CUDA_EVENT, *_CALLS),
    _A.CUDA_EVENT: (_K.CUDA_EVENT, _K.SYNCHRONIZATION, *_CALLS),
    _A.OVERHEAD: (_K.OVERHEAD,),
}

AVAILABLE = frozenset(_KINDS)
"""What the plugin can record."""

DEVICE_KINDS = (_K.CONCURRENT_KERNEL, _K.MEMCPY, _K.MEMCPY2, _K.MEMSET, _K.CUDA_EVENT, _K.GRAPH_TRACE)
"""Kinds whose records are complete only when the device has done the work."""

_ALL_BUT_WAITS = AVAILABLE - {_A.CUDA_SYNC}

NOISY_RUNTIME_CALLS = (17, 16, 10, 133, 134, 136)
"""cudaGetDevice, cudaSetDevice, cudaGetLastError, cudaEventCreate, cudaEventCreateWithFlags, cudaEventDestroy."""

NOISY_DRIVER_CALLS = (686, 392, 304)
"""cuKernelGetAttribute, cuDevicePrimaryCtxGetState, cuCtxGetCurrent."""


def wanted_types(asked: Set[ActivityType]) -> frozenset[ActivityType]:
    """Return the types of records to hand over.

    Records of CUDA events come with waits. A host that asks for all but waits means neither, as torch does.
    """
    wanted = frozenset(asked) & AVAILABLE
    return wanted - {_A.CUDA_EVENT} if wanted == _ALL_BUT_WAITS else wanted


def kinds_for(
    types: Set[ActivityType], *, whole_graphs: bool = False, memory: bool = False
) -> tuple[ActivityKind, ...]:
    """Return CUPTI's kinds that records of these types are made of, in the order to switch them on.

    Args:
        types: what is to be handed over.
        whole_graphs: record a launched graph as one, which costs less; its kernels are not seen then, nor in later captures.
        memory: record allocations and releases too, with their calls.
    """
    kinds = {kind for one in types for kind in _KINDS.get(one, ())}
    if whole_graphs and _K.CONCURRENT_KERNEL in kinds:
        kinds.add(_K.GRAPH_TRACE)
    if memory:
        kinds |= {_K.MEMORY2, *_CALLS}
    return tuple(sorted(kinds))
