"""The shape of CUPTI's activity records: how long each kind is in each release, and where its fields are.

A record begins with its kind, as a uint32, and is as long as the struct of that kind in the library that wrote it; nothing else
says where the next one begins. Releases only append: a field that exists stays where it is. So one table of fields serves every
release, and only the length (the stride) is a matter of the library. What the library itself says of it is believed before the
table here.

Source: the structs of ``cupti_activity.h`` on x86-64, CUDA 12.8 to 13.5; a test compiles that header, where it is installed,
and compares.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from types import MappingProxyType

import numpy as np

__all__ = ["FIELDS", "NEWEST", "RELEASES", "ActivityKind", "Layout", "expected", "release_of"]


class ActivityKind(IntEnum):
    """CUPTI's kinds of record that are read here, with its numbers (``CUpti_ActivityKind``)."""

    MEMCPY = 1
    MEMSET = 2
    KERNEL = 3
    DRIVER = 4
    RUNTIME = 5
    DEVICE = 8
    CONTEXT = 9
    CONCURRENT_KERNEL = 10
    NAME = 11
    MARKER = 12
    MARKER_DATA = 13
    OVERHEAD = 17
    MEMCPY2 = 22
    CUDA_EVENT = 36
    STREAM = 37
    SYNCHRONIZATION = 38
    EXTERNAL_CORRELATION = 39
    INTERNAL_LAUNCH_API = 48
    MEMORY2 = 49
    MEMORY_POOL = 50
    GRAPH_TRACE = 51
    GRAPH_HOST_NODE = 56
    HOST_LAUNCH = 58


def _fields(text: str) -> Mapping[str, tuple[int, str]]:
    """Read ``name@offset:dtype`` items; a dtype without ``<`` is little-endian, as all of CUPTI's platforms are."""
    items = (item.replace(":", "@").split("@") for item in text.split())
    return MappingProxyType({name: (int(offset), f"<{kind}") for name, offset, kind in items})


_KERNEL = _fields(
    "registersPerThread@6:u2 start@16:u8 end@24:u8 deviceId@40:u4 contextId@44:u4 streamId@48:u4 gridX@52:i4 gridY@56:i4"
    " gridZ@60:i4 blockX@64:i4 blockY@68:i4 blockZ@72:i4 staticSharedMemory@76:i4 dynamicSharedMemory@80:i4"
    " correlationId@92:u4 name@104:u8 queued@120:u8 graphNodeId@144:u8 shmemLimitConfig@152:u4 graphId@156:u4"
    " channelID@168:u4 channelType@172:u4 priority@216:i4"
)
_API = _fields("cbid@4:u4 start@8:u8 end@16:u8 processId@24:u4 threadId@28:u4 correlationId@32:u4 returnValue@36:u4")

