"""Memory: which event allocated how much, and how much was in use over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from devprof.analysis.columns import Bools, Longs, sums
from devprof.analysis.forest import Forest
from devprof.analysis.names import MEMORY
from devprof.analysis.processes import processes_of
from devprof.analysis.work import places_of
from devprof.store import HOST_BACKEND, ItemKind, PlaceKind, Trace

__all__ = ["MemoryCurve", "MemoryUse", "backends_of_memory", "memory_curve", "memory_use"]

_HOST_TYPES = (0, 2, 5)
"""torch's numbers of the device types whose memory is the host's: CPU, MKLDNN, IDEEP."""

_BACKENDS = {1: "cuda", 6: "hip", 12: "xpu", 13: "mps", 15: "hpu", 19: "mtia"}
"""torch's numbers of device types (c10/core/DeviceType.h), where the number says which backend it is."""

_PRIVATE_TYPE = 20


@dataclass(frozen=True, slots=True, eq=False)
class MemoryUse:
    """What the events of a forest allocated, less what they freed, bytes.

    Attributes:
        total: by backend, (m,) int64: within each event.
        own: by backend, (m,) int64: within each event, and not within a listed event inside it.
        outside: (k,) int64, indices in the trace of the allocations and frees outside of all events of their thread.
        of_outside: by backend, (k,) int64, their bytes.
    """

    total: dict[str, Longs]
    own: dict[str, Longs]
    outside: Longs
    of_outside: dict[str, Longs]


@dataclass(frozen=True, slots=True, eq=False)
class MemoryCurve:
    """How much memory of one device was in use, as the allocator reported it at each allocation and free.

    Attributes:
        times_ns: (n,) int64, Unix ns, ascending.
        allocated_bytes: (n,) int64.
        reserved_bytes: (n,) int64: taken from the system, in use or not.
    """

    times_ns: Longs
    allocated_bytes: Longs
    reserved_bytes: Longs

    @property
    def peak_bytes(self) -> int:
        """Greatest number of allocated bytes, 0 where nothing was reported."""
        return int(self.allocated_bytes.max(initial=0))


def memory_use(trace: Trace, forest: Forest) -> MemoryUse:
    """Attribute each allocation and free to the innermost event around it on its thread.

    An event that ended on another thread has what its first thread allocated while it ran, as its total only.
    """
    count = len(forest)
    inside = np.flatnonzero(forest.memory_in >= 0)
    claimed = forest.memory_in >= 0
    total, own, bytes_of = {}, {}, _bytes_by_backend(trace, forest.memory)
    spans = _Spans(trace, forest)
    claimed |= spans.claimed()
    for backend, values in bytes_of.items():
        by_event = sums(forest.memory_in[inside], values[inside], count)
        total[backend] = spans.added(forest.summed(by_event), values)
        own[backend] = forest.own(by_event)
    outside = np.flatnonzero(~claimed)
    return MemoryUse(total, own, forest.memory[outside], {b: values[outside] for b, values in bytes_of.items()})


class _Spans:
    """The memory events within each event that ended on another thread, by time on the thread where it began."""

    def __init__(self, trace: Trace, forest: Forest) -> None:
        self._events = np.flatnonzero(forest.is_async)
        thread = trace.row[forest.memory].astype(np.int64)
        at = trace.start_ns[forest.memory]
        self._order = np.lexsort((at, thread))
        self._first = np.zeros(len(self._events), dtype=np.int64)
        self._stop = np.zeros(len(self._events), dtype=np.int64)
        thread, at = thread[self._order], at[self._order]
        for number, position in enumerate(self._events.tolist()):
            event, row = forest.event[position], forest.thread[position]
            begin, end = np.searchsorted(thread, [row, row + 1])
            self._first[number] = begin + np.searchsorted(at[begin:end], trace.start_ns[event], "left")
            self._stop[number] = begin + np.searchsorted(at[begin:end], trace.end_ns[event], "right")

    def claimed(self) -> Bools:
        """Say which memory events lie in one of the spans."""
        change = np.zeros(len(self._order) + 1, dtype=np.int64)
        np.add.at(change, self._first, 1)
        np.add.at(change, np.maximum(self._first, self._stop), -1)
        claimed = np.empty(len(self._order), dtype=np.bool_)
        claimed[self._order] = np.cumsum(change)[:-1] > 0
        return claimed

    def added(self, total: Longs, values: Longs) -> Longs:
        """Return the totals with those of the spans: each the sum of the memory events in it."""
        if len(self._events):
            running = np.concatenate([[0], np.cumsum(values[self._order])])
            total[self._events] = running[np.maximum(self._first, self._stop)] - running[self._first]
        return total


