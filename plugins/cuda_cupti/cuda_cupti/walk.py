"""Where the records of a buffer begin.

Records lie back to back, each as long as its kind says, so they can only be found one after the other. Native code does it,
where it has been built; else Python, which finds long runs of one kind, as in a buffer full of kernels, at once.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from cuda_cupti.build_spec import CUPTI
from cuda_cupti.layouts import Layout
from devprof.errors import BuildError
from devprof.native import load

__all__ = ["Walk", "native_walk", "walk", "walk_in_python"]

Offsets = npt.NDArray[np.int64]
Steps = Callable[[memoryview, Layout], tuple[Offsets, npt.NDArray[np.uint32], int]]
"""Returns where records begin, (n,), their kinds, (n,), and where the last one ends."""

_BLOCK = 64
"""Steps between two looks for a run."""
_ROOM = 1 << 15
"""Records that native code finds in one call."""
_KIND_BYTES = 4
_NOTHING = (np.empty(0, np.int64), np.empty(0, np.uint32), 0)


@dataclass(frozen=True, slots=True, eq=False)
class Walk:
    """What was found in a buffer.

    Attributes:
        offsets: by kind, (n,) int64, where its records begin, ascending; all of them end within the buffer.
        used_bytes: end of the last record.
        stop: why the walk ended before the buffer did; empty where it did not.
    """

    offsets: Mapping[int, Offsets]
    used_bytes: int
    stop: str = ""


def walk(raw: memoryview, layout: Layout, steps: Steps | None = None) -> Walk:
    """Find the records of a buffer.

    Args:
        raw: the valid bytes, format ``B``, contiguous.
        layout: how long records are.
        steps: what goes through the buffer; None: native code where it is built, else Python.
    """
    offsets, kinds, end = (steps or native_walk() or walk_in_python)(raw, layout) if len(raw) else _NOTHING
    if not len(offsets):
        return Walk({}, 0, _stop(raw, 0, layout))
    # one kind has no need of masks; more are few
    found = [int(kinds[0])] if (kinds == kinds[0]).all() else np.unique(kinds).tolist()
    by_kind = {kind: offsets if len(found) == 1 else offsets[kinds == kind] for kind in found}
    return Walk(by_kind, end, _stop(raw, end, layout))


def _stop(raw: memoryview, end: int, layout: Layout) -> str:
    size = len(raw)
    if end == size:
        return ""
    kind = int.from_bytes(raw[end : end + _KIND_BYTES], "little")
    if size - end >= _KIND_BYTES and kind not in layout.strides:
        return f"unknown kind {kind} at byte {end} of {size}"
    return f"a record is cut short at byte {end} of {size}"


@cache
def native_walk() -> Steps | None:
    """Return the walk in native code, or None where it is not built. Looked for once per process."""
    try:
        function = load(CUPTI).devprof_cupti_walk
    except BuildError:
        return None
    function.restype = ctypes.c_int64
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    function.argtypes = (pointer, number, pointer, number, pointer, pointer, number, ctypes.POINTER(number))

    def steps(raw: memoryview, layout: Layout) -> tuple[Offsets, npt.NDArray[np.uint32], int]:
        strides = np.array(_strides(layout), dtype=np.uint32)
        start, at = np.frombuffer(raw, np.uint8), ctypes.c_int64()
        places, kinds = [np.empty(0, np.int64)], [np.empty(0, np.uint32)]
        n = room = min(_ROOM, len(raw) // 8 + 1)
        while n == room:
            offset, kind = np.empty(room, np.int64), np.empty(room, np.uint32)
            addresses = (strides.ctypes.data, len(strides), offset.ctypes.data, kind.ctypes.data)
            n = function(start.ctypes.data, len(raw), *addresses, room, ctypes.byref(at))
            places.append(offset[:n])
            kinds.append(kind[:n])
        return np.concatenate(places), np.concatenate(kinds), at.value

    return steps


def walk_in_python(raw: memoryview, layout: Layout) -> tuple[Offsets, npt.NDArray[np.uint32], int]:
    """Go through a buffer without native code; see `Steps`."""
    words = raw[: len(raw) // _KIND_BYTES * _KIND_BYTES].cast("I")
    steps = [stride // _KIND_BYTES for stride in _strides(layout)]
    parts: list[Offsets] = []
    at, stopped = 0, False
    while not stopped:
        found, stopped = _some(words, steps, at)
        if not found:
            break
        parts.append(np.array(found, dtype=np.int64))
        last, step = found[-1], steps[words[found[-1]]]
        at = last + step
        if not stopped and at - found[0] == _BLOCK * step:
            run = _run(raw, words[last], last, step * _KIND_BYTES)
            if run > 1:
                parts.append(last + step * np.arange(1, run, dtype=np.int64))
                at += step * (run - 1)
    offsets = np.concatenate([*parts, np.empty(0, np.int64)]) * _KIND_BYTES
    end = at * _KIND_BYTES
    if end > len(raw):  # only the last record can be cut
        offsets, end = offsets[:-1], int(offsets[-1])
    # any word where a record can begin, so that numpy checks every offset against the buffer
    kinds = np.ndarray((len(words),), "<u4", buffer=raw)[offsets // _KIND_BYTES]
    return offsets, kinds.astype(np.uint32, copy=False), end


def _strides(layout: Layout) -> list[int]:
    """Return each kind's stride in bytes, 0 for a kind that there is not."""
    strides = [0] * (max(layout.strides, default=0) + 1)
    for kind, stride in layout.strides.items():
        strides[kind] = stride
    return strides


def _some(words: memoryview, steps: list[int], at: int) -> tuple[list[int], bool]:
    """Return where the next records begin, in words, and whether the walk ends behind them; the last one may be cut short."""
    found: list[int] = []
    append = found.append
    try:
        for _ in range(_BLOCK):
            step = steps[words[at]]
            if not step:
                return found, True
            append(at)
            at += step
    except IndexError:  # behind the end, or a kind beyond the table
        return found, True
    return found, False


def _run(raw: memoryview, kind: int, at: int, stride: int) -> int:
    """Return how many whole records of one kind follow each other from a word on; at least 0."""
    room = (len(raw) - at * _KIND_BYTES) // stride
    looked, wanted = 0, 4 * _BLOCK
    while looked < room:
        wanted = min(wanted, room - looked)
        kinds = np.ndarray((wanted,), "<u4", buffer=raw, offset=at * _KIND_BYTES + looked * stride, strides=(stride,))
        other = np.flatnonzero(kinds != kind)
        if len(other):
            return looked + int(other[0])
        looked += wanted
        wanted *= 2
    return looked