FIELDS: Mapping[int, Mapping[str, tuple[int, str]]] = MappingProxyType(
    {
        ActivityKind.MEMCPY: _fields(
            "copyKind@4:u1 srcKind@5:u1 dstKind@6:u1 flags@7:u1 bytes@8:u8 start@16:u8 end@24:u8 deviceId@32:u4"
            " contextId@36:u4 streamId@40:u4 correlationId@44:u4 runtimeCorrelationId@48:u4 graphNodeId@64:u8 graphId@72:u4"
            " channelID@76:u4 channelType@80:u4 copyCount@88:u8 sourceGraphId@96:u4 sourceGraphNodeId@104:u8"
        ),
        ActivityKind.MEMSET: _fields(
            "value@4:u4 bytes@8:u8 start@16:u8 end@24:u8 deviceId@32:u4 contextId@36:u4 streamId@40:u4 correlationId@44:u4"
            " flags@48:u2 memoryKind@50:u2 graphNodeId@64:u8 graphId@72:u4 channelID@76:u4 channelType@80:u4"
            " sourceGraphId@88:u4 sourceGraphNodeId@96:u8"
        ),
        ActivityKind.KERNEL: _KERNEL,
        ActivityKind.CONCURRENT_KERNEL: _KERNEL,
        ActivityKind.DRIVER: _API,
        ActivityKind.RUNTIME: _API,
        ActivityKind.INTERNAL_LAUNCH_API: _API,
        ActivityKind.DEVICE: _fields(
            "flags@4:u4 globalMemoryBandwidth@8:u8 globalMemorySize@16:u8 constantMemorySize@24:u4 l2CacheSize@28:u4"
            " numThreadsPerWarp@32:u4 coreClockRate@36:u4 numMemcpyEngines@40:u4 numMultiprocessors@44:u4"
            " maxWarpsPerMultiprocessor@52:u4 maxBlocksPerMultiprocessor@56:u4 maxSharedMemoryPerMultiprocessor@60:u4"
            " maxRegistersPerMultiprocessor@64:u4 maxRegistersPerBlock@68:u4 maxSharedMemoryPerBlock@72:u4"
            " maxThreadsPerBlock@76:u4 computeCapabilityMajor@104:u4 computeCapabilityMinor@108:u4 id@112:u4"
            " eccEnabled@116:u4 uuid@120:V16 name@136:u8 isMigEnabled@145:u1 gpuInstanceId@152:u4 computeInstanceId@156:u4"
        ),
        ActivityKind.CONTEXT: _fields("contextId@4:u4 deviceId@8:u4 computeApiKind@12:u2 nullStreamId@14:u2"),
        ActivityKind.NAME: _fields("objectKind@4:u4 objectId@8:V12 name@24:u8"),
        ActivityKind.MARKER: _fields(
            "flags@4:u4 timestamp@8:u8 id@16:u4 objectKind@20:u4 objectId@24:V12 name@40:u8 domain@48:u8"
        ),
        ActivityKind.MARKER_DATA: _fields(
            "flags@4:u4 id@8:u4 payloadKind@12:u4 payload@16:u8 color@24:u4 category@28:u4"
        ),
        ActivityKind.OVERHEAD: _fields(
            "overheadKind@4:u4 objectKind@8:u4 objectId@12:V12 start@24:u8 end@32:u8 correlationId@40:u4 overheadData@48:u8"
        ),
        ActivityKind.MEMCPY2: _fields(
            "copyKind@4:u1 srcKind@5:u1 dstKind@6:u1 flags@7:u1 bytes@8:u8 start@16:u8 end@24:u8 deviceId@32:u4"
            " contextId@36:u4 streamId@40:u4 srcDeviceId@44:u4 srcContextId@48:u4 dstDeviceId@52:u4 dstContextId@56:u4"
            " correlationId@60:u4 graphNodeId@72:u8 graphId@80:u4 channelID@84:u4 channelType@88:u4"
        ),
        ActivityKind.CUDA_EVENT: _fields(
            "correlationId@4:u4 contextId@8:u4 streamId@12:u4 eventId@16:u4 deviceId@24:u4 deviceTimestamp@40:u8"
            " cudaEventSyncId@48:u8 graphNodeId@56:u8 graphId@64:u4 sourceGraphId@68:u4 sourceGraphNodeId@72:u8"
        ),
        ActivityKind.STREAM: _fields("contextId@4:u4 streamId@8:u4 priority@12:u4 flag@16:u4 correlationId@20:u4"),
        ActivityKind.SYNCHRONIZATION: _fields(
            "type@4:u4 start@8:u8 end@16:u8 correlationId@24:u4 contextId@28:u4 streamId@32:u4 cudaEventId@36:u4"
            " cudaEventSyncId@40:u8 returnValue@48:u4"
        ),
        ActivityKind.EXTERNAL_CORRELATION: _fields("externalKind@4:u4 externalId@8:u8 correlationId@16:u4"),
        ActivityKind.MEMORY2: _fields(
            "memoryOperationType@4:u4 memoryKind@8:u4 correlationId@12:u4 address@16:u8 bytes@24:u8 timestamp@32:u8 PC@40:u8"
            " processId@48:u4 deviceId@52:u4 contextId@56:u4 streamId@60:u4 name@64:u8 isAsync@72:u4"
            " memoryPoolConfig@80:V40"
        ),
        ActivityKind.MEMORY_POOL: _fields(
            "memoryPoolOperationType@4:u4 memoryPoolType@8:u4 correlationId@12:u4 processId@16:u4 deviceId@20:u4"
            " minBytesToKeep@24:u8 address@32:u8 size@40:u8 releaseThreshold@48:u8 timestamp@56:u8 utilizedSize@64:u8"
        ),
        ActivityKind.GRAPH_TRACE: _fields(
            "correlationId@4:u4 start@8:u8 end@16:u8 deviceId@24:u4 graphId@28:u4 contextId@32:u4 streamId@36:u4"
            " endDeviceId@48:u4 endContextId@52:u4"
        ),
        ActivityKind.GRAPH_HOST_NODE: _fields(
            "streamId@4:u4 contextId@8:u4 deviceId@12:u4 correlationId@16:u4 graphId@20:u4 graphNodeId@24:u8 processId@32:u4"
            " threadId@36:u4 start@40:u8 end@48:u8"
        ),
        ActivityKind.HOST_LAUNCH: _fields(
            "streamId@4:u4 contextId@8:u4 deviceId@12:u4 correlationId@16:u4 processId@20:u4 threadId@24:u4 start@32:u8"
            " end@40:u8"
        ),
    }
)
"""Fields of each kind that devprof reads: CUPTI's name, to its offset in bytes and its dtype. Pointers are u8."""

