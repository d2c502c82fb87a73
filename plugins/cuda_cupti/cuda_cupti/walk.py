"""Where the records of a buffer begin.

Records lie back to back, each as long as its kind says, so they can only be found one after the other. Long runs of one kind,
which is what a buffer full of kernels is, are found by numpy at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cuda_cupti.layouts import Layout

__all__ = ["Walk", "walk"]

Offsets = npt.NDArray[np.int64]

_BLOCK = 64
"""Steps between two looks for a run."""


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


def walk(raw: memoryview, layout: Layout) -> Walk:
    """Find the records of a buffer.

    Args:
        raw: the valid bytes, format ``B``, contiguous.
        layout: how long records are.
    """
    size = len(raw)
    words = raw[: size // 4 * 4].cast("I")
    steps = _steps(layout)
    parts: list[Offsets] = []
    at = 0
    while True:
        found, stopped = _some(words, steps, at)
        if found:
            parts.append(np.array(found, dtype=np.int64))
            at = found[-1] + steps[words[found[-1]]]
        if stopped:
            break
        if at - found[0] == _BLOCK * (at - found[-1]):
            run = _run(raw, words[found[-1]], found[-1], (at - found[-1]) * 4)
            if run > 1:
                parts.append(found[-1] + (at - found[-1]) * np.arange(1, run, dtype=np.int64))
                at += (at - found[-1]) * (run - 1)
    offsets = np.concatenate(parts) * 4 if parts else np.empty(0, dtype=np.int64)
    return _result(raw, offsets, at * 4, layout)


def _steps(layout: Layout) -> list[int]:
    """Return each kind's stride in words of 4 bytes, 0 for a kind that there is not."""
    steps = [0] * (max(layout.strides, default=0) + 1)
    for kind, stride in layout.strides.items():
        steps[kind] = stride // 4
    return steps


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
    room = (len(raw) - at * 4) // stride
    looked, wanted = 0, 4 * _BLOCK
    while looked < room:
        wanted = min(wanted, room - looked)
        kinds = np.ndarray((wanted,), "<u4", buffer=raw, offset=at * 4 + looked * stride, strides=(stride,))
        other = np.flatnonzero(kinds != kind)
        if len(other):
            return looked + int(other[0])
        looked += wanted
        wanted *= 2
    return looked


def _result(raw: memoryview, offsets: Offsets, end: int, layout: Layout) -> Walk:
    size = len(raw)
    stop = ""
    if end > size:  # only the last record can be cut
        offsets, end = offsets[:-1], int(offsets[-1])
        stop = f"a record is cut short at byte {end} of {size}"
    elif size - end >= 4:
        kind = int.from_bytes(raw[end : end + 4], "little")
        stop = f"unknown kind {kind} at byte {end} of {size}"
    elif end < size:
        stop = f"a record is cut short at byte {end} of {size}"
    return Walk(_by_kind(raw, offsets), end, stop)


def _by_kind(raw: memoryview, offsets: Offsets) -> dict[int, Offsets]:
    if not len(offsets):
        return {}
    # any word where a record can begin, so that numpy checks every offset against the buffer
    kinds = np.ndarray((len(raw) // 4,), "<u4", buffer=raw)[offsets // 4]
    return {int(kind): offsets[kinds == kind] for kind in np.unique(kinds)}
