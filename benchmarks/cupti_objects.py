"""``python cupti_objects.py BUFFERS``: the peer of `cupti_decode`: cupti-python's own objects, from the same buffers.

To be run by an interpreter that has cupti-python 13.4 (``CUPTI_PYTHON``); it needs nothing of devprof's, no driver and no GPU.
It calls the function that cupti-python makes its objects with for a completed buffer, once per record, and takes off what a
call through ctypes costs, since cupti-python calls it from C. Prints processor time per record, ns, as JSON: as a program gets
it, and with the garbage collector off, which in a callback nobody has.
"""

from __future__ import annotations

import ctypes
import gc
import json
import sys
import time
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path

STRIDE = 248
FIELDS = (
    *(
        "start",
        "end",
        "device_id",
        "context_id",
        "stream_id",
        "grid_x",
        "grid_y",
        "grid_z",
        "block_x",
        "block_y",
        "block_z",
    ),
    *(
        "static_shared_memory",
        "dynamic_shared_memory",
        "correlation_id",
        "graph_node_id",
        "graph_id",
        "registers_per_thread",
    ),
    "queued",
)


def main(path: str) -> None:
    """Measure with the buffers in a file: each its length as 8 bytes, then its bytes."""
    buffers, texts = read(Path(path).read_bytes())
    parse = parser()
    n = sum(len(buffer) // STRIDE for buffer in buffers)
    found = measured(parse, buffers, n)
    gc.disable()
    without = measured(parse, buffers, n)
    print(json.dumps(found | {f"{key}_without_gc": value for key, value in without.items()} | {"texts": len(texts)}))


def measured(
    parse: Callable[[int, int, int], object], buffers: list[ctypes.Array[ctypes.c_char]], n: int
) -> dict[str, float]:
    """Return what n records cost each: as objects with their fields read, and with their names as well."""
    call_ns = ctypes_call_ns(n)
    fields, named = attrgetter(*FIELDS), attrgetter(*FIELDS, "name")
    plain_ns = spent_ns(lambda: [list(map(fields, objects(parse, buffer))) for buffer in buffers]) / n
    named_ns = spent_ns(lambda: [list(map(named, objects(parse, buffer))) for buffer in buffers]) / n
    return {"fields": plain_ns - call_ns, "named": named_ns - call_ns}


def read(raw: bytes) -> tuple[list[ctypes.Array[ctypes.c_char]], list[ctypes.Array[ctypes.c_char]]]:
    """Return the buffers, their name pointers set to texts of this process, and those texts."""
    buffers, texts, at = [], [], 0
    table: dict[int, int] = {}
    while at < len(raw):
        size = int.from_bytes(raw[at : at + 8], "little")
        buffer = ctypes.create_string_buffer(raw[at + 8 : at + 8 + size], size)
        for record in range(0, size, STRIDE):
            pointer = ctypes.c_uint64.from_buffer(buffer, record + 104)
            if pointer.value not in table:
                texts.append(ctypes.create_string_buffer(b"kernel_%d" % pointer.value))
                table[pointer.value] = ctypes.addressof(texts[-1])
            pointer.value = table[pointer.value]
        buffers.append(buffer)
        at += 8 + size
    return buffers, texts


def parser() -> Callable[[int, int, int], object]:
    """Return the function of cupti-python that makes one record's object: of its buffer, the buffer's size and the record."""
    import cupti.utils

    capsule = cupti.utils.__pyx_capi__["parseActivityStruct"]
    name_of, pointer_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.argtypes, name_of.restype = (ctypes.py_object,), ctypes.c_char_p
    pointer_of.argtypes, pointer_of.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_void_p
    signature = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
    return signature(pointer_of(capsule, name_of(capsule)))


def objects(parse: Callable[[int, int, int], object], buffer: ctypes.Array[ctypes.c_char]) -> list[object]:
    """Return the objects of one buffer, as cupti-python hands them to its callback."""
    first, size = ctypes.addressof(buffer), len(buffer)
    return [parse(first, size, at) for at in range(first, first + size, STRIDE)]


def ctypes_call_ns(n: int) -> float:
    """Return what a call of three arguments that returns an object costs through ctypes, ns: of one that does nothing else."""
    signature = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
    true = signature(("PyBool_FromLong", ctypes.pythonapi))
    return spent_ns(lambda: [true(1, 2, at) for at in range(n)]) / n


def spent_ns(work: Callable[[], object]) -> int:
    """Return the processor time that something takes, ns."""
    began = time.process_time_ns()
    kept = work()
    spent = time.process_time_ns() - began
    del kept
    return spent


if __name__ == "__main__":
    main(sys.argv[1])
