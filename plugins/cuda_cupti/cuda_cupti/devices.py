"""What is known of a GPU: for its row's name, for the trace's ``deviceProperties``, and for the occupancy of kernels."""

from __future__ import annotations

from dataclasses import dataclass

from cuda_cupti.decode import Records
from cuda_cupti.layouts import ActivityKind

__all__ = ["DeviceFacts", "devices_of"]


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """Facts of one GPU; 0 where unknown.

    The names are those of Kineto's ``deviceProperties`` where it has one (libkineto/src/DeviceProperties.cpp).

    Attributes:
        id: index of the device, as records carry it.
        name: the product's name.
        uuid: ``GPU-...``, empty where unknown.
        total_global_mem: bytes.
        compute_major, compute_minor: compute capability.
        max_threads_per_block, max_threads_per_multiprocessor, warp_size: threads.
        max_blocks_per_multiprocessor: blocks; 0: by the compute capability.
        regs_per_block, regs_per_multiprocessor: registers.
        shared_mem_per_block, shared_mem_per_block_optin, shared_mem_per_multiprocessor, reserved_shared_mem_per_block: bytes.
        num_sms: multiprocessors.
    """

    id: int
    name: str = ""
    uuid: str = ""
    total_global_mem: int = 0
    compute_major: int = 0
    compute_minor: int = 0
    max_threads_per_block: int = 0
    max_threads_per_multiprocessor: int = 0
    max_blocks_per_multiprocessor: int = 0
    regs_per_block: int = 0
    regs_per_multiprocessor: int = 0
    warp_size: int = 32
    shared_mem_per_block: int = 0
    shared_mem_per_block_optin: int = 0
    shared_mem_per_multiprocessor: int = 0
    reserved_shared_mem_per_block: int = 0
    num_sms: int = 0

    def properties(self) -> dict[str, int | str]:
        """Return the item of the trace's ``deviceProperties``, with Kineto's keys."""
        return {
            "id": self.id,
            "name": self.name,
            "totalGlobalMem": self.total_global_mem,
            "computeMajor": self.compute_major,
            "computeMinor": self.compute_minor,
            "maxThreadsPerBlock": self.max_threads_per_block,
            "maxThreadsPerMultiprocessor": self.max_threads_per_multiprocessor,
            "regsPerBlock": self.regs_per_block,
            "warpSize": self.warp_size,
            "sharedMemPerBlock": self.shared_mem_per_block,
            "numSms": self.num_sms,
            "regsPerMultiprocessor": self.regs_per_multiprocessor,
            "sharedMemPerBlockOptin": self.shared_mem_per_block_optin,
            "sharedMemPerMultiprocessor": self.shared_mem_per_multiprocessor,
        }


def devices_of(records: Records) -> dict[int, DeviceFacts]:
    """Return what DEVICE records say, by device: nothing of shared memory that is reserved, or that a kernel may opt in to."""
    rows = records.of.get(ActivityKind.DEVICE)
    if rows is None:
        return {}
    found = {}
    for at, text in enumerate(records.text[ActivityKind.DEVICE].tolist()):
        row = {name: rows[name][at] for name in rows.fields}
        facts = DeviceFacts(
            id=int(row["id"]),
            name=records.texts[text],
            uuid=_uuid(row["uuid"].tobytes()),
            total_global_mem=int(row["globalMemorySize"]),
            compute_major=int(row["computeCapabilityMajor"]),
            compute_minor=int(row["computeCapabilityMinor"]),
            max_threads_per_block=int(row["maxThreadsPerBlock"]),
            max_threads_per_multiprocessor=int(row["maxWarpsPerMultiprocessor"]) * int(row["numThreadsPerWarp"]),
            max_blocks_per_multiprocessor=int(row["maxBlocksPerMultiprocessor"]),
            regs_per_block=int(row["maxRegistersPerBlock"]),
            regs_per_multiprocessor=int(row["maxRegistersPerMultiprocessor"]),
            warp_size=int(row["numThreadsPerWarp"]),
            shared_mem_per_block=int(row["maxSharedMemoryPerBlock"]),
            shared_mem_per_multiprocessor=int(row["maxSharedMemoryPerMultiprocessor"]),
            num_sms=int(row["numMultiprocessors"]),
        )
        found[facts.id] = facts
    return found


def _uuid(raw: bytes) -> str:
    text = raw.hex()
    return f"GPU-{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}" if any(raw) else ""
