"""Records for the benchmarks: kernels as numpy columns, with the same eight items that the plain profiler writes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from devprof.model import ActivityBatch, ActivityType, MetadataColumn, MetadataKind
from devprof.torch.bridge import bridge

__all__ = ["columns"]

NAMES = ("gemm_f32_128x128", "elementwise_add", "reduce_sum_rows", "softmax_warp")


def columns(n: int) -> Callable[[int, int], ActivityBatch]:
    """Prepare `n` kernels; the result makes the batch once the window (Unix ns) and the op ids are known.

    devprof itself adds device, stream and correlation, so five items are given here.
    """
    row = np.arange(n)
    metadata = {
        "bytes": MetadataColumn(MetadataKind.INT, row * 64),
        "registers per thread": MetadataColumn(MetadataKind.INT, np.full(n, 32)),
        "shared memory": MetadataColumn(MetadataKind.INT, np.full(n, 4096)),
        "grid": MetadataColumn(MetadataKind.INT_LIST, np.tile(np.array([16, 8, 1]), (n, 1))),
        "memory bandwidth (GB/s)": MetadataColumn(MetadataKind.FLOAT, 12.5 + row % 7),
    }
    fixed = {
        "activity_type": np.full(n, int(ActivityType.CONCURRENT_KERNEL), dtype=np.uint8),
        "name": (row % len(NAMES)).astype(np.int32),
        "id": row + 1,
        "device": (row % 2).astype(np.int32),
        "resource": row % 4,
    }

    def made(start_ns: int, end_ns: int) -> ActivityBatch:
        ops = np.flatnonzero(bridge().known_ops(np.arange(1 << 16)))
        starts = start_ns + row * (end_ns - start_ns) // n
        return ActivityBatch.from_columns(
            NAMES, start=starts, end=starts + 8, linked=ops[row % len(ops)], metadata=metadata, **fixed
        )

    return made