_K = ActivityKind
_KERNELS, _CALLS = (_K.KERNEL, _K.CONCURRENT_KERNEL), (_K.DRIVER, _K.RUNTIME, _K.INTERNAL_LAUNCH_API)
_CUDA_12_8: dict[int, int] = {
    **dict.fromkeys(_KERNELS, 208),
    **dict.fromkeys(_CALLS, 40),
    _K.MEMCPY: 96,
    _K.MEMCPY2: 96,
    _K.MEMSET: 88,
    _K.EXTERNAL_CORRELATION: 24,
    _K.OVERHEAD: 56,
    _K.SYNCHRONIZATION: 56,
    _K.CUDA_EVENT: 56,
    _K.MEMORY2: 128,
    _K.MEMORY_POOL: 72,
    _K.GRAPH_TRACE: 56,
    _K.CONTEXT: 32,
    _K.DEVICE: 184,
    _K.STREAM: 24,
    _K.NAME: 32,
    _K.MARKER: 56,
    _K.MARKER_DATA: 32,
}
_CUDA_13_0: dict[int, int] = {**_CUDA_12_8, **dict.fromkeys(_KERNELS, 216), _K.MEMORY_POOL: 80, _K.MARKER_DATA: 40}
_CUDA_13_1: dict[int, int] = {
    **_CUDA_13_0,
    **dict.fromkeys(_KERNELS, 224),
    _K.CONTEXT: 40,
    _K.GRAPH_HOST_NODE: 56,
    _K.HOST_LAUNCH: 48,
}
_CUDA_13_2: dict[int, int] = {**_CUDA_13_1, _K.DEVICE: 192}
_CUDA_13_3: dict[int, int] = {**_CUDA_13_2, **dict.fromkeys(_KERNELS, 232)}
_CUDA_13_4: dict[int, int] = {**_CUDA_13_3, **dict.fromkeys(_KERNELS, 248), _K.MEMCPY: 112, _K.MEMSET: 104}
_CUDA_13_5: dict[int, int] = {**_CUDA_13_4, _K.CUDA_EVENT: 80}

