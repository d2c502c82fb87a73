"""CUPTI's records as C structs, member by member as the published headers list them, for each release.

A second description, made apart from `cuda_cupti.layouts`: there are offsets, here the C compiler's rules make them, so that a
slip in one does not pass with the other. Pads that a header spells out are spelt out.
"""

from __future__ import annotations

import ctypes as c
from collections.abc import Mapping
from functools import cache
from typing import Any

__all__ = ["KINDS", "VERSIONS", "pack", "struct_of"]

VERSIONS: Mapping[str, int] = {
    "12.8": 26,
    "12.9": 28,
    "13.0": 130001,
    "13.1": 130101,
    "13.2": 130201,
    "13.3": 130301,
    "13.4": 130401,
    "13.5": 130500,
}
"""What ``cuptiGetVersion`` says, by release."""

_TYPES = {
    "u1": c.c_uint8,
    "u2": c.c_uint16,
    "u4": c.c_uint32,
    "u8": c.c_uint64,
    "i4": c.c_int32,
    "i8": c.c_int64,
    "p": c.c_uint64,
    "b7": c.c_uint8 * 7,
    "b6": c.c_uint8 * 6,
    "b12": c.c_uint32 * 3,
    "b16": c.c_uint8 * 16,
    "b40": c.c_uint64 * 5,
}

_KERNEL = """
    u1 cacheConfig, u1 sharedMemoryConfig, u2 registersPerThread, u4 partitionedGlobalCacheRequested,
    u4 partitionedGlobalCacheExecuted, u8 start, u8 end, u8 completed, u4 deviceId, u4 contextId, u4 streamId, i4 gridX,
    i4 gridY,
    i4 gridZ, i4 blockX, i4 blockY, i4 blockZ, i4 staticSharedMemory, i4 dynamicSharedMemory, u4 localMemoryPerThread,
    u4 localMemoryTotal, u4 correlationId, i8 gridId, p name, p reserved0, u8 queued, u8 submitted, u1 launchType,
    u1 isSharedMemoryCarveoutRequested, u1 sharedMemoryCarveoutRequested, u1 padding, u4 sharedMemoryExecuted, u8 graphNodeId,
    u4 shmemLimitConfig, u4 graphId, p pAccessPolicyWindow, u4 channelID, u4 channelType, u4 clusterX, u4 clusterY, u4 clusterZ,
    u4 clusterSchedulingPolicy, u8 localMemoryTotal_v2, u4 maxPotentialClusterSize, u4 maxActiveClusters
    | 13.0: u1 isDeviceLaunched, b7 padding3 | 13.1: i4 priority, u4 padding4 | 13.3: u4 executionModel, u4 padding5
    | 13.4: u4 sourceGraphId, u4 padding6, u8 sourceGraphNodeId
"""
_API = "u4 cbid, u8 start, u8 end, u4 processId, u4 threadId, u4 correlationId, u4 returnValue"

