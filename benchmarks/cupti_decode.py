"""Decoding CUPTI's buffers, a million kernel records of CUDA 13.4, beside cupti-python and a loop over ctypes structs.

Both peers read 18 fields of each record into a tuple; devprof copies its 22 into columns. Buffers are of 8 MiB, what CUPTI's
samples ask for, and are made here: no GPU and no driver are needed. ``CUPTI_PYTHON`` names the interpreter of an environment
that has cupti-python 13.4; else this one is tried. Figures are processor time.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from operator import attrgetter
from pathlib import Path
from unittest import mock

import numpy as np
from cuda_cupti import walk as walking
from cuda_cupti.build_spec import CUPTI
from cuda_cupti.decode import Records, columns_of, decode
from cuda_cupti.devices import DeviceFacts
from cuda_cupti.layouts import ActivityKind, expected
from cuda_cupti.output import to_batches
from cuda_cupti.walk import native_walk

from benchmarks.setting import Gate, cpu_us
from devprof.native import build, missing

__all__ = ["gates"]

LAYOUT = expected(130401)
DTYPE = LAYOUT.dtype(ActivityKind.CONCURRENT_KERNEL)
PER_BUFFER, BUFFERS, PEER_BUFFERS, NAMES = (8 << 20) // DTYPE.itemsize, 30, 6, 200
ROUNDS = 5
FIELDS = (
    *("start", "end", "deviceId", "contextId", "streamId", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"),
    *(
        "staticSharedMemory",
        "dynamicSharedMemory",
        "correlationId",
        "graphNodeId",
        "graphId",
        "registersPerThread",
        "queued",
    ),
)
GPU = DeviceFacts(
    id=0,
    compute_major=9,
    max_threads_per_block=1024,
    max_threads_per_multiprocessor=2048,
    max_blocks_per_multiprocessor=32,
    regs_per_block=65536,
    regs_per_multiprocessor=65536,
    shared_mem_per_block=49152,
    shared_mem_per_block_optin=232448,
    shared_mem_per_multiprocessor=233472,
    num_sms=132,
)


def gates() -> Iterator[Gate]:
    """Measure, and yield the figures as they come."""
    if not missing(CUPTI):
        build(CUPTI)
    native_walk.cache_clear()
    buffers = [_buffer(number) for number in range(BUFFERS)]
    plain_ns = _median_ns(lambda: [columns_of(memoryview(buffer), LAYOUT)[0] for buffer in buffers])
    named_ns = _median_ns(lambda: _decoded(buffers))
    struct_ns = _struct_loop_ns(buffers[:PEER_BUFFERS])
    yield _ratio("decoding 1M kernel records / a loop over ctypes structs", plain_ns, struct_ns, 1 / 8)
    yield from _beside_objects(buffers[:PEER_BUFFERS], plain_ns, named_ns)
    records = _decoded(buffers)
    batches_ns = _median_ns(lambda: to_batches(records, {0: GPU}).batches)
    yield Gate(
        "decoding: from columns to batches, per kernel", batches_ns, None, "ns", "20 columns and 9 items of metadata"
    )
    mixed = [_mixed(number) for number in range(PEER_BUFFERS)]
    n = sum(map(len, _decoded(mixed)))
    for way, patched in (("native" if native_walk() else "Python", None), ("Python", {"return_value": None})):
        with mock.patch.object(walking, "native_walk", **patched) if patched else contextlib.nullcontext():
            mixed_ns = _median_ns(lambda: _decoded(mixed), n)
        yield Gate(f"decoding: external id, call, kernel in turn, per record, walked in {way}", mixed_ns, None, "ns")


def _decoded(buffers: list[bytearray]) -> list[Records]:
    return [decode(buffer, LAYOUT, lambda pointer: b"kernel_%d" % pointer) for buffer in buffers]


def _beside_objects(buffers: list[bytearray], plain_ns: float, named_ns: float) -> Iterator[Gate]:
    if not _has_cupti_python():
        print("     decoding / cupti-python's objects: not measured, no cupti-python 13.4 here (CUPTI_PYTHON)")
        return
    theirs = _objects_ns(buffers)
    yield _ratio("decoding 1M kernel records / cupti-python's objects", plain_ns, theirs["fields"], 1 / 8)
    named, without = theirs["named"], theirs["named_without_gc"]
    yield _ratio("decoding 1M kernel records, names included / cupti-python's objects", named_ns, named, 1 / 5)
    yield _ratio("decoding, names included / cupti-python's objects, garbage collector off", named_ns, without, None)


def _ratio(name: str, ours_ns: float, theirs_ns: float, bound: float | None) -> Gate:
    return Gate(name, ours_ns / theirs_ns, bound, detail=f"{ours_ns:.0f} / {theirs_ns:.0f} ns per record")


def _median_ns(work: Callable[[], object], n: int = PER_BUFFER * BUFFERS) -> float:
    gc.collect()
    work()  # warms up
    return statistics.median(cpu_us(work) for _ in range(ROUNDS)) * 1000 / n


def _buffer(number: int) -> bytearray:
    """Return a full buffer of kernels."""
    rows = np.zeros(PER_BUFFER, DTYPE)
    at = np.arange(PER_BUFFER) + number * PER_BUFFER
    rows["kind"] = ActivityKind.CONCURRENT_KERNEL
    rows["start"] = at * 1000 + 10**18
    rows["end"] = rows["start"] + 500
    rows["correlationId"], rows["streamId"] = at * 3 + 1, at % 4 + 7
    rows["name"] = np.random.default_rng(number).integers(1, NAMES + 1, PER_BUFFER)
    rows["gridX"], rows["blockX"], rows["registersPerThread"] = at % 1000 + 1, 128, 32
    for one in ("gridY", "gridZ", "blockY", "blockZ"):
        rows[one] = 1
    return bytearray(rows.tobytes())


def _mixed(number: int) -> bytearray:
    """Return a buffer in which no two records of one kind follow each other."""
    kinds = (ActivityKind.EXTERNAL_CORRELATION, ActivityKind.RUNTIME, ActivityKind.CONCURRENT_KERNEL)
    fields = [
        ("correlationId", number * PER_BUFFER + np.arange((8 << 20) // sum(LAYOUT.strides[kind] for kind in kinds)))
    ]
    parts = []
    for kind in kinds:
        rows = np.zeros(len(fields[0][1]), LAYOUT.dtype(kind))
        rows["kind"] = kind
        for name, values in fields:
            rows[name] = values
        parts.append(rows.view(np.uint8).reshape(len(rows), -1))
    return bytearray(np.hstack(parts).tobytes())


def _struct_loop_ns(buffers: list[bytearray]) -> float:
    """Return what a loop over ctypes structs costs per record."""
    members, at = [], 0
    for name, (_, offset) in sorted(DTYPE.fields.items(), key=lambda item: item[1][1]):
        members += [(f"pad{at}", ctypes.c_char * (offset - at))] if offset > at else []
        members.append((name, np.ctypeslib.as_ctypes_type(DTYPE[name])))
        at = offset + DTYPE[name].itemsize
    members.append(("tail", ctypes.c_char * (DTYPE.itemsize - at)))
    struct = type("Kernel", (ctypes.Structure,), {"_pack_": 1, "_layout_": "ms", "_fields_": members})
    values, starts = attrgetter(*FIELDS), range(0, PER_BUFFER * DTYPE.itemsize, DTYPE.itemsize)
    rows = [[values(struct.from_buffer(buffer, start)) for start in starts[:1]] for buffer in buffers]
    if rows[0][0][0] != 10**18:
        raise RuntimeError(f"the struct does not fit: start {rows[0][0][0]}, expected 10**18")
    spent_us = cpu_us(lambda: [[values(struct.from_buffer(buffer, start)) for start in starts] for buffer in buffers])
    return spent_us * 1000 / (len(buffers) * PER_BUFFER)


def _objects_ns(buffers: list[bytearray]) -> dict[str, float]:
    """Return what cupti-python's objects cost per record: three runs, the medians."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "buffers"
        path.write_bytes(b"".join(len(buffer).to_bytes(8, "little") + buffer for buffer in buffers))
        command = [_cupti_python(), str(Path(__file__).with_name("cupti_objects.py")), str(path)]
        runs = [
            json.loads(subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder).stdout)
            for _ in range(3)
        ]
    return {key: statistics.median(run[key] for run in runs) for key in runs[0]}


def _cupti_python() -> str:
    return os.environ.get("CUPTI_PYTHON", sys.executable)


@functools.cache
def _has_cupti_python() -> bool:
    program = "import cupti.utils; cupti.utils.ActivityKernel13"
    return subprocess.run([_cupti_python(), "-c", program], capture_output=True, check=False).returncode == 0