RELEASES: Mapping[str, Mapping[int, int]] = MappingProxyType(
    {
        "12.8": _CUDA_12_8,
        "12.9": _CUDA_12_8,
        "13.0": _CUDA_13_0,
        "13.1": _CUDA_13_1,
        "13.2": _CUDA_13_2,
        "13.3": _CUDA_13_3,
        "13.4": _CUDA_13_4,
        "13.5": _CUDA_13_5,
    }
)
"""Length in bytes of each kind's record, by CUDA release."""

NEWEST = "13.5"
_OLDEST_VERSION = 26  # CUDA 12.8
_LONGEST = 1 << 16
_KINDS = 1 << 12


def release_of(version: int) -> str:
    """Return the CUDA release, ``"13.0"``, of what ``cuptiGetVersion`` says, ``130001``.

    Raises:
        ValueError: the version is older than CUDA 12.8.
    """
    if version < _OLDEST_VERSION:
        raise ValueError(
            f"CUPTI API version {version} is older than CUDA 12.8 (version {_OLDEST_VERSION}), the oldest whose records devprof"
            " reads; install the libcupti of CUDA 12.8 or newer"
        )
    if version < 100_000:  # a plain count until CUDA 12
        return "12.8" if version == _OLDEST_VERSION else "12.9"
    return f"{version // 10_000}.{version // 100 % 100}"


@dataclass(frozen=True, slots=True)
class Layout:
    """How long the records of one library are.

    Attributes:
        version: what ``cuptiGetVersion`` says.
        strides: length in bytes of each kind's record; a kind that is not in it ends a buffer.

    Raises:
        ValueError: a stride is no length that a record can have.
    """

    version: int
    strides: Mapping[int, int]

    def __post_init__(self) -> None:
        strides = {int(kind): int(stride) for kind, stride in self.strides.items() if stride}
        for kind, stride in strides.items():
            least = _CUDA_12_8.get(kind, 8)
            if not 0 < kind < _KINDS or stride % 8 or not least <= stride <= _LONGEST:
                raise ValueError(
                    f"records of CUPTI's kind {kind} are said to be {stride} bytes long; expected a multiple of 8 of at least"
                    f" {least}. The library is not the libcupti that it seems to be: check its path with `devprof doctor`"
                )
        object.__setattr__(self, "strides", MappingProxyType(strides))

    def dtype(self, kind: int) -> np.dtype[np.void]:
        """Return the dtype of one kind's records: ``kind``, and the known fields that the stride has room for.

        Raises:
            KeyError: the library has no such kind.
        """
        return _dtype(int(kind), self.strides[kind])

    def differences(self, other: Layout) -> tuple[str, ...]:
        """Say where this layout is not as another, a phrase each, for a warning; more kinds than there do not matter."""
        return tuple(
            f"{_name(kind)}: {self.strides[kind]} bytes, expected {wanted}"
            if kind in self.strides
            else f"{_name(kind)}: unknown to the library, expected {wanted} bytes; buffers end at the first of these"
            for kind, wanted in sorted(other.strides.items())
            if self.strides.get(kind) != wanted
        )


def expected(version: int) -> Layout:
    """Return the layout that the published headers give a library; the newest known one for a newer library.

    Args:
        version: what ``cuptiGetVersion`` says.

    Raises:
        ValueError: the version is older than CUDA 12.8.
    """
    return Layout(version, RELEASES.get(release_of(version), RELEASES[NEWEST]))


@cache
def _dtype(kind: int, stride: int) -> np.dtype[np.void]:
    fields = {"kind": (0, "<u4"), **FIELDS.get(kind, {})}
    kept = {name: place for name, place in fields.items() if place[0] + np.dtype(place[1]).itemsize <= stride}
    return np.dtype(
        {
            "names": list(kept),
            "formats": [kind_of for _, kind_of in kept.values()],
            "offsets": [offset for offset, _ in kept.values()],
            "itemsize": stride,
        }
    )


def _name(kind: int) -> str:
    return ActivityKind(kind).name if kind in FIELDS else f"kind {kind}"
