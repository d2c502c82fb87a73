"""A file as Kineto writes it for a training loop on a GPU: ops with shapes, their launches, kernels, arrows, steps."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

__all__ = ["write_kineto_file"]

OPS = ("linear", "addmm", "relu", "mm", "mul", "add_", "sum", "t", "copy_", "layer_norm", "softmax", "div")
OPS_PER_STEP = 480
N_KERNELS = 60
HEAD = """{
  "schemaVersion": 1,
  "deviceProperties": [{"id": 0, "name": "bench", "totalGlobalMem": 34079637504}],
  "trace_id": "C858556BDBF8420A97F1699E88043077", "record_shapes": 1,
  "displayTimeUnit": "ms",
  "baseTimeNanoseconds": 1790857026000000000,
  "traceEvents": [
  {
    "ph": "M", "name": "process_name", "ts": 5128896227060.033, "pid": 12745, "tid": 0, "args": { "name": "python" }
  },
  {
    "ph": "M", "name": "process_labels", "ts": 5128896227060.033, "pid": 0, "tid": 0, "args": { "labels": "GPU 0" }
  }"""
OP = """,
  {
    "ph": "X", "cat": "cpu_op", "name": "aten::%s", "pid": 12745, "tid": %d,
    "ts": %s, "dur": %s,
    "args": {
      "External id": %d,"Record function id": 0, "Sequence number": %d, "Fwd thread id": 0, "Concrete Inputs": ["", "", "%s"], \
"Input type": ["float", "float", "Scalar"], "Input Strides": [[%d, 1], [%d, 1], []], "Input Dims": [[%d, %d], [%d, %d], []], \
"Ev Idx": %d
    }
  }"""
LAUNCH = """,
  {
    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 12745, "tid": %d,
    "ts": %s, "dur": %s,
    "args": {
      "External id": %d, "cbid": 211, "correlation": %d
    }
  },
  {
    "ph": "s", "id": %d, "pid": 12745, "tid": %d, "ts": %s,
    "cat": "ac2g", "name": "ac2g"
  }"""
KERNEL = """,
  {
    "ph": "X", "cat": "kernel", "name": "void at::native::elementwise_kernel<4, Functor%d<float>, 2>(int, Array<char*, 3>)", \
"pid": 0, "tid": %d,
    "ts": %s, "dur": %s,
    "args": {
      "External id": %d, "queued": 0, "device": 0, "context": 1, "stream": %d, "correlation": %d, "registers per thread": %d, \
"shared memory": %d, "blocks per SM": %.6f, "warps per SM": %.6f, "grid": [%d, 1, 1], "block": [128, 1, 1], \
"est. achieved occupancy %%": %d
    }
  },
  {
    "ph": "f", "id": %d, "pid": 0, "tid": %d, "ts": %s,
    "cat": "ac2g", "name": "ac2g", "bp": "e"
  }"""
STEP = """,
  {
    "ph": "X", "cat": "user_annotation", "name": "ProfilerStep#%d", "pid": 12745, "tid": 12745,
    "ts": %s, "dur": %s,
    "args": {
      "External id": %d, "Ev Idx": %d
    }
  }"""
TAIL = """,
  {
    "ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": %s
  }
  ], "traceName": "bench.json" }
"""


def write_kineto_file(path: Path, complete_events: int) -> int:
    """Write a trace; the same for the same size. Returns how many complete events it has, about as many as asked for.

    Args:
        path: where to.
        complete_events: how many; a file has half as many arrow ends beside them.
    """
    count = 0
    with path.open("w", encoding="utf-8") as file:
        file.write(HEAD)
        for text, complete in _parts(complete_events):
            file.write(text)
            count += complete
    return count


def _parts(complete_events: int) -> Iterator[tuple[str, int]]:
    chance = random.Random(0)
    ns, number, done = 5_128_896_227_362_114, 1, 0
    while done < complete_events:
        begin_ns, own = ns, number
        number += 1
        for _ in range(min(OPS_PER_STEP, (complete_events - done + 3) // 4)):
            yield _op_with_kernel(chance, ns, number), 4
            ns += chance.randrange(12_000, 30_000)
            number += 3
            done += 4
        yield STEP % (own, _us(begin_ns - 100), _us(ns - begin_ns), own, own), 1
        done += 1
    yield TAIL % _us(ns + 10**6), 0


def _op_with_kernel(chance: random.Random, ns: int, number: int) -> str:
    size = 2 ** chance.randrange(4, 10)
    thread, stream = 12745 + chance.randrange(2), 7 + chance.randrange(2)
    shapes = (size, size, size, size, size, size)
    scalar = chance.choice(("", "0.1", "False"))
    name, leaf = chance.choice(OPS), chance.choice(OPS)
    kernel_ns, duration_ns = ns + chance.randrange(4_000, 40_000), chance.randrange(900, 9_000)
    launch = number + 2
    return "".join(
        (
            OP % (name, thread, _us(ns), _us(11_001), number, number, scalar, *shapes, number),
            OP % (leaf, thread, _us(ns + 1_003), _us(9_007), number + 1, number, scalar, *shapes, number + 1),
            LAUNCH % (thread, _us(ns + 2_005), _us(4_001), number + 1, launch, launch, thread, _us(ns + 2_005)),
            KERNEL
            % (
                *(chance.randrange(N_KERNELS), stream, _us(kernel_ns), _us(duration_ns), number + 1, stream, launch),
                *(16 + size % 48, size * 4, size / 160, size / 40, size, min(100, size // 4)),
                *(launch, stream, _us(kernel_ns)),
            ),
        )
    )


def _us(ns: int) -> str:
    return f"{ns // 1000}.{ns % 1000:03d}"
