"""Device work of CUPTI's tables, which nvprof and Nsight Systems name alike, as columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from devprof.model import ActivityType
from devprof.store.items import ItemKind
from devprof.store.readers.gathering import EventTable
from devprof.store.readers.sqlite import ABSENT, Records

__all__ = ["Words", "add_integers", "copy_names", "kernel_items", "set_names", "work_items"]

_WORK_ITEMS = {"deviceId": "device", "contextId": "context", "streamId": "stream", "graphNodeId": "graph node id"}
_KERNEL_ITEMS = {
    "registersPerThread": "registers per thread",
    "localMemoryPerThread": "local memory per thread",
    "graphId": "graph id",
}


@dataclass(frozen=True, slots=True)
class Words:
    """What the numbers of a file's columns are called.

    Attributes:
        copies: kinds of a copy, such as ``"HtoD"``.
        memory: kinds of memory, such as ``"Pageable"``.
        memory_of_set: column of a set that holds its kind of memory.
    """

    copies: Mapping[int, str]
    memory: Mapping[int, str]
    memory_of_set: str


def named(
    columns: Sequence[npt.NDArray[np.int64]], name: Callable[..., str], table: EventTable
) -> npt.NDArray[np.int32]:
    """Return the number of each record's name, made once for each different set of values."""
    distinct, which = np.unique(np.stack(columns), axis=1, return_inverse=True)
    numbers = table.texts([name(*values) for values in distinct.T.tolist()])
    return numbers[which.ravel()] if len(numbers) else np.empty(0, dtype=np.int32)


def copy_names(records: Records, words: Words, table: EventTable) -> npt.NDArray[np.int32]:
    """Name copies as Kineto does: ``Memcpy HtoD (Pageable -> Device)``."""
    columns = [records.numbers[key] for key in ("copyKind", "srcKind", "dstKind")]

    def name(copy: int, source: int, target: int) -> str:
        ways = (words.memory.get(source, "Unknown"), words.memory.get(target, "Unknown"))
        return f"Memcpy {words.copies.get(copy, 'Unknown')} ({' -> '.join(ways)})"

    return named(columns, name, table)


def set_names(records: Records, words: Words, table: EventTable) -> npt.NDArray[np.int32]:
    """Name sets as Kineto does: ``Memset (Device)``."""
    kinds = records.numbers[words.memory_of_set]
    return named([kinds], lambda kind: f"Memset ({words.memory.get(kind, 'Unknown')})", table)


def add_integers(table: EventTable, first: int, records: Records, items: Mapping[str, str]) -> None:
    """Add those integers that are there as items.

    Args:
        table: where the records have become the events from `first` on.
        first: index of the first.
        records: the records.
        items: the item's key by column.
    """
    for column, key in items.items():
        values = records.numbers[column]
        there = np.flatnonzero(values != ABSENT)
        table.add_items(key, ItemKind.INT, there + first, values[there])


def work_items(table: EventTable, first: int, records: Records, kind: ActivityType) -> None:
    """Add the items that Kineto prints for kernels, copies and sets."""
    add_integers(
        table, first, records, {column: key for column, key in _WORK_ITEMS.items() if column in records.numbers}
    )
    if kind is not ActivityType.CONCURRENT_KERNEL:
        add_integers(table, first, records, {"bytes": "bytes"})


def kernel_items(table: EventTable, first: int, records: Records) -> None:
    """Add the items that Kineto prints for kernels alone: grid, block, registers, shared memory."""
    numbers = records.numbers
    add_integers(table, first, records, {column: key for column, key in _KERNEL_ITEMS.items() if column in numbers})
    for key in ("grid", "block"):
        sizes = np.stack([numbers[f"{key}{axis}"] for axis in "XYZ"], axis=1)
        there = np.flatnonzero((sizes != ABSENT).all(axis=1))
        table.add_items(key, ItemKind.INT_LIST, there + first, sizes[there])
    fixed, dynamic = numbers["staticSharedMemory"], numbers["dynamicSharedMemory"]
    there = np.flatnonzero((fixed != ABSENT) & (dynamic != ABSENT))
    table.add_items("shared memory", ItemKind.INT, there + first, fixed[there] + dynamic[there])
