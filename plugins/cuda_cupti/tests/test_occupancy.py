from __future__ import annotations

import random
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cuda_cupti.devices import DeviceFacts
from cuda_cupti.layouts import expected
from cuda_cupti.occupancy import achieved_occupancy, active_blocks_per_sm, blocks_per_sm
from cuda_cupti.rows import Rows

from plugins.cuda_cupti.tests.judges import include_dirs
from plugins.cuda_cupti.tests.test_output import H200

DTYPE = expected(130001).dtype(10)


def kernel(
    grid: int = 1, threads: int = 256, registers: int = 32, static: int = 0, dynamic: int = 0, optin: int = 0
) -> Rows:
    row = np.zeros(1, DTYPE)
    row["gridX"], row["gridY"], row["gridZ"] = grid, 1, 1
    row["blockX"], row["blockY"], row["blockZ"] = threads, 1, 1
    row["registersPerThread"], row["staticSharedMemory"], row["dynamicSharedMemory"] = registers, static, dynamic
    row["shmemLimitConfig"] = optin
    return Rows({name: row[name].copy() for name in DTYPE.names or ()}, 1)


@pytest.mark.parametrize(
    ("rows", "blocks"),
    [
        (kernel(threads=256, registers=32), 8),
        (kernel(threads=32, registers=16), 32),
        (kernel(threads=1024, registers=64), 1),
        (kernel(threads=1024, registers=128), 0),
        (kernel(threads=1025), 0),
        (kernel(threads=0), 0),
        (kernel(threads=256, static=100 * 1024), 0),
        (kernel(threads=256, registers=128, dynamic=64 * 1024, optin=1), 2),
        (kernel(threads=256, registers=0), 8),
        (kernel(threads=256, registers=300), 0),
    ],
)
def test_a_multiprocessor_holds_as_many_blocks_as_its_scarcest_resource_allows(rows: Rows, blocks: int) -> None:
    assert active_blocks_per_sm(H200, rows).tolist() == [blocks]


def test_a_kernel_that_opted_in_to_more_shared_memory_does_not_come_out_empty() -> None:
    rows = kernel(grid=1320, threads=256, registers=128, dynamic=64 * 1024, optin=1)
    assert achieved_occupancy(H200, rows).tolist() == [2 * 256 / 2048]


def test_a_grid_that_is_small_fills_no_more_than_it_has() -> None:
    assert achieved_occupancy(H200, kernel(grid=66, threads=1024, registers=32)).tolist() == [0.25]
    assert blocks_per_sm(H200, kernel(grid=66)).tolist() == [0.5]


def test_where_the_device_does_not_say_its_blocks_the_compute_capability_does() -> None:
    found = {}
    for capability in ((7, 0), (7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0)):
        facts = replace(H200, max_blocks_per_multiprocessor=0, compute_major=capability[0], compute_minor=capability[1])
        found[capability] = int(active_blocks_per_sm(facts, kernel(threads=1, registers=1))[0])
    assert list(found.values()) == [32, 16, 32, 16, 24, 32, 32, 24]


def test_limits_that_nobody_knows_do_not_limit() -> None:
    facts = DeviceFacts(id=0, num_sms=1, max_threads_per_multiprocessor=2048)
    assert active_blocks_per_sm(facts, kernel(threads=256, registers=255, static=1 << 20)).tolist() == [8]


PROGRAM = """
#include <cstdio>
#include <cuda_occupancy.h>
int main() {
    int threads, registers, fixed, dynamic, optin, major, minor, kib;
    while (scanf("%d %d %d %d %d %d %d %d", &threads, &registers, &fixed, &dynamic, &optin, &major, &minor, &kib) == 8) {
        cudaOccDeviceProp device = cudaOccDeviceProp();
        device.computeMajor = major; device.computeMinor = minor;
        device.maxThreadsPerBlock = 1024; device.maxThreadsPerMultiprocessor = 2048; device.regsPerBlock = 65536;
        device.regsPerMultiprocessor = 65536; device.warpSize = 32; device.sharedMemPerBlock = 49152;
        device.sharedMemPerMultiprocessor = kib * 1024; device.numSms = 132; device.sharedMemPerBlockOptin = kib * 1024 - 1024;
        device.reservedSharedMemPerBlock = 1024;
        cudaOccFuncAttributes kernel = cudaOccFuncAttributes();
        kernel.maxThreadsPerBlock = 1024; kernel.numRegs = registers; kernel.sharedSizeBytes = fixed;
        kernel.partitionedGCConfig = PARTITIONED_GC_OFF; kernel.maxDynamicSharedSizeBytes = 232448;
        kernel.shmemLimitConfig = optin ? FUNC_SHMEM_LIMIT_OPTIN : FUNC_SHMEM_LIMIT_DEFAULT;
        cudaOccDeviceState state = cudaOccDeviceState();
        cudaOccResult result;
        cudaOccError error = cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &kernel, &state, threads, dynamic);
        printf("%d\\n", error ? -int(error) : result.activeBlocksPerMultiprocessor);
    }
}
"""


SHARED_KIB = [(8, 0, 164), (8, 6, 100), (8, 9, 100), (9, 0, 228), (10, 0, 228), (11, 0, 228), (12, 0, 100)]
"""Compute capability and shared memory of a multiprocessor."""


def test_nvidias_own_header_counts_the_same_blocks(tmp_path: Path) -> None:
    include = include_dirs("cuda_occupancy.h")
    source, program = tmp_path / "occupancy.cpp", tmp_path / "occupancy"
    source.write_text(PROGRAM, encoding="utf-8")
    subprocess.run(
        ["g++", "-w", *(f"-I{path}" for path in include), str(source), "-o", str(program)], check=True, timeout=120
    )
    rng = random.Random(3)
    cases = [
        (
            rng.randrange(1, 1025),
            rng.randrange(1, 256),
            rng.randrange(49153),
            rng.choice([0, rng.randrange(49153), rng.randrange(232449)]),
            rng.randrange(2),
            *rng.choice(SHARED_KIB),
        )
        for _ in range(8000)
    ]
    text = "\n".join(" ".join(map(str, case)) for case in cases)
    theirs = subprocess.run([str(program)], input=text, capture_output=True, text=True, check=True, timeout=60).stdout
    ours = []
    for threads, registers, static, dynamic, optin, major, minor, kib in cases:
        limits = {"shared_mem_per_multiprocessor": kib * 1024, "shared_mem_per_block_optin": kib * 1024 - 1024}
        facts = replace(H200, max_blocks_per_multiprocessor=0, compute_major=major, compute_minor=minor, **limits)
        ours.append(int(active_blocks_per_sm(facts, kernel(1, threads, registers, static, dynamic, optin))[0]))
    wrong = [pair for pair in zip(cases, ours, map(int, theirs.split()), strict=True) if pair[1] != pair[2]]
    assert wrong == []