KINDS: Mapping[int, str] = {
    1: """u1 copyKind, u1 srcKind, u1 dstKind, u1 flags, u8 bytes, u8 start, u8 end, u4 deviceId, u4 contextId, u4 streamId,
        u4 correlationId, u4 runtimeCorrelationId, u4 pad, p reserved0, u8 graphNodeId, u4 graphId, u4 channelID,
        u4 channelType,
        u4 pad2, u8 copyCount | 13.4: u4 sourceGraphId, u4 pad4, u8 sourceGraphNodeId""",
    2: """u4 value, u8 bytes, u8 start, u8 end, u4 deviceId, u4 contextId, u4 streamId, u4 correlationId, u2 flags,
        u2 memoryKind,
        u4 pad, p reserved0, u8 graphNodeId, u4 graphId, u4 channelID, u4 channelType, u4 pad2
        | 13.4: u4 sourceGraphId, u4 pad3, u8 sourceGraphNodeId""",
    3: _KERNEL,
    4: _API,
    5: _API,
    8: """u4 flags, u8 globalMemoryBandwidth, u8 globalMemorySize, u4 constantMemorySize, u4 l2CacheSize, u4 numThreadsPerWarp,
        u4 coreClockRate, u4 numMemcpyEngines, u4 numMultiprocessors, u4 maxIPC, u4 maxWarpsPerMultiprocessor,
        u4 maxBlocksPerMultiprocessor, u4 maxSharedMemoryPerMultiprocessor, u4 maxRegistersPerMultiprocessor,
        u4 maxRegistersPerBlock, u4 maxSharedMemoryPerBlock, u4 maxThreadsPerBlock, u4 maxBlockDimX, u4 maxBlockDimY,
        u4 maxBlockDimZ, u4 maxGridDimX, u4 maxGridDimY, u4 maxGridDimZ, u4 computeCapabilityMajor, u4 computeCapabilityMinor,
        u4 id, u4 eccEnabled, b16 uuid, p name, u1 isCudaVisible, u1 isMigEnabled, b6 reserved, u4 gpuInstanceId,
        u4 computeInstanceId, b16 migUuid, u4 isNumaNode, u4 numaId | 13.2: u4 numTpcs, u4 reserved0""",
    9: """u4 contextId, u4 deviceId, u2 computeApiKind, u2 nullStreamId, u4 parentContextId, u1 isGreenContext, u1 padding,
        u2 numMultiprocessors, u4 cigMode, u4 padding2 | 13.1: u4 processId, u4 padding3""",
    10: _KERNEL,
    11: "u4 objectKind, b12 objectId, u4 pad, p name",
    12: "u4 flags, u8 timestamp, u4 id, u4 objectKind, b12 objectId, u4 pad, p name, p domain",
    13: "u4 flags, u4 id, u4 payloadKind, u8 payload, u4 color, u4 category | 13.0: u4 cuptiDomainId, u4 padding",
    17: """u4 overheadKind, u4 objectKind, b12 objectId, u8 start, u8 end, u4 correlationId, u4 reserved0, p overheadData""",
    22: """u1 copyKind, u1 srcKind, u1 dstKind, u1 flags, u8 bytes, u8 start, u8 end, u4 deviceId, u4 contextId, u4 streamId,
        u4 srcDeviceId, u4 srcContextId, u4 dstDeviceId, u4 dstContextId, u4 correlationId, p reserved0, u8 graphNodeId,
        u4 graphId, u4 channelID, u4 channelType, u4 pad""",
    36: """u4 correlationId, u4 contextId, u4 streamId, u4 eventId, u4 pad, u4 deviceId, u4 pad2, p reserved0,
        u8 deviceTimestamp,
        u8 cudaEventSyncId | 13.5: u8 graphNodeId, u4 graphId, u4 sourceGraphId, u8 sourceGraphNodeId""",
    37: "u4 contextId, u4 streamId, u4 priority, u4 flag, u4 correlationId",
    38: """u4 type, u8 start, u8 end, u4 correlationId, u4 contextId, u4 streamId, u4 cudaEventId, u8 cudaEventSyncId,
        u4 returnValue, u4 pad""",
    39: "u4 externalKind, u8 externalId, u4 correlationId, u4 reserved",
    48: _API,
    49: """u4 memoryOperationType, u4 memoryKind, u4 correlationId, u8 address, u8 bytes, u8 timestamp, u8 PC, u4 processId,
        u4 deviceId, u4 contextId, u4 streamId, p name, u4 isAsync, u4 pad, b40 memoryPoolConfig, p source""",
    50: """u4 memoryPoolOperationType, u4 memoryPoolType, u4 correlationId, u4 processId, u4 deviceId, u8 minBytesToKeep,
        u8 address,
        u8 size, u8 releaseThreshold, u8 timestamp, u8 utilizedSize | 13.0: u4 isManagedPool, u4 pad""",
    51: """u4 correlationId, u8 start, u8 end, u4 deviceId, u4 graphId, u4 contextId, u4 streamId, p reserved, u4 endDeviceId,
        u4 endContextId""",
    56: """13.1: u4 streamId, u4 contextId, u4 deviceId, u4 correlationId, u4 graphId, u8 graphNodeId, u4 processId,
        u4 threadId,
        u8 start, u8 end""",
    58: "13.1: u4 streamId, u4 contextId, u4 deviceId, u4 correlationId, u4 processId, u4 threadId, u8 start, u8 end",
}
"""Members behind the leading ``kind``; behind a bar, those that a release added."""


@cache
def struct_of(kind: int, release: str) -> type[c.Structure] | None:
    """Return the struct of a kind in a release, None where the release has no such kind."""
    members: list[tuple[str, Any]] = [("kind", c.c_uint32)]
    for part in KINDS[kind].split("|"):
        since, _, names = part.rpartition(":")
        if since and _order(since.strip()) > _order(release):
            break
        members += [(name, _TYPES[kind_of]) for kind_of, name in (item.split() for item in names.split(","))]
    if len(members) == 1:
        return None
    return type(f"Kind{kind}", (c.Structure,), {"_fields_": members})


def pack(kind: int, release: str, **values: object) -> bytes:
    """Return one record's bytes; members not given are 0."""
    struct = struct_of(kind, release)
    assert struct is not None, (kind, release)
    return bytes(struct(kind=kind, **values))


def _order(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))
