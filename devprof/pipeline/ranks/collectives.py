"""Collective operations of a trace, and which of two traces are the same one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from devprof.model import ActivityType, Role
from devprof.store import ROLES, ItemKind, Trace

__all__ = ["Calls", "collectives", "same_calls"]

Longs = npt.NDArray[np.int64]

_NAME, _TYPE, _SIZE, _SEQUENCE = "Collective name", "dtype", "In msg nelems", "Seq"
_GROUP_NAME, _GROUP_ID, _GROUP_RANKS = "Process Group Name", "Process Group ID", "Process Group Ranks"
_OPS = "c10d::"
_BETWEEN_TWO = ("send", "recv", "isend", "irecv", "recv_any_source")
_SAME_SIZE_EVERYWHERE = ("allreduce", "all_reduce", "broadcast")
_FARTHEST = 64
"""Two captures may begin this many operations apart."""
_KERNEL = ROLES.index(Role.KERNEL)


@dataclass(frozen=True, slots=True, eq=False)
class Calls:
    """Operations of one process group in one trace, in their order; m of them.

    Attributes:
        signature: (m,) texts, what is the same on all ranks of the operation.
        sequence: (m,) int64, their numbers within the group where the trace has them, each once; else None.
        end_ns: (m,) int64, when each was over: at nearly the same time on all ranks, since none is done before all have come.
    """

    signature: npt.NDArray[np.str_]
    sequence: Longs | None
    end_ns: Longs

    def __len__(self) -> int:
        return len(self.end_ns)


def collectives(trace: Trace) -> Mapping[str, Calls]:
    """Return the collective operations of a trace by process group.

    They are taken from device work that says which operation it is; where none does, from host ops that do
    (``record_param_comms``); where none does either, from torch's ops by their names (``c10d::allreduce_``). An op is over when
    the last kernel that it launched was. Messages between two ranks are left out.
    """
    events = _calls(trace)
    own = [trace.strings[name].removeprefix(_OPS).rstrip("_") for name in trace.name[events].tolist()]
    names = _texts(trace, events, _NAME, np.array(own, np.str_))
    kept = ~np.isin(names, _BETWEEN_TWO)
    events, names = events[kept], names[kept]
    end_ns = _ends(trace, events)
    order = np.argsort(end_ns, kind="stable")
    events, names, end_ns = events[order], names[order], end_ns[order]
    signature = _signatures(trace, events, names)
    groups = _groups(trace, events)
    sequence = _sequence(trace, events)
    found = {}
    for group in np.unique(groups).tolist():
        ours = np.flatnonzero(groups == group)
        found[group] = Calls(signature[ours], _once(sequence[ours]), end_ns[ours])
    return found


def same_calls(one: Calls, other: Calls) -> tuple[Longs, Longs]:
    """Return the positions of the operations that two ranks of a group have in common: by number, else by their order.

    By order: that of the shifts by up to 64 operations at which the fewest are unlike, the shortest of equal ones.
    """
    if one.sequence is not None and other.sequence is not None:
        _, mine, theirs = np.intersect1d(one.sequence, other.sequence, assume_unique=True, return_indices=True)
    else:
        lag = min(range(-_FARTHEST, _FARTHEST + 1), key=lambda lag: (_unlike(one, other, lag), abs(lag), lag))
        mine, theirs = _beside(one, other, lag)
    same = one.signature[mine] == other.signature[theirs]
    return mine[same], theirs[same]


def _unlike(one: Calls, other: Calls, lag: int) -> float:
    mine, theirs = _beside(one, other, lag)
    if 2 * len(mine) < min(len(one), len(other)) or not len(mine):
        return 1.0  # too few to mean anything
    return float(np.mean(one.signature[mine] != other.signature[theirs]))


def _beside(one: Calls, other: Calls, lag: int) -> tuple[Longs, Longs]:
    """Return the positions that meet where the other's operation `i` is this one's `i + lag`."""
    first, stop = max(0, lag), min(len(one), len(other) + lag)
    mine = np.arange(first, max(stop, first))
    return mine, mine - lag


def _calls(trace: Trace) -> Longs:
    mask = np.zeros(len(trace), dtype=np.bool_)
    mask[trace.of_type(ActivityType.COLLECTIVE_COMM)] = True
    if (column := trace.items.get(_NAME)) is not None:
        mask[column.events] = True
    if not mask.any() and len(trace):
        named = np.array([text.startswith(_OPS) for text in trace.strings], dtype=np.bool_)
        mask = named[trace.name] & (trace.activity_type == ActivityType.CPU_OP)
    on_device = mask & trace.on_device
    return np.flatnonzero(on_device if on_device.any() else mask)


def _ends(trace: Trace, events: Longs) -> Longs:
    """Return when each operation was over; of a host op when the last kernel that it owns was."""
    end_ns = trace.end_ns[events].copy()
    kernels = np.flatnonzero((trace.role == _KERNEL) & (trace.linked != 0))
    by_id = np.argsort(trace.id[events], kind="stable")
    ids = trace.id[events][by_id]
    at = np.minimum(np.searchsorted(ids, trace.linked[kernels]), max(len(ids) - 1, 0))
    ours = ids[at] == trace.linked[kernels] if len(ids) else np.zeros(len(kernels), np.bool_)
    ours &= ~trace.on_device[events][by_id][at] if len(ids) else ours
    last = np.full(len(events), np.iinfo(np.int64).min)
    np.maximum.at(last, by_id[at[ours]], trace.end_ns[kernels[ours]])
    return np.where(last > np.iinfo(np.int64).min, last, end_ns)


def _signatures(trace: Trace, events: Longs, names: npt.NDArray[np.str_]) -> npt.NDArray[np.str_]:
    sizes = np.where(np.isin(names, _SAME_SIZE_EVERYWHERE), _texts(trace, events, _SIZE), "")
    parts = zip(names.tolist(), _texts(trace, events, _TYPE).tolist(), sizes.tolist(), strict=True)
    return np.array([" ".join(part) for part in parts], dtype=np.str_)


def _groups(trace: Trace, events: Longs) -> npt.NDArray[np.str_]:
    names, ids = _texts(trace, events, _GROUP_NAME), _texts(trace, events, _GROUP_ID)
    ranks = _texts(trace, events, _GROUP_RANKS)
    parts = zip(np.where(names == "", ids, names).tolist(), ranks.tolist(), strict=True)
    return np.array([" ".join(part) for part in parts], dtype=np.str_)


def _sequence(trace: Trace, events: Longs) -> Longs:
    column = trace.items.get(_SEQUENCE)
    if column is None or column.kind is not ItemKind.INT:
        return np.full(len(events), -1, dtype=np.int64)
    return column.dense(len(trace), -1)[events].astype(np.int64)


def _once(sequence: Longs) -> Longs | None:
    return sequence if (sequence >= 0).all() and len(np.unique(sequence)) == len(sequence) else None


def _texts(trace: Trace, events: Longs, key: str, default: npt.NDArray[np.str_] | None = None) -> npt.NDArray[np.str_]:
    """Return an item of events as texts, `default` or nothing where there is none."""
    texts = [""] * len(events) if default is None else default.tolist()
    if (column := trace.items.get(key)) is not None:
        for at, event in enumerate(events.tolist()):
            value = column.value(event, trace.strings)
            texts[at] = texts[at] if value is None else str(value)
    return np.array(texts, dtype=np.str_)
