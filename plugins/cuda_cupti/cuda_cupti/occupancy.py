"""How full a kernel can make a GPU: an estimate from its launch and from the device's limits.

Occupancy is the share of a multiprocessor's threads that can be resident. It is what a block takes (warps, registers, shared
memory) against what a multiprocessor has, and no more than the grid gives.

Source: the rules of NVIDIA's ``cuda_occupancy.h`` (a test compiles that header, where it is installed, and compares), with
Kineto's estimate on top (libkineto/src/DeviceProperties.cpp). Unlike Kineto, a kernel that opted in to more shared memory is
held against the limit that it opted in to, so that it does not come out as 0 %.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cuda_cupti.devices import DeviceFacts
from cuda_cupti.rows import Rows

__all__ = ["achieved_occupancy", "active_blocks_per_sm", "blocks_per_sm"]

Longs = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_UNLIMITED = np.iinfo(np.int32).max
_REGISTERS_AT_ONCE, _MOST_REGISTERS_PER_THREAD = 256, 256
_WARPS_AT_ONCE, _PARTITIONS = 4, 4
_AMPERE = 8
_OPTED_IN = 1  # CUPTI_FUNC_SHMEM_LIMIT_OPTIN
_KIB = 1024


def blocks_per_sm(facts: DeviceFacts, rows: Rows) -> Floats:
    """Return the grid's blocks over the multiprocessors, (n,).

    Args:
        facts: the device, with `DeviceFacts.num_sms`.
        rows: kernel records.
    """
    blocks = rows["gridX"].astype(np.float64) * rows["gridY"] * rows["gridZ"]
    per_sm: Floats = blocks / facts.num_sms
    return per_sm


def achieved_occupancy(facts: DeviceFacts, rows: Rows) -> Floats:
    """Return the estimated occupancy of kernels, 0 to 1, (n,)."""
    threads = _threads(rows)
    resident = np.minimum(active_blocks_per_sm(facts, rows), blocks_per_sm(facts, rows))
    share = resident * threads / facts.max_threads_per_multiprocessor
    return np.clip(share, 0.0, 1.0)


def active_blocks_per_sm(facts: DeviceFacts, rows: Rows) -> Longs:
    """Return how many blocks of each kernel can be resident on a multiprocessor, (n,).

    Args:
        facts: the device; the limits that it does not know do not limit.
        rows: kernel records.
    """
    threads = _threads(rows)
    warps = np.maximum(-(-threads // facts.warp_size), 1)
    active = np.minimum(
        _by_warps(facts, warps), _by_registers(facts, warps, rows["registersPerThread"].astype(np.int64))
    )
    active = np.minimum(active, _by_shared_memory(facts, rows))
    active = np.minimum(active, _most_blocks(facts))
    impossible = (threads <= 0) | (threads > (facts.max_threads_per_block or _UNLIMITED))
    return np.where(impossible, 0, active)


def _threads(rows: Rows) -> Longs:
    threads: Longs = rows["blockX"].astype(np.int64) * rows["blockY"] * rows["blockZ"]
    return threads


def _by_warps(facts: DeviceFacts, warps: Longs) -> Longs:
    return (facts.max_threads_per_multiprocessor or _UNLIMITED) // facts.warp_size // warps


def _by_registers(facts: DeviceFacts, warps: Longs, registers: Longs) -> Longs:
    if not facts.regs_per_multiprocessor:
        return np.full(len(warps), _UNLIMITED, dtype=np.int64)
    per_warp = np.maximum(_rounded(registers * facts.warp_size, _REGISTERS_AT_ONCE), 1)
    in_partition = facts.regs_per_multiprocessor // _PARTITIONS // per_warp
    blocks = in_partition * _PARTITIONS // warps
    of_block = per_warp * _rounded(warps, _WARPS_AT_ONCE)
    too_many = (of_block > (facts.regs_per_block or _UNLIMITED)) | (registers > _MOST_REGISTERS_PER_THREAD)
    return np.where(registers == 0, _UNLIMITED, np.where(too_many, 0, blocks))


def _by_shared_memory(facts: DeviceFacts, rows: Rows) -> Longs:
    if not facts.shared_mem_per_multiprocessor:
        return np.full(len(rows), _UNLIMITED, dtype=np.int64)
    reserved = facts.reserved_shared_mem_per_block or (_KIB if facts.compute_major >= _AMPERE else 0)
    opt_in = facts.shared_mem_per_block_optin or facts.shared_mem_per_multiprocessor - reserved
    limit = np.where(rows["shmemLimitConfig"] == _OPTED_IN, opt_in, facts.shared_mem_per_block or opt_in)
    used = rows["staticSharedMemory"].astype(np.int64) + rows["dynamicSharedMemory"] + reserved
    used = _rounded(used, 128 if facts.compute_major >= _AMPERE else 256)
    blocks = facts.shared_mem_per_multiprocessor // np.maximum(used, 1)
    return np.where(used == 0, _UNLIMITED, np.where(used > limit + reserved, 0, blocks))


def _most_blocks(facts: DeviceFacts) -> int:
    """Return the most resident blocks; by compute capability, as ``cuda_occupancy.h`` has it, where the device does not say."""
    if facts.max_blocks_per_multiprocessor:
        return facts.max_blocks_per_multiprocessor
    return _BLOCKS.get((facts.compute_major, facts.compute_minor), _BLOCKS_OF_MAJOR.get(facts.compute_major, 32))


_BLOCKS = {(7, 5): 16, (8, 0): 32, (8, 9): 24, (10, 1): 24, (11, 0): 24}
_BLOCKS_OF_MAJOR = {8: 16, 12: 24}


def _rounded(value: Longs, step: int) -> Longs:
    return -(-value // step) * step
