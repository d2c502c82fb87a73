"""`Figures`: the events that a table lists, and what each came to, as columns.

The listed events are host events, then allocations outside of all of them, then events on devices. Many figures are zero for
one of the three; a column is therefore kept in parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from devprof.analysis.columns import Bools, Longs, sums
from devprof.analysis.device_records import DeviceRecords, device_backends, device_records
from devprof.analysis.flops import ITEM, flops_of
from devprof.analysis.forest import Forest, forest_of
from devprof.analysis.memory import MemoryUse, memory_use
from devprof.analysis.names import Names, names_of
from devprof.model import ActivityType
from devprof.store import HOST_BACKEND, Trace

__all__ = ["FLOPS", "Figure", "Figures"]


class Figure(NamedTuple):
    """What to ask of an event.

    Attributes:
        kind: ``"time"`` (ns), ``"memory"`` (bytes) or ``"flops"``.
        backend: whose: `HOST_BACKEND`, or a backend of devices.
        own: without what is inside.
    """

    kind: str
    backend: str
    own: bool = False


FLOPS = Figure("flops", HOST_BACKEND)

Number = TypeVar("Number", bound=np.generic)
Part = tuple[int, Longs]
"""Where a part of a column begins, and its values."""


class Figures:
    """Every figure of a trace's listed events; each is computed when it is first asked for. Never changes."""

    def __init__(self, trace: Trace) -> None:
        """Take a trace; nothing is computed yet."""
        self.trace = trace
        self._parts: dict[Figure, list[Part]] = {}
        self._owned: dict[int, Longs] = {}

    def __len__(self) -> int:
        return len(self.events)

    @cached_property
    def names(self) -> Names:
        """The trace's names."""
        return names_of(self.trace)

    @cached_property
    def forest(self) -> Forest:
        """The trees of the host events."""
        return forest_of(self.trace, self.names)

    @cached_property
    def devices(self) -> DeviceRecords:
        """What happened on devices."""
        return device_records(self.trace, self.names, self.forest)

    @cached_property
    def memory(self) -> MemoryUse:
        """What the host events allocated."""
        return memory_use(self.trace, self.forest)

    @cached_property
    def backends(self) -> tuple[str, ...]:
        """Names of the backends whose devices ran or allocated something, or could have."""
        others = [name for name in self.memory.total if name != HOST_BACKEND]
        return tuple(dict.fromkeys([*device_backends(self.trace), *others]))

    @cached_property
    def hosts(self) -> Longs:
        """(h,) int64, positions in the forest of the listed host events."""
        return np.flatnonzero(self.forest.stays) if len(self.forest.merged) else np.arange(len(self.forest))

    def of_hosts(self, values: npt.NDArray[Number]) -> npt.NDArray[Number]:
        """Return what belongs to the listed host events, of values of all events of the forest: (h,)."""
        return values[self.hosts] if len(self.forest.merged) else values

    @cached_property
    def events(self) -> Longs:
        """(e,) int64, indices in the trace of the listed events: host events, lone allocations, events on devices."""
        return np.concatenate([self.of_hosts(self.forest.event), self.memory.outside, self.devices.event])

    @property
    def n_hosts(self) -> int:
        """Number of listed host events."""
        return len(self.hosts)

    @property
    def first_device(self) -> int:
        """Place of the first device event in `events`."""
        return self.n_hosts + len(self.memory.outside)

    @cached_property
    def backend_number(self) -> npt.NDArray[np.uint8]:
        """(e,) uint8: 0 for the host, else 1 + index into `backends`."""
        numbers = np.zeros(len(self), dtype=np.uint8)
        numbers[self.first_device :] = self.devices.backend + 1
        return numbers

    def backend_name(self, place: int) -> str:
        """Return the name of the backend whose a listed event is."""
        number = int(self.backend_number[place])
        return self.backends[number - 1] if number else HOST_BACKEND

    @cached_property
    def is_annotation(self) -> Bools:
        """(e,) bool: ranges that the user named, on the host and on devices."""
        kind = self.trace.activity_type[self.events]
        mask: Bools = kind == ActivityType.USER_ANNOTATION
        mask |= kind == ActivityType.GPU_USER_ANNOTATION
        return mask

    @cached_property
    def is_async(self) -> Bools:
        """(e,) bool: ended on another thread than it began on."""
        mask = np.zeros(len(self), dtype=np.bool_)
        mask[: self.n_hosts] = self.of_hosts(self.forest.is_async)
        return mask

    @property
    def counts_memory(self) -> bool:
        """Whether the session recorded memory."""
        return bool(self.trace.facts.get("profile_memory")) or bool(self.memory.total)

    @property
    def counts_flops(self) -> bool:
        """Whether the session counted operations."""
        return bool(self.trace.facts.get("with_flops")) or ITEM in self.trace.items

    def work_ns(self, backend: str) -> int:
        """Return how long all work on the devices of a backend took, ns: kernels, copies and sets, and nothing else."""
        known = device_backends(self.trace)
        return self.devices.work_ns(known.index(backend)) if backend in known else 0

    @cached_property
    def key(self) -> npt.NDArray[np.int32]:
        """(e,) int32, index into `names.keys`."""
        return self.names.key[self.events]

    @cached_property
    def parent(self) -> Longs:
        """(e,) int64, place in `events` of the listed host event around each, -1: none."""
        place = np.full(len(self.forest) + 1, -1, dtype=np.int64)  # the last one is for "none"
        place[self.hosts] = np.arange(self.n_hosts)
        parent = np.full(len(self), -1, dtype=np.int64)
        parent[: self.n_hosts] = place[self.of_hosts(self.forest.listed_parent())]
        return parent

    @cached_property
    def end_ns(self) -> Longs:
        """(e,) int64, Unix ns; allocations are instants, whatever end a host gave them."""
        return self.end_ns_of(self.events)

    def end_ns_of(self, events: Longs) -> Longs:
        """Return when events of the trace ended: (k,) int64, Unix ns; see `end_ns`."""
        end = self.trace.end_ns[events]
        instant = self.names.memory | self.names.out_of_memory
        if instant.any():
            instants = np.flatnonzero(instant[self.trace.name[events]])
            end[instants] = self.trace.start_ns[events[instants]]
        return end

    @cached_property
    def order(self) -> Longs:
        """(e,) int64, places in `events` by start, the longest first where starts are equal."""
        start, end = self.trace.start_ns[self.events], self.end_ns
        order = np.argsort(start, kind="stable")
        ordered = start[order]
        if (ordered[1:] == ordered[:-1]).any():
            order = np.lexsort((self.events, -end, start))
        return order

    def parts(self, figure: Figure) -> list[Part]:
        """Return one figure of the listed events, without the parts that are zero."""
        if figure not in self._parts:
            self._parts[figure] = self._computed(figure)
        return self._parts[figure]

    def column(self, figure: Figure) -> Longs:
        """Return one figure of each listed event: (e,) int64."""
        column = np.zeros(len(self), dtype=np.int64)
        for first, values in self.parts(figure):
            column[first : first + len(values)] = values
        return column

    def grouped(self, figure: Figure, groups: Longs, count: int) -> Longs:
        """Add up one figure by group.

        Args:
            figure: which one.
            groups: (e,) int64, number of each event's group.
            count: number of groups.
        """
        total = np.zeros(count, dtype=np.int64)
        for first, values in self.parts(figure):
            total += sums(groups[first : first + len(values)], values, count)
        return total

    def total(self, figure: Figure) -> int:
        """Return the sum of one figure over all listed events."""
        return sum(int(values.sum()) for _, values in self.parts(figure))

    def any_positive(self, figure: Figure) -> bool:
        """Say whether one listed event has more than zero of something."""
        return any(bool((values > 0).any()) for _, values in self.parts(figure))

    def _computed(self, figure: Figure) -> list[Part]:
        if figure.kind == "flops":
            return [(0, flops_of(self.trace, self.events[: self.n_hosts]))]
        if figure.kind == "memory":
            return self._memory(figure)
        if figure.backend == HOST_BACKEND:
            return [(0, self.of_hosts(self.forest.self_ns if figure.own else self.forest.total_ns))]
        return self._device_time(figure)

    def _memory(self, figure: Figure) -> list[Part]:
        if figure.backend not in self.memory.total:
            return []
        inside = (self.memory.own if figure.own else self.memory.total)[figure.backend]
        return [(0, self.of_hosts(inside)), (self.n_hosts, self.memory.of_outside[figure.backend])]

    def _device_time(self, figure: Figure) -> list[Part]:
        known: Sequence[str] = device_backends(self.trace)
        if figure.backend not in known:
            return []
        number = known.index(figure.backend)
        direct = self._owned_ns(number)
        hosts = self.forest.own(direct) if figure.own else self.forest.summed(direct)
        mine = self.devices.duration_ns
        if len(known) > 1:
            mine = mine * (self.devices.backend == number)
        return [(0, self.of_hosts(hosts)), (self.first_device, mine)]

    def _owned_ns(self, backend: int) -> Longs:
        """Return how long the work that belongs to each event of the forest took: (m,) int64, ns."""
        if backend not in self._owned:
            self._owned[backend] = self.devices.owned_ns(backend, len(self.forest))
        return self._owned[backend]