def _bytes_by_backend(trace: Trace, memory: Longs) -> dict[str, Longs]:
    """Return the bytes of each memory event, 0 under the backends that it is not of."""
    if not len(memory) or "Bytes" not in trace.items:
        return {}
    size = trace.items["Bytes"].dense(len(trace))[memory].astype(np.int64)
    names, backend = backends_of_memory(trace, memory)
    return {name: np.where(backend == number, size, 0) for number, name in enumerate(names)}


def backends_of_memory(trace: Trace, memory: Longs) -> tuple[Sequence[str], Longs]:
    """Return the backends whose memory the events are about, and the number of each event's backend.

    Args:
        trace: the trace.
        memory: (k,) int64, indices of memory events.

    Returns:
        Names of backends, and (k,) int64 indices into them.
    """
    names, devices = _devices(trace, memory)
    backends = [name.partition(":")[0] for name in names]
    distinct = list(dict.fromkeys(backends))
    return distinct, np.array([distinct.index(name) for name in backends], dtype=np.int64)[devices]


def _devices(trace: Trace, memory: Longs) -> tuple[list[str], Longs]:
    """Return the devices that the events are about, such as "openreg:0", and the number of each event's device."""
    column = trace.items.get("Device")
    if column is not None and column.kind is ItemKind.STRING and column.present(len(trace))[memory].all():
        distinct, number = np.unique(column.dense(len(trace))[memory], return_inverse=True)
        return [trace.strings[text] for text in distinct], number.astype(np.int64)
    types, indices = (_whole(trace, key, memory) for key in ("Device Type", "Device Id"))
    pairs, number = np.unique(np.stack([types, indices]), axis=1, return_inverse=True)
    private = _private_backend(trace)
    return [_device_name(kind, index, private) for kind, index in pairs.T.tolist()], number.reshape(-1).astype(np.int64)


def _whole(trace: Trace, key: str, events: Longs) -> Longs:
    column = trace.items.get(key)
    if column is None or column.kind is not ItemKind.INT:
        return np.zeros(len(events), dtype=np.int64)
    return column.dense(len(trace))[events].astype(np.int64)


def _device_name(kind: int, index: int, private: str) -> str:
    if kind in _HOST_TYPES:
        return HOST_BACKEND
    backend = private if kind == _PRIVATE_TYPE else _BACKENDS.get(kind, f"device type {kind}")
    return f"{backend}:{max(index, 0)}"


def _private_backend(trace: Trace) -> str:
    """Return the name of the backend that torch knows as PrivateUse1: the one that has no number of its own."""
    backends = [place.backend for place in trace.places if place.kind is PlaceKind.DEVICE]
    return next((name for name in backends if name not in _BACKENDS.values()), "privateuseone")


def memory_curve(trace: Trace) -> dict[str, MemoryCurve]:
    """Return how much memory was in use over time, by device, such as "cpu" and "openreg:0".

    Where several ranks or processes reported memory each has curves of its own: "rank 1: cpu".

    Args:
        trace: a trace of a session that recorded memory; of another one the result is empty.
    """
    memory = trace.named(MEMORY)
    if "Total Allocated" not in trace.items:
        return {}
    memory = memory[trace.items["Total Allocated"].present(len(trace))[memory]]
    memory = memory[np.argsort(trace.start_ns[memory], kind="stable")]
    names, device = _by_process(trace, memory, *_devices(trace, memory))
    allocated, reserved = (_whole(trace, key, memory) for key in ("Total Allocated", "Total Reserved"))
    return {
        name: MemoryCurve(trace.start_ns[memory[of]], allocated[of], reserved[of])
        for number, name in enumerate(names)
        if len(of := np.flatnonzero(device == number))
    }


def _by_process(trace: Trace, memory: Longs, names: list[str], device: Longs) -> tuple[list[str], Longs]:
    """Tell devices of one name apart by the process whose allocator reported."""
    processes = processes_of(trace)
    reporting, process = np.unique(processes.of_place[places_of(trace, memory)], return_inverse=True)
    if len(reporting) < 2:
        return names, device
    titles = [processes.title(number) for number in reporting.tolist()]
    return [f"{title}: {name}" for title in titles for name in names], process * len(names) + device
