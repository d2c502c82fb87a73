"""The numbers behind the pictures: a trace of any length in a fixed number of bins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from devprof.analysis import MemoryCurve
from devprof.analysis.intervals import Longs, covered_at, union
from devprof.analysis.names import STEP
from devprof.analysis.work import by_group, events_of_roles, is_communication
from devprof.model import ActivityType, Role
from devprof.store import PlaceKind, Trace

__all__ = [
    "DEVICE_KINDS",
    "HOST_KINDS",
    "Span",
    "Strip",
    "busiest",
    "grouped_means",
    "memory_bins",
    "span_of",
    "strips",
]

Bools = npt.NDArray[np.bool_]
Shares = npt.NDArray[np.float64]

DEVICE_KINDS = ("compute", "communication", "copy")
HOST_KINDS = ("device calls", "ops", "ranges and functions")


class Span(NamedTuple):
    """The time that pictures show, Unix ns."""

    start_ns: int
    end_ns: int

    def edges_ns(self, n_bins: int) -> Longs:
        """Return the borders of its bins: (n_bins + 1,) int64, Unix ns."""
        length = self.end_ns - self.start_ns  # Python's integers: the product may not fit into 64 bits
        return np.array([self.start_ns + length * i // n_bins for i in range(n_bins + 1)], dtype=np.int64)

    def share(self, time_ns: int) -> float:
        """Return where a time is, from 0 to 1."""
        return (time_ns - self.start_ns) / (self.end_ns - self.start_ns)


class Strip(NamedTuple):
    """How busy one row was over time.

    Attributes:
        row: index of the row in the trace.
        shares: by kind, (b,) float64: the part of each bin in which that kind ran and none of the kinds before it.
        busy_ns: time in the span in which anything ran.
    """

    row: int
    shares: dict[str, Shares]
    busy_ns: int


def span_of(trace: Trace) -> Span | None:
    """Return the time from the first to the last event on a row, within the user's window if there is one; None: no time."""
    if not len(trace):
        return None
    start_ns, end_ns = int(trace.start_ns.min()), int(max(trace.end_ns.max(), trace.start_ns.max()))
    begin_ns, until_ns = trace.user_window_ns
    if until_ns > begin_ns:
        inside = Span(max(start_ns, begin_ns), min(end_ns, until_ns))
        if inside.end_ns > inside.start_ns:
            return inside
    return Span(start_ns, end_ns) if end_ns > start_ns else None


def strips(trace: Trace, span: Span, n_bins: int) -> Iterator[Strip]:
    """Yield how busy each row was, in the order of the rows; rows without events and without work in the span are left out."""
    edges_ns = span.edges_ns(n_bins)
    on_device, kinds = trace.on_device, _kinds(trace)
    for row, events in by_group(trace.row):
        names = DEVICE_KINDS if on_device[events[0]] else HOST_KINDS
        shares, busy_ns = _layers(trace, events, [(name, kinds[name]) for name in names], edges_ns)
        if busy_ns:
            yield Strip(row, shares, busy_ns)


def _kinds(trace: Trace) -> dict[str, Bools]:
    def of(*roles: Role) -> Bools:
        mask = np.zeros(len(trace), dtype=np.bool_)
        mask[events_of_roles(trace, *roles)] = True
        return mask

    communication = is_communication(trace)
    steps = np.array([name.startswith(STEP) for name in trace.strings], dtype=np.bool_)[trace.name]
    functions = np.zeros(len(trace), dtype=np.bool_)
    functions[trace.of_type(ActivityType.PYTHON_FUNCTION)] = True
    return {
        "compute": of(Role.KERNEL) & ~communication,
        "communication": communication,
        "copy": of(Role.COPY, Role.SET),
        "device calls": of(Role.LAUNCH, Role.SYNC),
        "ops": of(Role.OP),
        "ranges and functions": (of(Role.ANNOTATION) & ~steps) | functions,
    }


def _layers(
    trace: Trace, events: Longs, kinds: Sequence[tuple[str, Bools]], edges_ns: Longs
) -> tuple[dict[str, Shares], int]:
    """Return what each kind adds to the kinds before it, per bin, and the time that all cover."""
    width_ns = np.maximum(np.diff(edges_ns), 1)
    chosen = np.zeros(len(trace), dtype=np.bool_)
    covered = np.zeros(len(width_ns), dtype=np.int64)
    shares = {}
    for name, mask in kinds:
        chosen[events] |= mask[events]
        here = events[chosen[events]]
        so_far = covered_at(union(trace.start_ns[here], trace.end_ns[here]), edges_ns[:-1], edges_ns[1:])
        shares[name] = (so_far - covered) / width_ns
        covered = so_far
    return shares, int(covered.sum())


def busiest(found: Sequence[Strip], trace: Trace, most: int) -> list[Strip]:
    """Return the busiest rows in their order: devices' rows first, since they are what others wait for."""
    devices = [trace.places[trace.rows[one.row].place].kind is PlaceKind.DEVICE for one in found]
    order = sorted(range(len(found)), key=lambda i: (not devices[i], -found[i].busy_ns))[:most]
    return [found[i] for i in sorted(order, key=lambda i: (devices[i], found[i].row))]


def memory_bins(curve: MemoryCurve, span: Span, n_bins: int) -> tuple[Longs, Longs]:
    """Return the most memory allocated, and reserved, in each bin: (b,) int64 each, bytes.

    In a bin without a report it is what was last reported before it, 0 before the first one.
    """
    edges_ns = span.edges_ns(n_bins)
    begin, end = np.searchsorted(curve.times_ns, edges_ns[:-1]), np.searchsorted(curve.times_ns, edges_ns[1:])
    end[-1] = np.searchsorted(curve.times_ns, edges_ns[-1], "right")
    return _most(curve.allocated_bytes, begin, end), _most(curve.reserved_bytes, begin, end)


def _most(values: Longs, begin: Longs, end: Longs) -> Longs:
    padded = np.concatenate([[0], values])  # what there was before a bin counts in it
    return np.array([padded[first : last + 1].max() for first, last in zip(begin, end, strict=True)], dtype=np.int64)


def grouped_means(values: Longs, most: int) -> npt.NDArray[np.float64]:
    """Return at most so many means of neighbours: the values themselves where they are few enough."""
    if len(values) <= most:
        return values.astype(np.float64)
    at = np.linspace(0, len(values), most + 1).astype(np.int64)
    return np.add.reduceat(values, at[:-1]) / np.diff(at)
